/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The bulk beside a measurement: a session of its own, in this process and on the same NIC, whose
 * thread keeps long writes in flight.
 */
#ifndef WEIR_APPS_PERF_BESIDE_H
#define WEIR_APPS_PERF_BESIDE_H

#include "apps/perf/options.h"

struct beside;

/*
 * Starts the writes to the first donor. @beside: NULL without --beside. Return: 0, or an exit
 * status after a message. The caller owes a beside_stop() in any case.
 */
int beside_start(const struct perf_options *options, struct beside **beside);

/* Bytes written so far. Context: any thread. */
uint64_t beside_bytes(const struct beside *beside);

/* Ends the writes and the session. Return: 0, or an exit status if a write has failed. */
int beside_stop(const struct perf_options *options, struct beside *beside);

#endif
