/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A campaign: random operations between processes, with random faults, again and again.
 *
 * One run is a seed. A judge starts workers; each has a queue pair to each other one, a
 * "lane", and writes, reads, sends and adds along it. All that counts lies in one shared
 * mapping, the world: the memory that is written to, and each lane's log of what was
 * asked and how it ended. So the judge can replay the log on plain memory and compare,
 * whoever was killed.
 */
#ifndef CAMPAIGN_H
#define CAMPAIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WORKERS_MAX = 4,
	OPS_MAX = 48,		/* along a lane */
	ZONE = 128 << 10,	/* of a target's memory, for one source to write to */
	COUNTER_BYTES = 64,	/* at its beginning, for additions */
	MESSAGE_MAX = 4096,
	PATIENCE_MS = 60000,
};

enum kind { KIND_WRITE, KIND_READ, KIND_ADD, KIND_SEND, KINDS };

enum op_state { OP_NONE, OP_POSTED, OP_DONE, OP_FAILED, OP_FLUSHED };

struct op {
	enum kind kind;
	uint32_t offset, length;
	uint64_t fill;		/* what its bytes are made from */
	uint32_t state;		/* enum op_state; the source's */
};

struct lane {
	struct op ops[OPS_MAX];
	uint32_t num_ops;
	uint32_t received;	/* sends that arrived; the target's */
	uint32_t qpn;		/* the source's */
};

struct world {
	uint64_t seed;
	uint32_t workers;
	uint32_t rkeys[WORKERS_MAX];		/* of zones[target] */
	uint64_t addrs[WORKERS_MAX];
	struct lane lanes[WORKERS_MAX][WORKERS_MAX];		/* [source][target] */
	uint8_t zones[WORKERS_MAX][WORKERS_MAX][ZONE];		/* [target][source] */
};

/* The judge says what comes next, the worker that it is done with it. */
enum phase { PHASE_OPEN, PHASE_CONNECT, PHASE_WORK, PHASE_CLOSE, PHASES };

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

/* Byte @k of what an operation writes. */
static inline uint8_t op_byte(const struct op *op, uint32_t k)
{
	return op->fill + k * 7 + (k >> 8);
}

/** worker_play() - be worker @self of a world; phases come over @fd. The exit status. */
int worker_play(struct world *w, uint32_t self, int fd);

/**
 * judge_world() - does memory hold what the logs say, and nothing else?
 * @killed: a bit for each worker that did not end by itself
 * @why: on failure, what is wrong
 */
bool judge_world(const struct world *w, uint32_t killed, char *why, size_t why_size);

#endif
