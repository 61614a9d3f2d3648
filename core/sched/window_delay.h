/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A window policy that listens to delay, in the manner of TIMELY (Mittal et al., SIGCOMM 2015,
 * section 4): what matters is less how long completions take than whether it is getting
 * longer. Several of them that share a NIC or a path, each in its own process, come to share
 * it evenly, for all grow by the same steps and shrink in proportion.
 */
#ifndef WEIR_CORE_SCHED_WINDOW_DELAY_H
#define WEIR_CORE_SCHED_WINDOW_DELAY_H

#include "core/sched/window.h"

/**
 * struct weir_window_delay - what it remembers
 * @policy: for weir_window_set_policy()
 * @base_ns: how long a completion takes with no queue before it, as far as known, or 0
 * @mean_ns: how long they took in the last round, or 0
 * @trend_ns: by how much that grows from round to round, smoothed
 * @calm: rounds in a row without a queue
 * @rounds: since @base_ns was measured
 * @home: the limit to come back to when it has been
 * @measure_ns: when measuring it began, or 0
 * @count, @sum_ns, @bytes, @in_flight_max: of the round that goes on
 *
 * A round is one window's worth of completions.
 */
struct weir_window_delay {
	struct weir_window_policy policy;
	uint64_t base_ns;
	uint64_t mean_ns;
	int64_t trend_ns;
	uint32_t calm;
	uint32_t rounds;
	uint64_t home;
	uint64_t measure_ns;
	uint32_t count;
	uint64_t sum_ns;
	uint64_t bytes;
	uint64_t in_flight_max;
};

/**
 * weir_window_delay_init() - one that knows nothing yet
 * @d: to be initialised; hand &d->policy to weir_window_set_policy()
 *
 * Context: Any.
 */
void weir_window_delay_init(struct weir_window_delay *d);

#endif
