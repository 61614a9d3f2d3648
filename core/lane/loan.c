/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/lane/loan.h"

#define PAUSE_MAX 65536 /* chances */
#define PAUSE_IF_SLOW 1024
#define GAIN_MIN 256 /* requests that pay for lending the lanes */
#define TRIAL_MIN 1024 /* requests that show the rate of lanes */
#define ENGINE_MIN 4096 /* and of the engine, which begins with a burst */
#define REFUSALS 16 /* then lanes that were slow are tried again */

static void be_rarer(struct weir_loans *loans)
{
	if (loans->pause < PAUSE_MAX)
		loans->pause = 2 * loans->pause + 1;
	weir_store_release(&loans->paused, loans->pause);
}

static void count_from(struct weir_loans *loans, uint64_t requests, uint64_t wrs, uint64_t now_ns)
{
	loans->requests = requests;
	loans->wrs = wrs;
	loans->since_ns = now_ns;
}

/* Requests a millisecond, at least 1. */
static uint64_t rate_of(uint64_t requests, uint64_t ns)
{
	return 1 + (ns / 1000 ? requests * 1000 / (ns / 1000) : 0);
}

/* The engine has merged more than an eighth of the requests. */
static bool is_merging(uint64_t requests, uint64_t wrs)
{
	return requests > wrs + requests / 8;
}

static bool are_slow(const struct weir_loans *loans)
{
	return loans->slow == WEIR_LOAN_SLOW_MAX;
}

static bool refuse(struct weir_loans *loans)
{
	if (++loans->refused % REFUSALS == 0)
		loans->slow = WEIR_LOAN_SLOW_MAX - 1;
	weir_store_release(&loans->paused, PAUSE_IF_SLOW);
	return false;
}

bool weir_loans_is_chance(struct weir_loans *loans, uint64_t requests, uint64_t wrs,
			  uint64_t now_ns)
{
	uint64_t by_engine = requests - loans->requests, by_wrs = wrs - loans->wrs;
	uint32_t paused = weir_atomic_load(&loans->paused);

	if (paused) {
		weir_store_release(&loans->paused, paused - 1);
		return false;
	}
	if (!loans->since_ns)
		count_from(loans, requests, wrs, now_ns);
	else if (by_engine >= ENGINE_MIN)
		loans->engine_rate = rate_of(by_engine, now_ns - loans->since_ns);
	if (!loans->engine_rate)
		return false;
	count_from(loans, requests, wrs, now_ns);
	if (are_slow(loans) &&
	    (!loans->has_met || by_engine < ENGINE_MIN || is_merging(by_engine, by_wrs)))
		return refuse(loans);
	return true;
}

/*
 * Whether the engine does an eighth more. The lanes' time ends when they were last busy. Too short
 * a loan shows nothing.
 */
static void compare(struct weir_loans *loans, const struct weir_loan *loan)
{
	uint64_t rate;

	if (loan->done < TRIAL_MIN || loan->until_ns <= loans->since_ns)
		return;
	rate = rate_of(loan->done, loan->until_ns - loans->since_ns);
	loans->is_tried = rate + rate / 8 >= loans->engine_rate;
	loans->has_met = loan->has_met;
	if (loans->is_tried)
		loans->slow = 0;
	else if (!are_slow(loans))
		loans->slow++;
}

void weir_loans_ended(struct weir_loans *loans, const struct weir_loan *loan, uint64_t requests,
		      uint64_t wrs, uint64_t now_ns)
{
	compare(loans, loan);
	count_from(loans, requests, wrs, now_ns);
	if (are_slow(loans)) {
		weir_store_release(&loans->paused, PAUSE_IF_SLOW);
	} else if (loan->done < GAIN_MIN + WEIR_LOAN_WAIT_COST * loan->waited) {
		be_rarer(loans);
	} else {
		loans->pause = 0;
		weir_store_release(&loans->paused, 0);
	}
}

void weir_loans_failed(struct weir_loans *loans)
{
	be_rarer(loans);
}
