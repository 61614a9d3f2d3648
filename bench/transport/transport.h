/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One benchmark loop over weir, plain verbs, UCX and libfabric on the same device, each used as its
 * manual advises. A lender and a borrower, in two processes, exchange addresses and keys over a
 * socket. A lane belongs to one thread and has its own queue pair (endpoint).
 *
 * No error is recovered: a failure prints a message on standard error and ends the process.
 */
#ifndef WEIR_BENCH_ENGINE_RIVAL_H
#define WEIR_BENCH_ENGINE_RIVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LANES_MAX 16
#define DEPTH_MAX 64

/* The parameters of a run. */
struct rival_job {
	int lanes, depth;
	bool is_read, is_random;
	size_t size; /* of a request */
	size_t lent_bytes;
	double seconds;
	uint64_t ops; /* of each lane; if not 0, replaces @seconds */
};

/**
 * struct rival - one way
 * @lend: in a process of its own: lends job->lent_bytes at @memory until the socket ends
 * @borrow: connects; @buffers has job->size for each of depth requests of each lane
 * @post: starts a request between a lane's buffer and @offset of the lent memory; there is room
 * @reap: returns the number of requests that ended on a lane; may wait, as one is in flight
 * @settle: returns when all requests of @lane have taken effect
 */
struct rival {
	const char *name;
	void (*lend)(int socket, void *memory, const struct rival_job *job);
	void (*borrow)(int socket, void *buffers, const struct rival_job *job);
	void (*post)(int lane, void *buffer, uint64_t offset);
	int (*reap)(int lane);
	void (*settle)(int lane);
};

extern const struct rival rival_hybrid, rival_single, rival_doorbell, rival_asleep;
extern const struct rival rival_verbs, rival_events;
extern const struct rival rival_ucx;
extern const struct rival rival_libfabric;

/* Unless @good, ends the process with @what and @why. */
void must(bool good, const char *what, const char *why);

/* Send or receive all @size bytes. */
void tell(int socket, const void *data, size_t size);
void hear(int socket, void *data, size_t size);

/* Returns when the other process has ended; calls @turn, if any, repeatedly meanwhile. */
void until_over(int socket, void (*turn)(void));

#endif
