/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A quarter more room must raise throughput by a twentieth; a fifth less room may lower it by a
 * fortieth. Throughput is proportional to the window below the knee and constant above, far from
 * both thresholds. A smaller window is compared with the best rate so far, so that small losses
 * cannot add up.
 *
 * Trials disturb the traffic, so failed trials become rarer until the rate changes by itself.
 */
#include "core/sched/window_knee.h"

#define ROUND 8 /* windows' worth of completions in a round */
#define REST_MAX 32 /* rounds */

static uint64_t start_round(struct weir_window_knee *k, enum weir_window_knee_state state,
			    uint64_t limit)
{
	k->state = state;
	k->settled = false;
	k->done = 0;
	k->in_flight_max = 0;
	return limit;
}

static uint64_t hold_home(struct weir_window_knee *k)
{
	return start_round(k, WEIR_KNEE_HOLD, k->home);
}

static uint64_t try_more(struct weir_window_knee *k)
{
	return start_round(k, WEIR_KNEE_MORE, k->home + k->home / 4);
}

static uint64_t try_less(struct weir_window_knee *k)
{
	return start_round(k, WEIR_KNEE_LESS, k->home - k->home / 5);
}

static void move_home(struct weir_window_knee *k, uint64_t home)
{
	k->home = home;
	k->rest = 1;
}

static uint64_t end_climb(struct weir_window_knee *k, uint64_t limit, uint64_t rate)
{
	if (rate < k->rate + k->rate / 4 || k->home == limit)
		return hold_home(k);
	k->rate = rate;
	move_home(k, limit);
	return start_round(k, WEIR_KNEE_CLIMB, 2 * limit);
}

/* Holds the window until a trial is due. A changed rate makes trials frequent again. */
static uint64_t held(struct weir_window_knee *k, uint64_t rate)
{
	bool changed = rate > k->rate + k->rate / 8 || rate < k->rate - k->rate / 8;

	if (changed)
		k->rest = 1;
	if (changed || !k->held)
		k->rate = rate;
	if (++k->held < k->rest)
		return hold_home(k);
	k->held = 0;
	return try_more(k);
}

static uint64_t end_try_more(struct weir_window_knee *k, uint64_t limit, uint64_t rate)
{
	if (rate <= k->rate + k->rate / 20 || limit == k->home)
		return try_less(k);
	k->rate = rate;
	move_home(k, limit);
	return try_more(k);
}

static uint64_t end_try_less(struct weir_window_knee *k, uint64_t limit, uint64_t rate)
{
	if (rate >= k->rate - k->rate / 40 && limit < k->home) {
		move_home(k, limit);
		return try_less(k);
	}
	if (k->rest < REST_MAX)
		k->rest *= 2;
	return hold_home(k);
}

static uint64_t end_round(struct weir_window_knee *k, uint64_t limit, uint64_t rate)
{
	switch (k->state) {
	case WEIR_KNEE_CLIMB:
		return end_climb(k, limit, rate);
	case WEIR_KNEE_MORE:
		return end_try_more(k, limit, rate);
	case WEIR_KNEE_LESS:
		return end_try_less(k, limit, rate);
	case WEIR_KNEE_HOLD:
		break;
	}
	return held(k, rate);
}

static uint64_t next_limit(struct weir_window_knee *k, const struct weir_window *w,
			   const struct weir_window_success *success)
{
	uint64_t in_flight = weir_window_unit_in_flight(success, k->unit);
	uint64_t limit = weir_window_unit_limit(w, k->unit), elapsed_ns;

	k->done += weir_window_unit_size(success, k->unit);
	if (k->in_flight_max < in_flight)
		k->in_flight_max = in_flight;
	if (!k->settled && k->done >= limit) {
		k->settled = true;
		k->since_ns = success->now_ns;
		k->done = 0;
		k->in_flight_max = 0;
	}
	if (!k->settled || k->done < ROUND * limit || success->now_ns == k->since_ns)
		return limit;
	if (!weir_window_unit_is_filled_by(w, k->unit, k->in_flight_max))
		return start_round(k, k->state, limit);
	elapsed_ns = success->now_ns - k->since_ns;
	return end_round(k, limit, (k->done << 10) / elapsed_ns);
}

static void completed(struct weir_window_learner *learner, const struct weir_window *w,
		      const struct weir_window_success *success, struct weir_window_bounds *limits)
{
	struct weir_window_knee *k = container_of(learner, struct weir_window_knee, learner);

	weir_window_unit_set(limits, k->unit, next_limit(k, w, success));
}

void weir_window_knee_init(struct weir_window_knee *k, enum weir_window_unit unit)
{
	memset(k, 0, sizeof(*k));
	k->learner.completed = completed;
	k->unit = unit;
	k->rest = 1;
}
