/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The ways of weir in the benchmark loop of rival.c. */
#ifndef WEIR_BENCH_ENGINE_RIVAL_H
#define WEIR_BENCH_ENGINE_RIVAL_H

#include "bench/transport/transport.h"

extern const struct transport rival_hybrid, rival_single, rival_doorbell, rival_asleep;

#endif
