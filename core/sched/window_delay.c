/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * TIMELY sets a rate; this learner sets a window, and makes one step for each window's worth of
 * completions, about a round trip. TIMELY's thresholds of 50 and 500 us suit one network; here they
 * are multiples of the delay without a queue. Because paths change, that delay is measured again
 * now and then. The window closes to its minimum, and the first WR posted after the drain is the
 * sample.
 *
 * TIMELY's own rule between the thresholds has no fixed point, so the flows' shares are left to
 * chance. steer_by_trend() follows the patch by Zhu et al. (CoNEXT 2016), which has a fixed point.
 */
#include "core/sched/window_delay.h"

#define STEPS 4 /* one growth step is the smallest window divided by STEPS */
#define CALM_ROUNDS 5 /* rounds of short delay before faster growth ... */
#define CALM_STEPS 5 /* ... by this many steps; both are N of section 4.3 */
#define GENTLY 8 /* 1/beta of the patch */
#define MEASURE_ROUNDS 256

static uint64_t low_ns(const struct weir_window_delay *d)
{
	return d->base_ns + d->base_ns / 2;
}

static uint64_t high_ns(const struct weir_window_delay *d)
{
	return 4 * d->base_ns;
}

static uint64_t step_of(const struct weir_window_delay *d, const struct weir_window *w)
{
	return weir_window_unit_least(w, d->unit) / STEPS + 1;
}

static bool is_filled(const struct weir_window_delay *d, const struct weir_window *w)
{
	return weir_window_unit_is_filled_by(w, d->unit, d->in_flight_max);
}

/* There is no queue to speak of. */
static uint64_t grow_window(struct weir_window_delay *d, const struct weir_window *w)
{
	d->calm++;
	if (!is_filled(d, w))
		return d->limit;
	return d->limit + (d->calm >= CALM_ROUNDS ? CALM_STEPS : 1) * step_of(d, w);
}

/*
 * The queue is far too long: reduces the window by 4/5 of the excess (beta of TIMELY), at most by
 * half.
 */
static uint64_t shrink_window(struct weir_window_delay *d)
{
	uint64_t percent = 80 * (d->mean_ns - high_ns(d)) / d->mean_ns;

	d->calm = 0;
	return d->limit - d->limit / 100 * (percent < 50 ? percent : 50);
}

/*
 * Between the thresholds, follows the trend. A falling delay grows the window by steps; a rising
 * delay shrinks it in proportion to the queue; a constant delay does half of both. The window rests
 * where size times queue is a fixed number of steps, the same for all users of the queue.
 */
static uint64_t steer_by_trend(struct weir_window_delay *d, const struct weir_window *w)
{
	int64_t percent = 50 + 200 * d->trend_ns / (int64_t)d->base_ns;
	uint64_t down = percent < 0 ? 0 : percent > 100 ? 100 : (uint64_t)percent;
	uint64_t queue_percent = 100 * (d->mean_ns - low_ns(d)) / low_ns(d);
	uint64_t limit = d->limit;

	d->calm = 0;
	limit -= limit / GENTLY * down / 100 * queue_percent / 100;
	if (is_filled(d, w))
		limit += step_of(d, w) * (100 - down) / 100;
	return limit;
}

static uint64_t begin_measuring_base(struct weir_window_delay *d, const struct weir_window *w)
{
	d->rounds = 0;
	d->home = d->limit;
	d->measure_ns = w->now_ns;
	return weir_window_unit_least(w, d->unit);
}

static uint64_t measure_base(struct weir_window_delay *d, const struct weir_window *w,
			     const struct weir_window_success *success)
{
	uint64_t least = weir_window_unit_least(w, d->unit);

	if (success->posted_ns <= d->measure_ns ||
	    weir_window_unit_in_flight(success, d->unit) > least)
		return least;
	d->base_ns = success->now_ns - success->posted_ns + 1;
	d->measure_ns = 0;
	return d->home;
}

static uint64_t end_round(struct weir_window_delay *d, const struct weir_window *w,
			  uint64_t mean_ns)
{
	int64_t growth_ns = d->mean_ns ? (int64_t)(mean_ns - d->mean_ns) : 0;

	if (!d->base_ns || mean_ns < d->base_ns)
		d->base_ns = mean_ns;
	d->mean_ns = mean_ns;
	d->trend_ns = (d->trend_ns + 7 * growth_ns) / 8;
	if (mean_ns < low_ns(d))
		return grow_window(d, w);
	if (mean_ns > high_ns(d))
		return shrink_window(d);
	return steer_by_trend(d, w);
}

static uint64_t next_limit(struct weir_window_delay *d, const struct weir_window *w,
			   const struct weir_window_success *success)
{
	uint64_t in_flight = weir_window_unit_in_flight(success, d->unit), mean_ns, limit;

	if (d->measure_ns)
		return measure_base(d, w, success);
	d->count++;
	d->sum_ns += success->now_ns - success->posted_ns;
	d->done += weir_window_unit_size(success, d->unit);
	if (d->in_flight_max < in_flight)
		d->in_flight_max = in_flight;
	if (d->done < weir_window_unit_limit(w, d->unit))
		return d->limit;
	mean_ns = d->sum_ns / d->count + 1;
	limit = end_round(d, w, mean_ns);
	d->count = 0;
	d->sum_ns = d->done = d->in_flight_max = 0;
	return ++d->rounds < MEASURE_ROUNDS ? limit : begin_measuring_base(d, w);
}

static void completed(struct weir_window_learner *learner, const struct weir_window *w,
		      const struct weir_window_success *success, struct weir_window_bounds *limits)
{
	struct weir_window_delay *d = container_of(learner, struct weir_window_delay, learner);
	uint64_t limit = weir_window_unit_limit(w, d->unit);

	/* The window may have clamped the last limit. */
	if (d->limit - limit >= weir_window_unit_grain(d->unit))
		d->limit = limit;
	d->limit = next_limit(d, w, success);
	weir_window_unit_set(limits, d->unit, d->limit);
}

void weir_window_delay_init(struct weir_window_delay *d, enum weir_window_unit unit)
{
	memset(d, 0, sizeof(*d));
	d->learner.completed = completed;
	d->unit = unit;
}
