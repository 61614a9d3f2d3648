/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Random requests of all kinds by both paths, and a naive memory beside them. */
#ifndef WEIR_TESTS_PRELOAD_UNLOAD_MIX_H
#define WEIR_TESTS_PRELOAD_UNLOAD_MIX_H

#include "tests/preload/unload/drive.h"

/*
 * Some rounds on a new pair: whatever is read, or is there, is what the naive memory has. At least
 * one write is unloaded. Return: small and unloaded are of those rounds.
 */
struct diag_counters mix(unsigned int seed);

#endif
