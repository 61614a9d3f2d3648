/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Random requests of all kinds on both paths, checked against a model of the memory. */
#ifndef WEIR_TESTS_PRELOAD_UNLOAD_MIX_H
#define WEIR_TESTS_PRELOAD_UNLOAD_MIX_H

#include "tests/preload/unload/drive.h"

/*
 * Runs rounds on a new pair: all reads, and the memory, match the model, and at least one write is
 * unloaded. Return: the counters small and unloaded of these rounds.
 */
struct diag_counters mix(unsigned int seed);

#endif
