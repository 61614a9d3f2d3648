/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * weir in the kernel: reads and writes memory of another machine over RDMA.
 *
 * A session is a connection to one donor ('weir serve'). A region is a piece of the donor's memory.
 * An io is one read or write between a region and a scatterlist. The promises about order,
 * completion and failure are those of the library (docs/reference/errors.md,
 * docs/how-to/block-device.md):
 *
 * - ios of one session that overlap take effect in the order submitted, others in any order;
 * - every later read sees the data of a completed write;
 * - each io ends exactly once, by its deadline or soon after, with 0 or a negative errno.
 *
 * Submit and completion neither allocate nor wait, so that the kernel can write out memory through
 * an io.
 */
#ifndef WEIR_KERNEL_WEIR_WEIR_H
#define WEIR_KERNEL_WEIR_WEIR_H

#include <linux/dma-direction.h>
#include <linux/scatterlist.h>
#include <linux/socket.h>

#include "core/base/combine.h"
#include "core/engine/request.h"

struct key;
struct kweir_session;

#define KWEIR_IO_PARTS 8
#define KWEIR_IO_SEGMENTS (KWEIR_IO_PARTS * WEIR_SGE_MAX) /* in the scatterlist of an io */
#define KWEIR_BOUNCE_BYTES (16u << 10) /* per piece of bounce memory */
#define KWEIR_ERROR_TEXT 160
#define KWEIR_TIMEOUT_MS 10000 /* default */

/**
 * struct kweir_error - the reason of a failure, for people
 * @text: a sentence, or empty
 */
struct kweir_error {
	char text[KWEIR_ERROR_TEXT];
};

/* Writes a sentence to @error, unless NULL. Return: @status. */
__printf(3, 4) int kweir_fail(struct kweir_error *error, int status, const char *format, ...);

/* RDMAbox, section IV-A: how requests become work requests, and how these reach the device. */
enum kweir_batching {
	KWEIR_BATCHING_HYBRID, /* merged and chained */
	KWEIR_BATCHING_SINGLE, /* one by one */
	KWEIR_BATCHING_DOORBELL, /* chained only */
	KWEIR_BATCHING_MERGE, /* merged only */
	KWEIR_BATCHINGS_NR
};

/* RDMAbox, section IV-B: the memory that the device reads and writes. */
enum kweir_mr {
	KWEIR_MR_DYN, /* the caller's pages, mapped per io */
	KWEIR_MR_PRE, /* copies, in memory mapped when the session opens */
	KWEIR_MRS_NR
};

/**
 * struct kweir_options - options of a session; 0 selects the default
 * @channels: QPs, 1 to WEIR_CHANNEL_MAX; 2
 * @depth: WRs in flight on each QP, 16 to 1024; 128
 * @timeout_ms: of an io, and of an attempt to reconnect, 100 to 600000; KWEIR_TIMEOUT_MS
 * @window_bytes: in flight on this device; set by the device's first session; 8 MiB
 * @polling: an enum weir_poll_mode except BUSY; ADAPTIVE
 * @batching: an enum kweir_batching; HYBRID
 * @mr: an enum kweir_mr; DYN
 * @movable: the donor may demand regions without a name back: see struct kweir_stat; false
 */
struct kweir_options {
	u32 channels;
	u32 depth;
	u32 timeout_ms;
	u64 window_bytes;
	u32 polling;
	u32 batching;
	u32 mr;
	bool movable;
};

enum kweir_session_state {
	KWEIR_SESSION_UP, /* all channels */
	KWEIR_SESSION_RECONNECTING, /* some channels are reconnecting */
	KWEIR_SESSION_LOST, /* no channel, for good: ios end with -ENOTCONN */
};

/**
 * struct kweir_stat - what a session has done so far
 * @state: an enum kweir_session_state
 * @keep_bytes: limit of movable regions without a name: the donor demands the excess back, once its
 *	content is elsewhere; U64_MAX: no demand
 * @errors: WRs that failed
 * @merged: requests that shared a WR with others
 * @polled: completions taken by kweir_session_poll()
 */
struct kweir_stat {
	u32 state;
	u64 keep_bytes;
	u64 ios, requests, work_requests, doorbells, merged, completions, events, empty_polls;
	u64 polled;
	u64 window_waits, retries, reconnects, errors, bytes_read, bytes_written;
};

/**
 * kweir_session_new() - a session to a donor, for kweir_session_connect()
 * @donor: address of the donor
 * @options: copied; NULL: the defaults
 * @key: of type logon, on which the caller holds a reference; borrowed for the call. NULL: the
 *	donor requires no key
 * @session: receives the session; the caller owes a kweir_session_close()
 * @error: receives the reason; may be NULL
 *
 * Context: process; sleeps, but waits for no other machine.
 * Return: 0, or
 *	-EINVAL       an option is out of range, or the key is malformed;
 *	-ENOMEM.
 */
int kweir_session_new(const struct sockaddr_storage *donor, const struct kweir_options *options,
		      struct key *key, struct kweir_session **session, struct kweir_error *error);

/**
 * kweir_session_connect() - connect a session, once
 * @session: a new session; no other function may use it before this call returns 0
 * @error: receives the reason; may be NULL
 *
 * On success both ends have proven their knowledge of the key.
 *
 * Context: process; sleeps until options->timeout_ms, a signal, or kweir_session_abandon().
 * Return: 0, or
 *	-ECANCELED    the session was abandoned;
 *	-ENODEV       no RDMA device reaches the donor;
 *	-ECONNREFUSED nobody listens there;
 *	-EKEYREJECTED one end does not know the key;
 *	-ETIMEDOUT    the donor did not reply in time;
 *	-EINTR        a signal came;
 *	others, see docs/reference/errors.md.
 */
int kweir_session_connect(struct kweir_session *session, struct kweir_error *error);

/**
 * kweir_session_abandon() - stop waiting for the donor
 * @session: connected, or being connected by another thread, which must close the session
 *
 * The session is lost: all ios end soon; pending connect and region calls return an error.
 *
 * Context: process; never sleeps.
 */
void kweir_session_abandon(struct kweir_session *session);

/**
 * kweir_session_close() - disconnect
 * @session: without ios under way, now or later; or a session that failed to connect
 *
 * The donor gets the session's regions back.
 *
 * Context: process; sleeps.
 */
void kweir_session_close(struct kweir_session *session);

/* The number of the donor's memory. Context: any; after kweir_session_connect() has returned 0. */
u64 kweir_session_incarnation(const struct kweir_session *session);

/* Copies the session's counters. Context: any but hard interrupts; never sleeps. */
void kweir_session_stat(struct kweir_session *session, struct kweir_stat *stat);

/**
 * kweir_session_poll() - take pending completions
 * @session: the session to poll
 *
 * For a caller that would rather poll for an io than sleep. Calls done() for every finished io,
 * also those of other callers.
 *
 * Context: process; never sleeps. Return: how many completions there were.
 */
int kweir_session_poll(struct kweir_session *session);

/**
 * struct kweir_region - a piece of a donor's memory, held until its session ends
 * @session: the session to the donor
 * @remote: start address for the donor's device
 * @length: bytes
 * @hold: the donor's handle of the hold
 * @rkey: key of the memory region
 */
struct kweir_region {
	struct kweir_session *session;
	u64 remote;
	u64 length;
	u64 hold;
	u32 rkey;
};

/**
 * kweir_region_create() - borrow memory
 * @session: of the donor
 * @name: of a region that outlives the session; NULL: the region ends with the session
 * @length: bytes
 * @region: receives the region: zeroed, held by nobody else
 * @error: receives the reason; may be NULL
 *
 * Context: process; sleeps. One thread per session at a time calls region functions.
 * Return: 0, or
 *	-EEXIST the donor has a region of that name;
 *	-ENOSPC, -EDQUOT the donor lends no more;
 *	-ENOTCONN, -ECONNRESET, -ETIMEDOUT, -EAGAIN, -EINTR no reply: see weir_call_is_unanswered().
 */
int kweir_region_create(struct kweir_session *session, const char *name, u64 length,
			struct kweir_region *region, struct kweir_error *error);

/* Opens an existing region, as kweir_region_create(): -ENOENT no such region; -EBUSY somebody else
 * holds the region. */
int kweir_region_open(struct kweir_session *session, const char *name, struct kweir_region *region,
		      struct kweir_error *error);

/*
 * Opens a region with a name for a client at @epoch, as kweir_region_create(). The donor first
 * revokes the keys of all holders up to this epoch. -ENOENT: no such region; -EBUSY: the region
 * was opened at a later epoch.
 */
int kweir_region_open_fenced(struct kweir_session *session, const char *name, u64 epoch,
			     struct kweir_region *region, struct kweir_error *error);

/* Deletes a region with a name; its memory goes with the last hold. As kweir_region_close(). */
int kweir_region_delete(struct kweir_session *session, const char *name, struct kweir_error *error);

/**
 * kweir_region_close() - give memory back
 * @region: without ios under way, now or later
 *
 * A region without a name ceases to exist. The end of a session closes all its regions.
 *
 * Context: process; sleeps. One thread per session at a time calls region functions.
 * Return: 0; -ENOENT the donor does not know the region; or no reply.
 */
int kweir_region_close(struct kweir_region *region, struct kweir_error *error);

/*
 * Sets how long a region call waits to be sent and answered; initially the session's timeout.
 * Memory granted by a later reply returns to the donor automatically. Context: any.
 */
void kweir_session_set_answer_timeout(struct kweir_session *session, u32 ms);

/* How many bytes the donor would lend this session now. Context, Return: as kweir_region_close().
 */
int kweir_session_room(struct kweir_session *session, u64 *bytes, struct kweir_error *error);

/**
 * struct kweir_part - one request of an io
 * @req: the engine's request
 * @io: the io of this part
 */
struct kweir_part {
	struct weir_req req;
	struct kweir_io *io;
};

/**
 * struct kweir_io - one read or write, in the caller's memory until completion
 * @done: called once, in process context; may submit more ios, and must not sleep for long
 * @status: 0 or a negative errno, valid in @done
 *
 * The members below are private to weir.
 */
struct kweir_io {
	void (*done)(struct kweir_io *io);
	int status;

	struct kweir_session *session;
	struct scatterlist *sgl;
	unsigned int nents;
	enum dma_data_direction direction;
	u64 bytes;
	unsigned int nr_copies;
	u16 copy[KWEIR_IO_SEGMENTS];
	union {
		struct weir_inbox_node node;
		struct weir_list link;
	};
	unsigned int nr_parts;
	unsigned int parts_left;
	struct kweir_part part[KWEIR_IO_PARTS];
};

/**
 * kweir_io_prepare() - make an io ready to submit
 * @io: the caller's; @io->done is set
 * @region: region to read or write
 * @offset: in bytes
 * @op: WEIR_OP_READ or WEIR_OP_WRITE
 * @sgl: *kept until done*; its lengths sum up to the length of the io
 * @nents: entries of @sgl, at most KWEIR_IO_SEGMENTS
 *
 * Maps the memory for the device: the caller owes a kweir_io_submit() or kweir_io_forget().
 *
 * Context: any but hard interrupts; never sleeps.
 * Return: 0, or
 *	-EINVAL the io is empty, too long for the session's options.mr, or ends beyond the region;
 *	-ENOMEM no room for mappings now: try again after other ios have ended;
 *	-ENODEV the device is gone.
 */
int kweir_io_prepare(struct kweir_io *io, struct kweir_region *region, u64 offset, enum weir_op op,
		     struct scatterlist *sgl, unsigned int nents);

/* Unmaps an io that was prepared and not submitted. */
void kweir_io_forget(struct kweir_io *io);

/**
 * kweir_io_submit() - start an io
 * @io: prepared; weir's until completion, which may come before this call returns
 *
 * Context: any but hard interrupts; never sleeps.
 */
void kweir_io_submit(struct kweir_io *io);

/**
 * kweir_io_push() - first half of kweir_io_submit(): fixes the place of an io in the order
 * @io: prepared; weir's until completion
 *
 * The caller owes a kweir_session_serve() of the session, possibly after releasing a lock. Under
 * one lock, a caller can thus give ios of several sessions the same order without posting them
 * there.
 *
 * Context: any but hard interrupts; never sleeps.
 */
void kweir_io_push(struct kweir_io *io);
void kweir_session_serve(struct kweir_session *session);

#endif
