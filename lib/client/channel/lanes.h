/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lanes: while threads compete for nic->lock, each posts and completes on a link of its own,
 * without the lock. core/lane/lane.h has the rules.
 *
 * A lane takes a read or a write of one registered piece, without a callback, which the device
 * completes during the post. If the device does not, the lanes are taken back, and lent less and
 * less often. Each lock of the NIC takes the lanes back: weir_combine_lock().
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
#include "lib/base/spinlock.h"
#include "lib/client/request/latency.h"

#define WEIR_LANE_TIMED_MAX 64

struct weir_nic;
struct weir_session;
struct weir_session_link;

/**
 * struct weir_session_lane - one link's; guarded by @lock
 * @lock: taken with nic->lock, or without; nic->lock is never waited for with this lock
 * @core: the core's lane; while not lent, guarded by nic->lock, and so are all below
 * @link: the link, in the NIC's inbox after a post that did not complete at once
 * @requests: one for each WR. NULL: the engine has got it
 * @wc: the @nr_wcs completions that the engine must still see
 * @accepted: how many WRs of the last chain the device has accepted, from the first one on
 * @late: a chain that is not done, which the engine has got; or NULL
 * @sampler: chooses the requests that are timed
 * @nr_timed, @timed: latencies of such requests, not yet in the session's histograms
 * @count: not yet in the session's counters
 */
struct weir_session_lane {
	struct weir_spinlock lock;
	struct weir_lane core;
	struct weir_session_link *link;
	struct weir_request *requests[WEIR_LANE_WRS];
	struct ibv_wc wc[2];
	int nr_wcs;
	uint32_t accepted;
	struct weir_wr *late;
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
 * struct weir_session_lanes - guarded by nic->lock, unless noted
 * @link: in the NIC's list of sessions whose lanes are lent; initialised
 * @are_lent: a hint for threads without the lock; atomic
 * @lane: @count of them, made when first lent
 * @claims: of all lanes
 * @pause: chances to lend the lanes that are left out, next time
 * @paused: of these, still to come; atomic to write
 */
struct weir_session_lanes {
	struct weir_list link;
	bool are_lent;
	struct weir_session_lane *lane;
	unsigned int count;
	struct weir_claims *claims;
	uint32_t pause, paused;
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
	__builtin_expect(__atomic_load_n(&(session)->lanes.are_lent, __ATOMIC_RELAXED), false)

/**
 * weir_lanes_transfer() - read and write on a lane
 * @transfers, @count: as weir_transfer_async()
 *
 * Context: any thread, without locks.
 * Return: how many of the first transfers have been submitted; the caller submits the rest.
 */
unsigned int weir_lanes_transfer(struct weir_session *session,
				 const struct weir_transfer *transfers, unsigned int count);

#endif
