/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Seeded random numbers: splitmix64, a stream whose state is a single number.
 *
 * Context of all: any; the stream's owner serialises.
 */
#ifndef WEIR_CORE_BASE_RNG_H
#define WEIR_CORE_BASE_RNG_H

#include "core/base/platform.h"

/* The finalizer of splitmix64, which serves as a hash, too. */
static inline uint64_t weir_rng_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* The next 64 bits of splitmix64 (Steele, Lea and Flood, OOPSLA 2014). @state: any number first. */
static inline uint64_t weir_rng_next(uint64_t *state)
{
	return weir_rng_mix(*state += 0x9e3779b97f4a7c15ull);
}

/* Scales 64 random bits to a number from 0 to @count - 1, nearly uniformly if @count is small. */
static inline uint64_t weir_rng_scale(uint64_t bits, uint64_t count)
{
	return (uint64_t)((unsigned __int128)bits * count >> 64);
}

#endif
