/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fuzz the engine: the input decides the draws of a hunt, which checks every step. */
#include <stdio.h>
#include <stdlib.h>

#include "sim/hunt/hunt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *broken = hunt_run_tape(data, size, 0);

	if (broken) {
		fprintf(stderr, "broken: %s\n", broken);
		abort();
	}
	return 0;
}
