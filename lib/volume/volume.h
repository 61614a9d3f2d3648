/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A volume: core/volume/extents.h over sessions to donors. The core decides; this part holds the
 * memory, the sessions and the requests.
 *
 * Serving. Any thread pushes events to the inbox: new requests, and pieces or steps whose
 * operations have ended. The thread that finds the lock free handles them all, by
 * core/base/combine.h. So no callback of a session waits for the lock, whose holder may be inside a
 * call on that session. A thread that came to submit serves for some rounds, and leaves the rest to
 * the serving thread.
 *
 * Order. A request waits for earlier ones that share a page, by core/engine/order.h in units of
 * pages. So a read may move to another copy, and a write may read the rest of a page first, without
 * being overtaken.
 *
 * Threads. One thread serves what others leave. One maintains: it detects lost donors, returns and
 * borrows memory. Each donor has a thread that connects, so that a silent donor delays no other.
 * New copies are filled by events, like requests: the thread that serves when a step has ended
 * pushes the next.
 */
#ifndef WEIR_LIB_VOLUME_VOLUME_H
#define WEIR_LIB_VOLUME_VOLUME_H

#include <pthread.h>
#include <stdbool.h>
#include <weir/session.h>
#include <weir/volume.h>

#include "core/base/inbox.h"
#include "core/base/list.h"
#include "core/engine/order.h"
#include "core/pool/map.h"
#include "core/volume/borrow.h"
#include "core/volume/extents.h"
#include "core/volume/stripe.h"
#include "lib/base/mutex.h"
#include "lib/volume/checksum.h"

#define WEIR_VOLUME_UNIT_PAGES 64u /* of a stripe, and most of a piece */
#define WEIR_VOLUME_PIECES_MAX 32u /* of one request under way */
#define WEIR_VOLUME_TIMEOUT_NS 3000000000ull /* default; a pool with a short lease has less */
#define WEIR_VOLUME_TICK_NS 1000000000ull /* period of maintenance */
#define WEIR_VOLUME_RETRY_NS 20000000ull /* period while pieces wait */

/* The fate of a copy at which a write failed. */
enum weir_volume_fate {
	WEIR_VOLUME_IS_OUT, /* no reader will use it: the write is done without it */
	WEIR_VOLUME_MAY_RETRY,
	WEIR_VOLUME_MUST_WAIT, /* until the layout's next maintenance */
};

/**
 * struct weir_volume_layout - where copies lie
 * @maintain: keeps the donors' states, borrows and returns memory. Context: the maintaining thread
 * @fate_of_copy: the fate of a live copy after a failure. Context: with the lock held
 * @is_equal: whether all copies of an extent that a later client may read are equal, so that
 *	requests may use it. With the lock held
 * @may_come: whether an extent without a usable copy may have one later. With the lock held
 * @suspect: an operation at a copy has failed. With the lock held
 * @is_certain: whether bytes that were wrong at @since_ns were this client's to read: else another
 *	may have written them. With the lock held
 * @stop: ends the layout's threads, before the volume's donors are closed
 * @is_mapped: a pool's map places the copies: see core/volume/extents.h. Memory stays borrowed
 *	after a discard
 *
 * Over a list of donors, core/volume/borrow.h decides: donor_list.c. Over a pool, the map does:
 * pool.c.
 */
struct weir_volume_layout {
	void (*maintain)(struct weir_volume *v);
	enum weir_volume_fate (*fate_of_copy)(struct weir_volume *v, uint32_t extent, uint8_t slot);
	bool (*is_equal)(struct weir_volume *v, uint32_t extent);
	bool (*may_come)(struct weir_volume *v, uint32_t extent);
	void (*suspect)(struct weir_volume *v, uint32_t extent, uint8_t slot);
	bool (*is_certain)(struct weir_volume *v, uint64_t since_ns);
	void (*stop)(struct weir_volume *v);
	bool is_mapped;
};

extern const struct weir_volume_layout weir_volume_donor_list, weir_volume_mapped;

struct weir_volume_rebuild;
struct weir_volume_coded;

/**
 * struct weir_volume_target - one of the donors
 * @session: NULL: none. Changed by the maintaining thread with @volume->lock held; freed when no
 *	thread polls it any more
 * @fresh: connected, for the maintaining thread; guarded by @volume->lock
 * @is_joining: the thread is to connect; guarded by @volume->lock
 * @pollers: threads in weir_session_process(); guarded by @volume->lock
 * @thread: connects while @is_joining; sleeps on the futex @wanted
 * @is_connecting: the thread connects now; guarded by @volume->lock
 * @id, @incarnation: of a pool's donor; the empty string and 0: the target is not in use, or any
 * @identity: of a pool's donor, if @has_identity
 * @has_old_key: @session has proven options.old_key; atomic
 * @has_new_key: the donor has once proven options.key; of @thread, or of the opening before
 * @connect_status, @reason: of the last try to connect; guarded by @volume->lock
 * @is_failed: to be reported to the pool, unless it @is_reported; guarded by @volume->lock
 * @wrong_reads: in which its memory had wrong bytes; guarded by @volume->lock. @wrong_shown: of
 *	these, the pool knows; of the watching thread
 * @since_ns: when it was last connected, or first seen
 */
struct weir_volume_target {
	struct weir_volume *volume;
	char *address;
	struct weir_session *session, *fresh;
	bool is_joining, is_connecting;
	char id[WEIR_POOL_NAME_MAX];
	uint64_t incarnation;
	uint8_t identity[WEIR_POOL_IDENTITY];
	bool has_identity, has_old_key, has_new_key;
	int connect_status;
	struct weir_error reason;
	bool is_failed, is_reported;
	uint64_t wrong_reads, wrong_shown;
	uint64_t since_ns;
	unsigned int pollers;
	pthread_t thread;
	bool has_thread;
	uint32_t wanted;
};

/* What the inbox holds: a new request; a piece or a step whose operations have ended. */
enum weir_volume_event_kind {
	WEIR_VOLUME_EVENT_REQUEST,
	WEIR_VOLUME_EVENT_PIECE,
	WEIR_VOLUME_EVENT_RESYNC,
};

struct weir_volume_event {
	struct weir_inbox_node node;
	enum weir_volume_event_kind kind;
};

/**
 * struct weir_volume_resync - a chunk that is copied to a new copy
 * @volume: the volume; @number: of the core's copy
 * @chunk: its memory; @sums: expected checksums of pages that are read
 * @step: under way, if @is_busy; @status: how it ended
 * @waits: the next step waits for writes to end
 */
struct weir_volume_resync {
	struct weir_volume_event event;
	struct weir_volume *volume;
	uint8_t number;
	char *chunk;
	uint32_t sums[WEIR_EXTENTS_CHUNK_PAGES];
	struct weir_extents_copy_step step;
	int status;
	bool is_busy, waits;
};

/**
 * struct weir_volume - a volume
 * @options: with the defaults filled in; @device, @tuning: copies, which @options points to
 * @layout: where copies lie; @pool: of a mapped volume, or NULL
 * @coded: of a volume with a code: see lib/volume/coded/coded.h; NULL: it has copies
 * @rebuild: the donor that fills its copies; NULL: a client has opened the volume
 * @is_files: a donor has opened it, to serve its files
 * @lock: guards all that follows, unless noted. Taken by weir_volume_lock(), or while serving
 * @checksum_key: constant once the volume is opened
 * @core: extents and their copies; operations are pushed with the lock held
 * @borrow: whom to ask for memory; of the opening and the maintaining thread, with the lock held
 * @regions: core.slots regions for each extent; each belongs to the user of its replica
 * @order: requests under way, in pages; @pending: the same in order of arrival
 * @active: requests that may start pieces; @memory_waiters: pieces that wait for memory or a fate
 * @status: why no request can succeed any more; 0: requests can
 * @inbox: events; any thread pushes
 * @done: requests whose callback is due; @dispatching: held to run callbacks
 * @closing: set once; atomic
 * @kick, @serve: futexes of the maintaining and the serving thread; atomic
 * @is_over: the serving thread ends; atomic
 * @failovers, @mismatches, @missed_writes, @sessions: see struct weir_volume_info
 */
struct weir_volume {
	struct weir_volume_options options;
	struct weir_session_tuning tuning;
	const struct weir_volume_layout *layout;
	struct weir_volume_pool *pool;
	struct weir_volume_coded *coded;
	const struct weir_volume_rebuild *rebuild;
	const bool *stops; /* the donor that rebuilds or serves files ends; atomic; or NULL */
	bool is_files;
	int status;
	char *device;
	uint64_t bytes;
	struct weir_stripe stripe;
	struct weir_volume_checksum_key checksum_key;
	struct weir_mutex lock;
	struct weir_extents core;
	struct weir_borrow borrow;
	struct weir_extent *extents;
	struct weir_region **regions;
	struct weir_order order;
	struct weir_list pending, active, memory_waiters;
	struct weir_inbox inbox, done;
	struct weir_mutex dispatching;
	bool closing;
	uint32_t kick, serve;
	bool is_over;
	pthread_t maintainer, server;
	bool has_maintainer, has_server;
	struct weir_volume_resync resync[WEIR_EXTENTS_COPIES_MAX];
	uint64_t failovers, mismatches, missed_writes, sessions;
	unsigned int nr_targets;
	struct weir_volume_target *targets;
};

/**
 * weir_volume_start() - begin to open a volume
 * @options: as for weir_volume_open(), checked, and kept until the volume is closed
 * @rebuild: see rebuild.h; NULL: for a client. Kept until the volume is closed
 * @volume: receives the volume; the caller owes a weir_volume_close()
 * @error: may be NULL
 *
 * A volume of a pool is not yet open: see weir_volume_pool_wait_open().
 */
int weir_volume_start(const struct weir_volume_options *options,
		      const struct weir_volume_rebuild *rebuild, struct weir_volume **volume,
		      struct weir_error *error);

/**
 * weir_volume_open_files() - weir_volume_open() for a donor that serves a pool's files
 * @options: as for weir_volume_open()
 * @stops: the donor ends, and waits for nothing more; atomic; kept until the volume is closed
 * @volume: receives the volume; the caller owes a weir_volume_close()
 * @error: may be NULL
 *
 * Return: also -ECANCELED after @stops.
 */
int weir_volume_open_files(const struct weir_volume_options *options, const bool *stops,
			   struct weir_volume **volume, struct weir_error *error);

/* Takes the lock. Context: any thread that may sleep, outside callbacks. */
static inline void weir_volume_lock(struct weir_volume *v)
{
	weir_mutex_lock(&v->lock);
}

/* Gives the lock back, serves events, and runs callbacks, for some rounds. */
void weir_volume_unlock(struct weir_volume *v);

/* Pushes an event and serves. Context: any thread, callbacks included; without the lock. */
void weir_volume_push(struct weir_volume *v, struct weir_volume_event *event);

static inline bool weir_volume_is_closing(const struct weir_volume *v)
{
	return __atomic_load_n(&v->closing, __ATOMIC_SEQ_CST);
}

/* Wakes a thread of the volume that sleeps on @word. Context: any. */
void weir_volume_wake(uint32_t *word);

/* Sleeps until a wake since @seen was read from @word, or until @deadline_ns. */
void weir_volume_sleep(uint32_t *word, uint32_t seen, uint64_t deadline_ns);

static inline void weir_volume_kick(struct weir_volume *v)
{
	weir_volume_wake(&v->kick);
}

static inline struct weir_region **weir_volume_region(struct weir_volume *v, uint32_t extent,
						      uint8_t slot)
{
	return &v->regions[(size_t)extent * v->core.slots + slot];
}

/* The number of a page, as its checksum has it. */
static inline uint64_t weir_volume_page_number(const struct weir_volume *v, uint32_t extent,
					       uint32_t page)
{
	return (uint64_t)extent * v->core.pages + page;
}

static inline uint64_t weir_volume_extent_bytes(const struct weir_volume *v)
{
	return (uint64_t)v->core.pages * WEIR_VOLUME_PAGE_BYTES;
}

#endif
