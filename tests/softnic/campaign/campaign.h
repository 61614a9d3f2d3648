/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A campaign: random operations between processes, with random faults, again and again.
 *
 * One run is a seed. A judge starts workers; each has a queue pair to each other one, a
 * "lane", and does along it what that queue pair can: writes, reads, sends, adds and swaps, with
 * immediates, and inline. Lanes are RC, with a receive queue of their own or a shared one, or UC or
 * UD. All that counts lies in one shared mapping, the world: the memory that is written to, and
 * each lane's log of what was asked and how it ended. So the judge can replay the log on plain
 * memory and compare, whoever was killed.
 *
 * A seed repeats what is asked along each lane, by which transport, which faults each worker meets
 * there, and what befalls which worker from outside; not how lanes interleave, nor when it befalls.
 */
#ifndef CAMPAIGN_H
#define CAMPAIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WORKERS_MAX = 4,
	OPS_MAX = 48, /* along a lane */
	ZONE = 128 << 10, /* of a target's memory, for one source to write to */
	COUNTER_BYTES = 64, /* at its beginning: a word for additions, one for swaps */
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

/* Both lanes between two workers are of one. What is before KINDS_UD, a datagram can do. */
enum campaign_transport { RC, UC, UD, TRANSPORTS };
enum { KINDS_UD = KIND_WRITE, KINDS_UC = KIND_READ };

enum op_state { OP_NONE, OP_POSTED, OP_DONE, OP_FAILED, OP_FLUSHED };

struct campaign_op {
	enum op_kind kind;
	uint32_t offset, length;
	bool is_inline;
	uint64_t fill; /* what its bytes are made from */
	uint32_t state; /* enum op_state; the source's */
};

struct campaign_lane {
	struct campaign_op ops[OPS_MAX];
	uint32_t num_ops;
	uint32_t received; /* messages and immediates that arrived; the target's */
	uint32_t qpn; /* the source's */
};

struct campaign_world {
	uint64_t seed;
	uint32_t workers;
	uint32_t rkeys[WORKERS_MAX]; /* of zones[target] */
	uint64_t addrs[WORKERS_MAX];
	struct campaign_lane lanes[WORKERS_MAX][WORKERS_MAX]; /* [source][target] */
	uint8_t zones[WORKERS_MAX][WORKERS_MAX][ZONE]; /* [target][source] */
};

/* The judge says what comes next, the worker that it is done with it. */
enum campaign_phase { PHASE_OPEN, PHASE_CONNECT, PHASE_WORK, PHASE_CLOSE, PHASES };

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014) */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static inline uint32_t random_below(uint64_t *state, uint32_t n)
{
	return random_next(state) % n;
}

/* Half of them are RC. */
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

/* It takes one of the target's receives. */
static inline bool kind_is_received(enum op_kind kind)
{
	return kind == KIND_SEND || kind == KIND_SEND_IMM || kind == KIND_WRITE_IMM;
}

/* Byte @k of what an operation writes. */
static inline uint8_t op_byte(const struct campaign_op *op, uint32_t k)
{
	return op->fill + k * 7 + (k >> 8);
}

/** worker_play() - be worker @self of a world; phases come over @fd. The exit status. */
int worker_play(struct campaign_world *w, uint32_t self, int fd);

/**
 * judge_world() - does memory hold what the logs say, and nothing else?
 * @killed: a bit for each worker that did not end by itself
 * @why: on failure, what is wrong
 */
bool judge_world(const struct campaign_world *w, uint32_t killed, char *why, size_t why_size);

#endif
