/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When to lend a session's lanes, and for how long. Lending costs a round trip in which all threads
 * wait, so it must pay: loans that gain little are made less and less often. The engine may serve
 * better, because it merges neighbours and shares a doorbell, or worse, because one thread at a
 * time does it. So the rates of both ways decide, and the slower one is tried from time to time.
 *
 * Context of all: Any; never sleeps; with the host's lock, unless noted.
 */
#ifndef WEIR_CORE_LANE_LOAN_H
#define WEIR_CORE_LANE_LOAN_H

#include "core/base/platform.h"

#define WEIR_LOAN_CHAINS 16384 /* on one lane: then counters are brought up to date */
#define WEIR_LOAN_CLOCK_CHAINS 64 /* between two looks at the clock */
#define WEIR_LOAN_TRIAL_NS (2 * WEIR_NS_PER_MS) /* a burst shows nothing */
#define WEIR_LOAN_SLOW_MAX 3 /* then lanes are slow: one loan may have had bad luck */
#define WEIR_LOAN_WAITS 64
#define WEIR_LOAN_WAIT_COST 8 /* requests that pay for one that waited */

/**
 * struct weir_loans - of one session; all zero at the start
 * @pause: chances to lend the lanes that are left out, next time
 * @paused: of these, still to come; atomic to write
 * @refused: chances refused because the engine was faster
 * @requests, @wrs, @since_ns: the session's, when the lanes were last lent or came back
 * @engine_rate: requests a millisecond by the engine; 0: not known yet
 * @slow: loans in a row in which the lanes did less than the engine; at most WEIR_LOAN_SLOW_MAX
 * @has_met: neighbours met in the last one
 * @is_tried: the last loan has shown that the lanes do more
 */
struct weir_loans {
	uint32_t pause, paused, refused;
	uint64_t requests, wrs, since_ns;
	uint64_t engine_rate;
	uint32_t slow;
	bool has_met, is_tried;
};

/**
 * struct weir_loan - a loan so far, on one lane or over all; all zero at the start
 * @done: requests
 * @waited: of them, for a claim or for room
 * @chains: posted
 * @timed: of them, before the last look at the clock, at @until_ns
 * @has_met: weir_lane_has_met() on a lane
 */
struct weir_loan {
	uint64_t done, waited;
	uint64_t chains, timed, until_ns;
	bool has_met;
};

/**
 * weir_loans_is_chance() - whether to lend the lanes now, if it is possible
 * @loans: the session's
 * @requests, @wrs: how many the session has submitted and posted so far
 * @now_ns: the time
 *
 * To be called when threads find the host's lock taken. Lanes wait until the engine has shown what
 * it does. If true, the caller owes a weir_loans_ended() or a weir_loans_failed().
 */
bool weir_loans_is_chance(struct weir_loans *loans, uint64_t requests, uint64_t wrs,
			  uint64_t now_ns);

/* Down to weir_loan_add(): with the lock of the lane. */

static inline bool weir_loan_needs_time(const struct weir_loan *lane)
{
	return lane->chains - lane->timed >= WEIR_LOAN_CLOCK_CHAINS;
}

static inline void weir_loan_note_time(struct weir_loan *lane, uint64_t now_ns)
{
	lane->timed = lane->chains;
	lane->until_ns = now_ns;
}

/*
 * Whether a loan should end, by what one lane has done. @loans: of the lane's session; they do not
 * change while the lane is lent.
 */
static inline bool weir_loans_is_over(const struct weir_loans *loans, const struct weir_loan *lane)
{
	return lane->chains >= WEIR_LOAN_CHAINS ||
	       (!loans->is_tried && lane->until_ns >= loans->since_ns + WEIR_LOAN_TRIAL_NS) ||
	       (lane->waited >= WEIR_LOAN_WAITS && lane->waited * WEIR_LOAN_WAIT_COST > lane->done);
}

/* Adds what one lane has done to the loan of all. */
static inline void weir_loan_add(struct weir_loan *all, const struct weir_loan *lane)
{
	all->done += lane->done;
	all->waited += lane->waited;
	all->has_met |= lane->has_met;
	if (all->until_ns < lane->until_ns)
		all->until_ns = lane->until_ns;
}

/* The lanes have come back. @loan: over all lanes. The other arguments are as above. */
void weir_loans_ended(struct weir_loans *loans, const struct weir_loan *loan, uint64_t requests,
		      uint64_t wrs, uint64_t now_ns);

/* The lanes could not be lent. */
void weir_loans_failed(struct weir_loans *loans);

#endif
