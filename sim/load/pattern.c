/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Uses only sqrt() and the four operations: both give the same bits on every machine. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "sim/load/pattern.h"

#define ONE (1u << 12)

/* @x to the power of @hundredths: nested square roots, by the binary digits of the exponent. */
static double power(double x, uint64_t hundredths)
{
	uint64_t whole = hundredths / 100, part = hundredths % 100 * ONE / 100;
	double result = 1, root = x;

	for (; whole; whole--)
		result *= x;
	for (; part; part = part * 2 % ONE) {
		root = sqrt(root);
		if (part >= ONE / 2)
			result *= root;
	}
	return result;
}

int sim_zipf_init(struct sim_zipf *zipf, uint64_t count, uint64_t skew)
{
	double sum = 0;
	uint64_t i;

	zipf->count = count;
	zipf->upto = calloc(count, sizeof(*zipf->upto));
	if (!zipf->upto)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		zipf->upto[i] = sum += 1 / power((double)(i + 1), skew);
	return 0;
}

void sim_zipf_fini(struct sim_zipf *zipf)
{
	free(zipf->upto);
}

static uint64_t zipf_next(const struct sim_zipf *zipf, struct sim_rng *rng)
{
	double wanted = (double)(sim_rng_next(rng) >> 11) * 0x1p-53 * zipf->upto[zipf->count - 1];
	uint64_t low = 0, high = zipf->count - 1, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (zipf->upto[middle] > wanted)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static uint64_t places(const struct sim_load_settings *s)
{
	return s->region_bytes / s->size;
}

void sim_pattern_init(struct sim_pattern *pattern, const struct sim_load_settings *settings,
		      const struct sim_zipf *zipf, uint64_t seed, uint64_t number)
{
	uint64_t threads = settings->threads ? settings->threads : 1;

	*pattern = (struct sim_pattern){ .settings = settings, .zipf = zipf };
	sim_rng_init(&pattern->rng, seed, "pattern", number);
	pattern->first = settings->mrs * places(settings) / threads * (number % threads);
}

void sim_pattern_next(struct sim_pattern *pattern, uint64_t *region, uint64_t *offset)
{
	const struct sim_load_settings *s = pattern->settings;
	uint64_t place;

	switch (s->pattern) {
	case SIM_PATTERN_SEQ:
		place = (pattern->first + pattern->next++) % (s->mrs * places(s));
		break;
	case SIM_PATTERN_RANDOM:
		place = sim_rng_below(&pattern->rng, s->mrs * places(s));
		break;
	default:
		place = zipf_next(pattern->zipf, &pattern->rng) * places(s) +
			sim_rng_below(&pattern->rng, places(s));
		break;
	}
	*region = place / places(s);
	*offset = place % places(s) * s->size;
}
