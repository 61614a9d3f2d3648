/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One loop, and what it does with the same device by weir, plain verbs, UCX and libfabric, each as
 * its own manual would have it. A lender and a borrower, in two processes, with a socket between them
 * over which they tell each other what they need. A lane is for one thread, with a queue pair (an
 * endpoint) of its own.
 *
 * Nobody recovers here: what fails is told on standard error and ends the process.
 */
#ifndef WEIR_BENCH_ENGINE_RIVAL_H
#define WEIR_BENCH_ENGINE_RIVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LANES_MAX 16
#define DEPTH_MAX 64

/* What is asked for. */
struct rival_job {
	int lanes, depth;
	bool is_read, is_random;
	size_t size; /* of a request */
	size_t lent_bytes;
	double seconds;
	uint64_t ops; /* of each lane, if not 0, however long they take */
};

/**
 * struct rival - one way
 * @lend: in a process of its own: lend job->lent_bytes at @memory; returns once the socket ended
 * @borrow: connect; @buffers has job->size for each of depth requests of each lane
 * @post: begin a request between a lane's buffer and @offset of what is lent; there is room
 * @reap: how many requests of a lane have ended since; may wait for one, there is one in flight
 * @settle: returns when all that @lane posted is where it belongs
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

/* Ends the process with @what and why unless @good. */
void must(bool good, const char *what, const char *why);

/* All of it, to or from the other process. */
void tell(int socket, const void *data, size_t size);
void hear(int socket, void *data, size_t size);

/* Returns when the other process has ended; meanwhile does @turn, if any, again and again. */
void until_over(int socket, void (*turn)(void));

#endif
