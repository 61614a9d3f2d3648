/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random numbers that a seed decides, one stream a purpose: what one purpose draws does not
 * change what another gets, so that a run stays comparable when something is added to it.
 *
 * Context of all: any; serialised by whoever owns the stream.
 */
#ifndef WEIR_SIM_EVENT_RNG_H
#define WEIR_SIM_EVENT_RNG_H

#include <stdint.h>

/* A stream; for its own hands only. */
struct sim_rng {
	uint64_t state[4];
};

/**
 * sim_rng_init() - begin a stream
 * @rng: to be initialised
 * @seed: of the run, any number
 * @purpose: what it is for; another purpose is another stream
 * @number: which of those that serve the same purpose
 */
void sim_rng_init(struct sim_rng *rng, uint64_t seed, const char *purpose, uint64_t number);

/* The next 64 bits. */
uint64_t sim_rng_next(struct sim_rng *rng);

/* One of 0 to @count - 1, each as likely; @count is at least 1. */
uint64_t sim_rng_below(struct sim_rng *rng, uint64_t count);

#endif
