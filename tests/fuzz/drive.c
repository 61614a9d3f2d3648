/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Run a fuzz target without libFuzzer, with any compiler: on given files, or on inputs
 * generated from a seed.
 *
 *   drive FILE...        repeat a crash, or run a corpus
 *   drive SEED COUNT     COUNT inputs; a SEED always makes the same inputs
 */
#include "core/base/rng.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t input[INPUT_MAX];

static void make_up(uint64_t seed, long count)
{
	long i;

	for (i = 0; i < count; i++) {
		size_t j, size = weir_rng_next(&seed) % INPUT_MAX;

		for (j = 0; j < size; j++)
			input[j] = (uint8_t)weir_rng_next(&seed);
		LLVMFuzzerTestOneInput(input, size);
	}
}

static int run_file(const char *name)
{
	FILE *file = fopen(name, "rb");

	if (!file) {
		perror(name);
		return 1;
	}
	LLVMFuzzerTestOneInput(input, fread(input, 1, sizeof(input), file));
	fclose(file);
	return 0;
}

int main(int argc, char **argv)
{
	char *end = NULL;
	uint64_t seed;
	int i, rc = 0;

	if (argc == 3) {
		seed = strtoull(argv[1], &end, 0);
		if (!*end) {
			make_up(seed, strtol(argv[2], NULL, 0));
			return 0;
		}
	}
	for (i = 1; i < argc; i++)
		rc |= run_file(argv[i]);
	return rc;
}
