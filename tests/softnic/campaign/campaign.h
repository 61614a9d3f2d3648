/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A campaign: random operations between processes with random faults, over and over.
 *
 * Each run has a seed. A judge starts workers. Each worker has a queue pair, a "lane", to every
 * other worker, and uses all operations of that queue pair: writes, reads, sends and atomics,
 * with immediates and inline. A lane is RC (with a separate or a shared receive queue), UC or
 * UD. The target memory and the log of each lane lie in a shared mapping, the world. A log
 * names each operation and the result. So the judge can replay the logs on plain memory and
 * compare, whichever worker was killed.
 *
 * A seed repeats the operations and transport of each lane, the faults of each worker, and the
 * disturbances from outside, but not the interleaving of lanes nor the time of a disturbance.
 */
#ifndef WEIR_TESTS_SOFTNIC_CAMPAIGN_CAMPAIGN_H
#define WEIR_TESTS_SOFTNIC_CAMPAIGN_CAMPAIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/rng.h"

enum {
	WORKERS_MAX = 4,
	OPS_MAX = 48, /* per lane */
	ZONE = 128 << 10, /* bytes of a target's memory for each source */
	/* at the start of a zone: a word for fetch-and-add, a word for compare-and-swap */
	COUNTER_BYTES = 64,
	SWAP_AT = 8,
	INLINE_MAX = 64,
	MESSAGE_MAX = 4096,
	PATIENCE_MS = 60000,
};

enum op_kind {
	KIND_SEND,
	KIND_SEND_IMM,
	KIND_WRITE,
	KIND_WRITE_IMM,
	KIND_READ,
	KIND_ADD,
	KIND_SWAP,
	KINDS
};

/*
 * Both lanes between two workers use the same transport. A datagram can do the kinds before
 * KINDS_UD.
 */
enum campaign_transport { RC, UC, UD, TRANSPORTS };
enum { KINDS_UD = KIND_WRITE, KINDS_UC = KIND_READ };

enum op_state { OP_NONE, OP_POSTED, OP_DONE, OP_FAILED, OP_FLUSHED };

struct campaign_op {
	enum op_kind kind;
	uint32_t offset, length;
	bool is_inline;
	uint64_t fill; /* seed of its bytes */
	uint32_t state; /* enum op_state; written by the source */
};

struct campaign_lane {
	struct campaign_op ops[OPS_MAX];
	uint32_t num_ops;
	uint32_t received; /* arrived messages and immediates; written by the target */
	uint32_t qpn; /* written by the source */
};

struct campaign_world {
	uint64_t seed;
	uint32_t workers;
	uint32_t rkeys[WORKERS_MAX]; /* of zones[target] */
	uint64_t addrs[WORKERS_MAX];
	struct campaign_lane lanes[WORKERS_MAX][WORKERS_MAX]; /* [source][target] */
	uint8_t zones[WORKERS_MAX][WORKERS_MAX][ZONE]; /* [target][source] */
};

/* The judge announces a phase; the worker reports the phase as done. */
enum campaign_phase { PHASE_OPEN, PHASE_CONNECT, PHASE_WORK, PHASE_CLOSE, PHASES };

static inline uint32_t random_below(uint64_t *state, uint32_t n)
{
	return weir_rng_next(state) % n;
}

/* Half of the lanes are RC. */
static inline enum campaign_transport transport_between(uint64_t seed, uint32_t a, uint32_t b)
{
	uint64_t random = seed * WORKERS_MAX * WORKERS_MAX +
			  (a < b ? a * WORKERS_MAX + b : b * WORKERS_MAX + a);
	uint32_t die = random_below(&random, 4);

	return die < 2 ? RC : die == 2 ? UC : UD;
}

static inline bool kind_writes(enum op_kind kind)
{
	return kind == KIND_WRITE || kind == KIND_WRITE_IMM;
}

/* The operation consumes a receive of the target. */
static inline bool kind_is_received(enum op_kind kind)
{
	return kind == KIND_SEND || kind == KIND_SEND_IMM || kind == KIND_WRITE_IMM;
}

/* Byte @k of an operation's data. */
static inline uint8_t op_byte(const struct campaign_op *op, uint32_t k)
{
	return op->fill + k * 7 + (k >> 8);
}

/**
 * worker_play() - be worker @self of a world; the judge announces phases over @fd
 *
 * Return: the exit status.
 */
int worker_play(struct campaign_world *w, uint32_t self, int fd);

/**
 * judge_world() - check that memory holds the logged data, and nothing else
 * @killed: a bit for each worker that was killed
 * @why: on failure, the reason
 */
bool judge_world(const struct campaign_world *w, uint32_t killed, char *why, size_t why_size);

#endif
