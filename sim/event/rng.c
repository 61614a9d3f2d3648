/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * xoshiro256** by Blackman and Vigna, seeded by splitmix64 as they advise. Numbers below a bound
 * use Lemire's multiplication ("Fast Random Integer Generation in an Interval").
 */
#include "sim/event/rng.h"
#include "core/base/rng.h"

void sim_rng_init(struct sim_rng *rng, uint64_t seed, const char *purpose, uint64_t number)
{
	uint64_t state = seed;
	int i;

	for (; *purpose; purpose++)
		state = weir_rng_next(&state) ^ (unsigned char)*purpose;
	state = weir_rng_next(&state) ^ number;
	rng->tape = NULL;
	for (i = 0; i < 4; i++)
		rng->state[i] = weir_rng_next(&state);
}

static uint64_t rotate(uint64_t word, int bits)
{
	return word << bits | word >> (64 - bits);
}

/* A number of few bytes takes as many from the tape, so that a fuzzer sees a byte's effect. */
static uint64_t tape_next(struct sim_tape *tape, uint64_t most)
{
	uint64_t out = 0;

	for (; most && tape->left; most >>= 8, tape->left--)
		out = out << 8 | *tape->next++;
	return out;
}

static bool has_tape(const struct sim_rng *rng)
{
	return rng->tape && rng->tape->left;
}

uint64_t sim_rng_next(struct sim_rng *rng)
{
	uint64_t *s = rng->state, out = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;

	if (has_tape(rng))
		return tape_next(rng->tape, UINT64_MAX);
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate(s[3], 45);
	return out;
}

uint64_t sim_rng_below(struct sim_rng *rng, uint64_t count)
{
	uint64_t unfair = -count % count; /* low parts below this number occur too often */
	unsigned __int128 product;

	if (has_tape(rng))
		return tape_next(rng->tape, count - 1) % count;
	do {
		product = (unsigned __int128)sim_rng_next(rng) * count;
	} while ((uint64_t)product < unfair);
	return product >> 64;
}
