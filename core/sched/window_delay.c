/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * TIMELY sets a rate; this policy sets a window, and makes one step for each window's worth of
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

static uint64_t step_bytes(const struct weir_window *w)
{
	return w->bytes_min / STEPS + 1;
}

/* There is no queue to speak of. */
static uint64_t grow_window(struct weir_window_delay *d, const struct weir_window *w)
{
	d->calm++;
	if (!weir_window_is_filled_by(w, d->in_flight_max))
		return w->bytes_max;
	return w->bytes_max + (d->calm >= CALM_ROUNDS ? CALM_STEPS * step_bytes(w) : step_bytes(w));
}

/*
 * The queue is far too long: reduces the window by 4/5 of the excess (beta of TIMELY), at most by
 * half.
 */
static uint64_t shrink_window(struct weir_window_delay *d, const struct weir_window *w)
{
	uint64_t percent = 80 * (d->mean_ns - high_ns(d)) / d->mean_ns;

	d->calm = 0;
	return w->bytes_max - w->bytes_max / 100 * (percent < 50 ? percent : 50);
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
	uint64_t limit = w->bytes_max;

	d->calm = 0;
	limit -= limit / GENTLY * down / 100 * queue_percent / 100;
	if (weir_window_is_filled_by(w, d->in_flight_max))
		limit += step_bytes(w) * (100 - down) / 100;
	return limit;
}

static uint64_t begin_measuring_base(struct weir_window_delay *d, const struct weir_window *w)
{
	d->rounds = 0;
	d->home = w->bytes_max;
	d->measure_ns = w->now_ns;
	return w->bytes_min;
}

static uint64_t measure_base(struct weir_window_delay *d, const struct weir_window *w,
			     const struct weir_window_sample *sample)
{
	if (sample->posted_ns <= d->measure_ns || sample->in_flight > w->bytes_min)
		return w->bytes_min;
	d->base_ns = sample->now_ns - sample->posted_ns + 1;
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
		return shrink_window(d, w);
	return steer_by_trend(d, w);
}

static uint64_t completed(struct weir_window_policy *policy, const struct weir_window *w,
			  const struct weir_window_sample *sample)
{
	struct weir_window_delay *d = container_of(policy, struct weir_window_delay, policy);
	uint64_t mean_ns, limit;

	if (d->measure_ns)
		return measure_base(d, w, sample);
	d->count++;
	d->sum_ns += sample->now_ns - sample->posted_ns;
	d->bytes += sample->bytes;
	if (d->in_flight_max < sample->in_flight)
		d->in_flight_max = sample->in_flight;
	if (d->bytes < w->bytes_max)
		return w->bytes_max;
	mean_ns = d->sum_ns / d->count + 1;
	limit = end_round(d, w, mean_ns);
	d->count = 0;
	d->sum_ns = d->bytes = d->in_flight_max = 0;
	return ++d->rounds < MEASURE_ROUNDS ? limit : begin_measuring_base(d, w);
}

void weir_window_delay_init(struct weir_window_delay *d)
{
	memset(d, 0, sizeof(*d));
	d->policy.completed = completed;
}
