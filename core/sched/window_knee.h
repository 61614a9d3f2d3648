/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A learner that finds the knee of throughput: the smallest window with which the NIC reaches its
 * full rate. Beyond the knee, more in flight only waits longer, and finally thrashes the NIC's
 * caches (RDMAbox, figure 1). The learner ignores delay: it tries slightly larger and smaller
 * windows and keeps the better. The window counts bytes or work requests; so does throughput.
 */
#ifndef WEIR_CORE_SCHED_WINDOW_KNEE_H
#define WEIR_CORE_SCHED_WINDOW_KNEE_H

#include "core/sched/window_unit.h"

enum weir_window_knee_state {
	WEIR_KNEE_CLIMB, /* doubles the window while throughput follows */
	WEIR_KNEE_HOLD, /* stays at @home, and watches for a changed rate */
	WEIR_KNEE_MORE, /* tries a quarter more */
	WEIR_KNEE_LESS, /* tries a fifth less */
};

/**
 * struct weir_window_knee - state of the learner
 * @learner: for weir_window_set_learner()
 * @unit: the limit that it moves, and the unit of @home, @rate, @done and @in_flight_max
 * @state: an enum weir_window_knee_state
 * @home: the best window so far
 * @rate: throughput at @home, in 1024 ns
 * @held: rounds at @home since the last trial
 * @rest: rounds between trials
 * @settled: the NIC has filled up to the current limit, and the measurement runs
 * @since_ns: start of the measurement
 * @done: completed in this round
 * @in_flight_max: the most in flight in this round
 */
struct weir_window_knee {
	struct weir_window_learner learner;
	enum weir_window_unit unit;
	enum weir_window_knee_state state;
	uint64_t home;
	uint64_t rate;
	uint32_t held;
	uint32_t rest;
	bool settled;
	uint64_t since_ns;
	uint64_t done;
	uint64_t in_flight_max;
};

/**
 * weir_window_knee_init() - initialise the learner
 * @k: to be initialised; pass &k->learner to weir_window_set_learner()
 * @unit: the limit to move
 *
 * Context: Any.
 */
void weir_window_knee_init(struct weir_window_knee *k, enum weir_window_unit unit);

#endif
