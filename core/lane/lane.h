/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lane: a channel lent to threads that post without the host's lock, one at a time, under a lock
 * of the lane. A lane takes reads and writes that the device completes while they are posted, so
 * that between two threads nothing is in flight.
 *
 * The engine lends lanes only while it has no request. The invariant: the holder of the host's lock
 * has taken all lanes back before doing anything else. A lane comes back with a chain that is still
 * in flight, or with none. So the engine, and all rules of the host's lock, never meet a lane.
 *
 * Order: a call that has returned has left its requests done, in the engine, or in the inbox of
 * core/base/combine.h. A thread on a lane makes sure that the inbox is empty: weir_lane_may_post().
 * Requests of calls that overlap in time exclude each other by weir_claims, as in the engine.
 *
 * Context of all: Any; never sleeps; with the host's lock, unless noted.
 */
#ifndef WEIR_CORE_LANE_LANE_H
#define WEIR_CORE_LANE_LANE_H

#include "core/base/inbox.h"
#include "core/engine/engine.h"

#define WEIR_LANE_WRS WEIR_BATCH_MAX /* of one chain */
#define WEIR_LANE_BYTES (64u << 10) /* in flight on a lane: a longer post would hold up others */

/**
 * struct weir_lane - one channel, lent or not; all zero at the start
 * @is_lent: written with both locks, and read with either
 * @channel: its number
 * @wrs: the engine's WRs. The lane keeps those that it has not used
 * @posted: how many of @wrs carry requests that are not done, from the first one on; 0 while no
 *	thread posts
 */
struct weir_lane {
	bool is_lent;
	uint16_t channel;
	uint32_t posted;
	struct weir_wr *wrs[WEIR_LANE_WRS];
};

/**
 * weir_lane_may_lend() - whether the engine can do without all channels
 * @e: the engine
 * @lanes: how many lanes there will be
 *
 * Half of the window stays with the engines. A window with a policy is not lent: the policy needs
 * the times of all WRs.
 *
 * Return: false if the engine has requests, or too little of the window is free.
 */
bool weir_lane_may_lend(const struct weir_engine *e, uint32_t lanes);

/**
 * weir_lane_lend() - lend a channel
 * @e: an engine
 * @lane: not lent
 * @channel: up, and without WRs in flight
 *
 * After a weir_lane_may_lend(). The engine must not be used until all lanes have come back.
 *
 * Return: false, with nothing changed, if the channel or the WRs do not suffice.
 */
bool weir_lane_lend(struct weir_engine *e, struct weir_lane *lane, uint16_t channel);

/* Ends the loan: from here on no thread posts. With the lane's lock. Return: it was lent. */
static inline bool weir_lane_close(struct weir_lane *lane)
{
	bool was_lent = lane->is_lent;

	lane->is_lent = false;
	return was_lent;
}

/**
 * weir_lane_return() - take a channel back
 * @e: the engine, all of whose lanes are closed: weir_lane_close()
 * @lane: was lent. The requests of the WRs in flight have deadlines
 * @now_ns: the time; only if WRs are in flight
 *
 * The WRs posted, chained, belong to the engine now. The host tells of each completion, or that the
 * WR was not posted.
 */
void weir_lane_return(struct weir_engine *e, struct weir_lane *lane, uint64_t now_ns);

/**
 * weir_lane_may_post() - whether a thread may post on a lane
 * @lane: with the lane's lock, and without the host's
 * @inbox: of the host's lock
 *
 * A request in the inbox may be before the caller's. The holder of the host's lock takes the lanes
 * back before emptying the inbox, and lends them only while the engine has no request. So if the
 * lane is lent, a request before the caller's is done, or still in the inbox.
 */
static inline bool weir_lane_may_post(const struct weir_lane *lane, const struct weir_inbox *inbox)
{
	return lane->is_lent && !weir_inbox_may_have(inbox);
}

#endif
