/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Latencies of requests, by sampling. To time each request would read the clock twice, which costs
 * as much as all the rest of a small write on the fast path. So one request in 64 is timed, chosen
 * at random: the choice falls on reads and writes alike, however they alternate. The others pay for
 * a countdown, after their post.
 */
#ifndef WEIR_LIB_CLIENT_REQUEST_LATENCY_H
#define WEIR_LIB_CLIENT_REQUEST_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/platform.h"
#include "core/engine/request.h"

#define WEIR_LATENCY_GAP_MAX 127 /* from one that is timed to the next: 64 on average */

struct weir_request;

/**
 * struct weir_latency_sampler - chooses requests; serialised by the owner
 * @left: requests to come before the next one that is timed
 * @random: state of the generator
 */
struct weir_latency_sampler {
	uint32_t left;
	uint64_t random;
};

/* @seed: any number, another for each sampler. */
void weir_latency_init(struct weir_latency_sampler *sampler, uint64_t seed);

/* @request is to be timed, from its submitted_ns on. Draws @left, which counts @request too. */
void weir_latency_choose(struct weir_latency_sampler *sampler, struct weir_request *request);

/* The same, from now on. */
void weir_latency_begin(struct weir_latency_sampler *sampler, struct weir_request *request);

/*
 * A request that is timed has ended. Counts its latency, unless it failed. Context: with nic->lock
 * held.
 */
void weir_latency_end(struct weir_request *request);

/* Which of the session's histograms counts an operation: an enum weir_stats_shm_kind. */
static inline uint8_t weir_latency_kind(enum weir_op op)
{
	return op <= WEIR_OP_WRITE ? (uint8_t)op : WEIR_OP_CAS;
}

#endif
