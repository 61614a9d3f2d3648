/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lane: a channel lent to threads that post without the host's lock, one at a time, under a lock
 * of the lane. A lane takes reads and writes, and keeps them in flight between two threads.
 *
 * The engine lends lanes only while it has no request. The invariant: the holder of the host's lock
 * has taken all lanes back before doing anything else. A lane comes back with WRs that are still in
 * flight, or with none. So the engine, and all rules of the host's lock, never meet a lane.
 *
 * Order: a call that has returned has left its requests done, in the engine, in the inbox of
 * core/base/combine.h, or in flight on a lane. A thread on a lane makes sure that the inbox is
 * empty: weir_lane_may_post(). Requests in flight on lanes exclude each other by weir_claims, as in
 * the engine, and keep their claims until they are done, or until no thread posts on any lane.
 *
 * Context of all: Any; never sleeps; with the host's lock, unless noted.
 */
#ifndef WEIR_CORE_LANE_LANE_H
#define WEIR_CORE_LANE_LANE_H

#include "core/base/inbox.h"
#include "core/engine/engine.h"

#define WEIR_LANE_WRS 128u /* in flight on a lane */
#define WEIR_LANE_BYTES (512u << 10)
#define WEIR_LANE_CHAIN_BYTES (64u << 10) /* in one chain: a longer post would hold up others */
#define WEIR_LANE_ENDS 8
#define WEIR_LANE_MET_MAX 32

/**
 * struct weir_lane - one channel, lent or not; all zero at the start
 * @is_lent: written with both locks, and read with either
 * @channel: its number
 * @bytes_max, @wrs_max: what may be in flight, while lent
 * @bytes: in flight
 * @oldest, @posted: the WRs in flight, in the order posted: @posted slots from @oldest on
 * @wrs: a ring of @wrs_max slots, each with a WR of the engine
 * @ends: where the latest requests end in remote memory. @next_end: the oldest of them
 * @met: how many more of the latest requests began at such an end than did not
 */
struct weir_lane {
	bool is_lent;
	uint16_t channel;
	uint32_t bytes_max, wrs_max;
	uint32_t bytes;
	uint32_t oldest, posted;
	struct weir_wr *wrs[WEIR_LANE_WRS];
	uint64_t ends[WEIR_LANE_ENDS];
	uint32_t next_end, met;
};

/* What each lane of a session may have in flight. */
struct weir_lane_share {
	uint32_t bytes, wrs;
};

/**
 * weir_lane_may_lend() - whether the engine can do without all channels
 * @e: the engine
 * @lanes: how many lanes there will be
 * @share: receives what each may have in flight, at least a chain
 *
 * Half of the window stays with the engines. A window with a policy is not lent: the policy needs
 * the times of all WRs. A window with classes is not lent either: they decide who is next.
 *
 * Return: false if the engine has requests, or too little of the window is free.
 */
bool weir_lane_may_lend(const struct weir_engine *e, uint32_t lanes, struct weir_lane_share *share);

/**
 * weir_lane_lend() - lend a channel
 * @e: an engine
 * @lane: not lent
 * @channel: up, and without WRs in flight
 * @share: of weir_lane_may_lend(), with no event in between
 *
 * The engine must not be used until all lanes have come back.
 *
 * Return: false, with nothing changed, if the channel or the WRs do not suffice.
 */
bool weir_lane_lend(struct weir_engine *e, struct weir_lane *lane, uint16_t channel,
		    const struct weir_lane_share *share);

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
 * The WRs in flight belong to the engine now, chained from the oldest on. The host tells of each
 * completion, or that the WR was not posted.
 *
 * Return: the oldest WR in flight, or NULL.
 */
struct weir_wr *weir_lane_return(struct weir_engine *e, struct weir_lane *lane, uint64_t now_ns);

/*
 * Of the following, the caller has the lane's lock, and the lane is lent.
 */

/* Return: how many more WRs a thread may post. */
static inline uint32_t weir_lane_room(const struct weir_lane *lane)
{
	return lane->wrs_max - lane->posted;
}

/* Return: the slot that is @i slots after the oldest; @i is at most @wrs_max. */
static inline uint32_t weir_lane_slot(const struct weir_lane *lane, uint32_t i)
{
	uint32_t slot = lane->oldest + i;

	return slot < lane->wrs_max ? slot : slot - lane->wrs_max;
}

/* The WRs of the next @count free slots are in flight, @bytes long in all. */
static inline void weir_lane_add(struct weir_lane *lane, uint32_t count, uint32_t bytes)
{
	lane->posted += count;
	lane->bytes += bytes;
}

/* The oldest WR is done. Return: its slot, which is free now. */
static inline uint32_t weir_lane_pop(struct weir_lane *lane)
{
	uint32_t slot = lane->oldest;

	lane->bytes -= lane->wrs[slot]->length;
	lane->oldest = weir_lane_slot(lane, 1);
	lane->posted--;
	return slot;
}

/**
 * weir_lane_meet() - look for neighbours
 * @lane: the lane
 * @first, @length: of the next request, in remote memory
 *
 * A request that begins where another in flight ends could be one WR with it.
 */
static inline void weir_lane_meet(struct weir_lane *lane, uint64_t first, uint64_t length)
{
	uint32_t i;

	for (i = 0; i < WEIR_LANE_ENDS && lane->ends[i] != first; i++)
		;
	lane->ends[lane->next_end++ % WEIR_LANE_ENDS] = first + length;
	if (i < WEIR_LANE_ENDS && lane->posted)
		lane->met++;
	else if (lane->met)
		lane->met--;
}

/* Whether most requests have neighbours, so that the engine should have them: it merges. */
static inline bool weir_lane_has_met(const struct weir_lane *lane)
{
	return lane->met >= WEIR_LANE_MET_MAX;
}

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
