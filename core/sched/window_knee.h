/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A window policy that finds the knee of throughput: the smallest window with which the NIC reaches
 * its full rate. Beyond the knee, more bytes in flight only wait longer, and finally thrash the
 * NIC's caches (RDMAbox, figure 1). The policy ignores delay: it tries slightly larger and smaller
 * windows and keeps the better.
 */
#ifndef WEIR_CORE_SCHED_WINDOW_KNEE_H
#define WEIR_CORE_SCHED_WINDOW_KNEE_H

#include "core/sched/window.h"

enum weir_window_knee_state {
	WEIR_KNEE_CLIMB, /* doubles the window while throughput follows */
	WEIR_KNEE_HOLD, /* stays at @home, and watches for a changed rate */
	WEIR_KNEE_MORE, /* tries a quarter more */
	WEIR_KNEE_LESS, /* tries a fifth less */
};

/**
 * struct weir_window_knee - state of the policy
 * @policy: for weir_window_set_policy()
 * @state: an enum weir_window_knee_state
 * @home: the best window so far, bytes
 * @rate: throughput at @home, bytes in 1024 ns
 * @held: rounds at @home since the last trial
 * @rest: rounds between trials
 * @settled: the NIC has filled up to the current limit, and the measurement runs
 * @since_ns: start of the measurement
 * @bytes: bytes completed in this round
 * @in_flight_max: most bytes in flight in this round
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
 * weir_window_knee_init() - initialise the policy
 * @k: to be initialised; pass &k->policy to weir_window_set_policy()
 *
 * Context: Any.
 */
void weir_window_knee_init(struct weir_window_knee *k);

#endif
