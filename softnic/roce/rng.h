/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Seeded random numbers of softnic: splitmix64 (Steele, Lea and Flood, OOPSLA 2014). Secrets come
 * from getrandom() instead.
 */
#ifndef WEIR_SOFTNIC_ROCE_RNG_H
#define WEIR_SOFTNIC_ROCE_RNG_H

#include <stdint.h>

/** roce_rng_next() - the next 64 bits of the stream whose state is @state, any number first */
static inline uint64_t roce_rng_next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/** roce_rng_hash() - 64 bits that follow from @x alone */
static inline uint64_t roce_rng_hash(uint64_t x)
{
	return roce_rng_next(&x);
}

#endif
