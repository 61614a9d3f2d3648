/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A window policy that finds the knee of throughput by itself: the smallest window with which
 * the NIC does what it can (RDMAbox, figure 1: beyond it, more in flight only waits longer,
 * and in the end thrashes the NIC's caches). It assumes nothing about delay; it tries a
 * little more and a little less and keeps what is better.
 */
#ifndef WEIR_CORE_SCHED_WINDOW_KNEE_H
#define WEIR_CORE_SCHED_WINDOW_KNEE_H

#include "core/sched/window.h"

enum weir_window_knee_state {
	WEIR_KNEE_CLIMB, /* doubles while that pays */
	WEIR_KNEE_HOLD, /* stays at home, and looks whether it is as fast as it was */
	WEIR_KNEE_MORE, /* tries a quarter more */
	WEIR_KNEE_LESS, /* tries a fifth less */
};

/**
 * struct weir_window_knee - what it remembers
 * @policy: for weir_window_set_policy()
 * @state: an enum weir_window_knee_state
 * @home: the best window so far, bytes
 * @rate: what it yields, bytes in 1024 ns
 * @held: rounds at @home since it last tried
 * @rest: after so many it tries again
 * @settled: the NIC has filled with the limit as it is, and is being measured
 * @since_ns, @bytes, @in_flight_max: of the round that goes on
 */
struct weir_window_knee {
	struct weir_window_policy policy;
	enum weir_window_knee_state state;
	uint64_t home;
	uint64_t rate;
	uint32_t held;
	uint32_t rest;
	bool settled;
	uint64_t since_ns;
	uint64_t bytes;
	uint64_t in_flight_max;
};

/**
 * weir_window_knee_init() - one that knows nothing yet
 * @k: to be initialised; hand &k->policy to weir_window_set_policy()
 *
 * Context: Any.
 */
void weir_window_knee_init(struct weir_window_knee *k);

#endif
