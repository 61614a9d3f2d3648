/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lanes: while threads compete for nic->lock, each posts and completes on a link of its own,
 * without the lock. core/lane/lane.h has the rules.
 *
 * A lane takes a read or a write of one registered piece, without a callback. The device may
 * complete it during the post, or later. Threads that post, or that wait for an event, look for
 * completions: weir_lanes_reap(). A thread about to sleep gives the lanes up. As long as requests
 * are in flight on lanes, the session's thread looks once a millisecond for completions that no
 * other thread takes. Each lock of the NIC takes the lanes back: weir_combine_lock().
 *
 * Lending waits until nothing is in flight. Meanwhile the threads that submit wait, too, for one
 * round trip. Lanes that gain little are lent less and less often.
 */
#ifndef WEIR_LIB_CLIENT_CHANNEL_LANES_H
#define WEIR_LIB_CLIENT_CHANNEL_LANES_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <weir/request.h>

#include "core/base/list.h"
#include "core/lane/claims.h"
#include "core/lane/lane.h"
#include "core/lane/loan.h"
#include "lib/base/spinlock.h"
#include "lib/client/request/latency.h"

#define WEIR_LANE_TIMED_MAX 64
#define WEIR_LANE_WCS 16

struct weir_nic;
struct weir_queue;
struct weir_session;
struct weir_session_link;
struct weir_waiter;

/**
 * struct weir_session_lane - one link's; guarded by @lock
 * @lock: taken with nic->lock, or without; nic->lock is never waited for with this lock
 * @core: the core's lane; while not lent, guarded by nic->lock, and so are all below
 * @link: the link. In the NIC's inbox if @is_given_up
 * @is_given_up: no thread posts or polls until the lanes have been taken back
 * @requests: one for each slot of @core. NULL: the engine has got it
 * @wc: the @nr_wcs completions that the engine must see
 * @refused: how many WRs in flight the device has refused, the last ones
 * @late: the WRs in flight, which the engine has got; or NULL
 * @loan: so far
 * @sampler: chooses the requests that are timed
 * @nr_timed, @timed: latencies of such requests, not yet in the session's histograms
 * @count: not yet in the session's counters
 */
struct weir_session_lane {
	struct weir_spinlock lock;
	struct weir_lane core;
	struct weir_session_link *link;
	bool is_given_up;
	struct weir_request *requests[WEIR_LANE_WRS];
	struct ibv_wc wc[WEIR_LANE_WCS];
	int nr_wcs;
	uint32_t refused;
	struct weir_wr *late;
	struct weir_loan loan;
	struct weir_latency_sampler sampler;
	uint32_t nr_timed;
	struct {
		uint64_t ns;
		uint8_t kind;
	} timed[WEIR_LANE_TIMED_MAX];
	struct {
		uint64_t requests, doorbells, chains, completions, inlined;
		uint64_t bytes_read, bytes_written;
	} count;
} __attribute__((aligned(64)));

/**
 * struct weir_lane_set - the lanes of a session
 * @next: in the list of unused sets
 * @are_lent: a hint for threads without the lock; atomic
 * @count: of @lane
 * @claims: of all lanes
 *
 * The memory is only reused for sets: a queue keeps the set that last posted for it, even when the
 * session is gone. A thread that uses such a set finds lanes that are not lent, or another
 * session's completions, which are as well taken now.
 */
struct weir_lane_set {
	struct weir_lane_set *next;
	bool are_lent;
	unsigned int count;
	struct weir_session_lane lane[WEIR_CHANNEL_MAX];
	struct weir_claims claims;
};

/* How a thread without the lock finds the lanes. */
enum weir_lanes_hint {
	WEIR_LANES_NONE,
	WEIR_LANES_LENT,
	WEIR_LANES_SOON, /* the lanes will be lent, or not, within a round trip */
};

/**
 * struct weir_session_lanes - guarded by nic->lock, unless noted
 * @link: in the NIC's list of sessions whose lanes are lent; initialised
 * @hint: an enum weir_lanes_hint; atomic
 * @set: the lanes, made when first lent
 * @is_watched: the session's thread looks after the lanes; atomic
 * @loans: when to lend
 */
struct weir_session_lanes {
	struct weir_list link;
	uint8_t hint;
	struct weir_lane_set *set;
	bool is_watched;
	struct weir_loans loans;
};

/* No lane is lent. */
void weir_lanes_fini(struct weir_session *session);

/*
 * Lends the lanes of a session, if threads contend for the lock and nothing is in flight. The
 * caller gives nic->lock back next, and touches no session meanwhile. Context: with nic->lock held.
 */
void weir_lanes_offer(struct weir_session *session);

/* Takes back all lanes of all sessions on a NIC. Context: with nic->lock held. */
void weir_lanes_recall(struct weir_nic *nic);

/* Whether it is worth trying weir_lanes_transfer(). Context: any thread. */
#define weir_lanes_are_lent(session) \
	__builtin_expect(__atomic_load_n(&(session)->lanes.hint, __ATOMIC_RELAXED), 0)

/**
 * weir_lanes_transfer() - read and write on a lane
 * @transfers, @count: as weir_transfer_async()
 *
 * Context: any thread, without locks.
 * Return: how many of the first transfers have been submitted; the caller submits the rest.
 */
unsigned int weir_lanes_transfer(struct weir_session *session,
				 const struct weir_transfer *transfers, unsigned int count);

/* Takes what has completed on lanes. Context: any thread, without locks. */
void weir_lanes_reap(struct weir_lane_set *set);

/*
 * Waits for an event of @queue, or for @waiter, as long as requests are in flight on lanes and
 * polling costs less than sleeping. If none has come, gives the lanes up: the session's thread will
 * serve. Context: any thread, without locks.
 */
void weir_lanes_await_event(struct weir_lane_set *set, const struct weir_queue *queue,
			    uint64_t deadline_ns);
void weir_lanes_await_done(struct weir_session *session, struct weir_waiter *waiter);

/*
 * Looks after the lanes until nothing is in flight, another event has come, or they want the lock:
 * a lane makes no progress. Context: the session's thread, without nic->lock, which it takes next.
 */
void weir_lanes_watch(struct weir_session *session);

#endif
