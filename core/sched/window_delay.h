/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A learner driven by delay, after TIMELY (Mittal et al., SIGCOMM 2015, section 4). The trend
 * of the completion time matters more than its length. Windows of several processes that share a
 * NIC or a path converge to equal shares: all grow by the same steps and shrink in proportion.
 */
#ifndef WEIR_CORE_SCHED_WINDOW_DELAY_H
#define WEIR_CORE_SCHED_WINDOW_DELAY_H

#include "core/sched/window_unit.h"

/**
 * struct weir_window_delay - state of the learner
 * @learner: for weir_window_set_learner()
 * @unit: the limit that it moves, and the unit of @limit, @home, @done and @in_flight_max
 * @limit: the present limit, as exactly as the steps want it
 * @base_ns: completion time without a queue, as last measured, or 0
 * @mean_ns: mean completion time of the last round, or 0
 * @trend_ns: smoothed change of @mean_ns between rounds
 * @calm: consecutive rounds without a queue
 * @rounds: rounds since @base_ns was measured
 * @home: the limit to restore after measuring
 * @measure_ns: start of the current measurement of @base_ns, or 0
 * @count: completions in the current round
 * @sum_ns: completion times in the current round
 * @done: completed in the current round
 * @in_flight_max: the most in flight in the current round
 *
 * A round is one window's worth of completions.
 */
struct weir_window_delay {
	struct weir_window_learner learner;
	enum weir_window_unit unit;
	uint64_t limit;
	uint64_t base_ns;
	uint64_t mean_ns;
	int64_t trend_ns;
	uint32_t calm;
	uint32_t rounds;
	uint64_t home;
	uint64_t measure_ns;
	uint32_t count;
	uint64_t sum_ns;
	uint64_t done;
	uint64_t in_flight_max;
};

/**
 * weir_window_delay_init() - initialise the learner
 * @d: to be initialised; pass &d->learner to weir_window_set_learner()
 * @unit: the limit to move
 *
 * Context: Any.
 */
void weir_window_delay_init(struct weir_window_delay *d, enum weir_window_unit unit);

#endif
