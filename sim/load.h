/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the threads of clients do: each keeps so many requests under way, over plain verbs
 * (load.c) or over weir's core (weirhost.h), and each request's time is taken.
 */
#ifndef WEIR_SIM_LOAD_H
#define WEIR_SIM_LOAD_H

#include "core/poll.h"
#include "sim/histogram.h"
#include "sim/pattern.h"
#include "sim/world.h"

/**
 * struct sim_tally - what has been done; begins as zeroes
 * @ops, @bytes: that completed
 * @latency_ps: each one's, from before it was submitted until its completion was seen
 * @empty_polls, @arms, @sleeps: of poll modes that may sleep
 * @contended, @takes: of locks that threads share
 */
struct sim_tally {
	uint64_t ops, bytes;
	struct sim_histogram latency_ps;
	uint64_t empty_polls, arms, sleeps;
	uint64_t contended, takes;
};

struct sim_loads;

/**
 * sim_loads_start() - begin one load on all clients
 * @world: the machines
 * @load: *kept*; what to do; over verbs
 * @loads: receives it, for sim_loads_stop()
 *
 * Return: 0, or -ENOMEM.
 */
int sim_loads_start(struct sim_world *world, const struct sim_load_settings *load,
		    struct sim_loads **loads);

/* Frees it, when the clock runs no more; NULL is fine. */
void sim_loads_stop(struct sim_loads *loads);

/* What it has done since it began, or since it was told to forget. */
const struct sim_tally *sim_loads_tally(struct sim_loads *loads);

/* Counts from now on. */
void sim_loads_forget(struct sim_loads *loads);

#endif
