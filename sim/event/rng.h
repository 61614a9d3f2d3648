/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Seeded random numbers, a separate stream for each purpose. Draws for one purpose do not change
 * the numbers of another, so that runs stay comparable when a new purpose is added.
 *
 * Context of all: any; the stream's owner serialises.
 */
#ifndef WEIR_SIM_EVENT_RNG_H
#define WEIR_SIM_EVENT_RNG_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that decide draws, in order: @left of them at @next. */
struct sim_tape {
	const uint8_t *next;
	size_t left;
};

/* A stream; private to rng.c, except @tape: draws come from there first, if it is not NULL. */
struct sim_rng {
	uint64_t state[4];
	struct sim_tape *tape;
};

/**
 * sim_rng_init() - start a stream
 * @rng: the stream
 * @seed: seed of the run, any number
 * @purpose: name of the purpose; another name gives another stream
 * @number: index among streams of the same purpose
 */
void sim_rng_init(struct sim_rng *rng, uint64_t seed, const char *purpose, uint64_t number);

/* The next 64 bits. */
uint64_t sim_rng_next(struct sim_rng *rng);

/* A number from 0 to @count - 1, uniformly; @count is at least 1. */
uint64_t sim_rng_below(struct sim_rng *rng, uint64_t count);

#endif
