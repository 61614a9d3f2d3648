/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ways to access another process's memory over RDMA, each used as its manual advises. A lender and
 * a borrower, in two processes, exchange addresses and keys over a socket. A lane serves one thread
 * at a time and has its own queue pair (endpoint), where the way has them.
 *
 * No error is recovered: a failure prints a message on standard error and ends the process.
 */
#ifndef WEIR_BENCH_TRANSPORT_TRANSPORT_H
#define WEIR_BENCH_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LANES_MAX 16
#define DEPTH_MAX 64

/**
 * struct transport_job - what both sides set up
 * @lanes: LANES_MAX at most
 * @depth: most requests in flight on a lane, DEPTH_MAX at most
 * @request_bytes: longest request
 * @lent_bytes: lent memory
 * @buffers_bytes: the borrower's memory, for the requests of all lanes
 */
struct transport_job {
	int lanes, depth;
	size_t request_bytes, lent_bytes, buffers_bytes;
};

/**
 * struct transport - one way
 * @name: its name
 * @lend: in a process of its own: lends job->lent_bytes at @memory until the socket ends
 * @borrow: connects; requests will use memory of @buffers
 * @post: starts a request between @buffer and @offset of the lent memory; there is room
 * @reap: returns the number of requests that ended on a lane; may wait, as one is in flight
 * @settle: returns when all requests of @lane have taken effect; NULL: as soon as they end
 */
struct transport {
	const char *name;
	void (*lend)(int socket, void *memory, const struct transport_job *job);
	void (*borrow)(int socket, void *buffers, const struct transport_job *job);
	void (*post)(int lane, bool is_read, void *buffer, size_t size, uint64_t offset);
	int (*reap)(int lane);
	void (*settle)(int lane);
};

extern const struct transport transport_verbs, transport_events; /* events: the borrower sleeps */
extern const struct transport transport_ucx, transport_libfabric;
extern const struct transport transport_weir; /* of bench/fs */

/* Starts the lender, which dies with this process. @socket: receives its socket. */
pid_t transport_start_lender(const struct transport *transport, const struct transport_job *job,
			     int *socket);

/* Memory for the borrower, touched, so that no first touch is measured. */
void *transport_memory(size_t bytes);

/* For transports. */

/* Unless @good, ends the process with @what and @why. */
void must(bool good, const char *what, const char *why);

/* Send or receive all @size bytes. */
void send_all(int socket, const void *data, size_t size);
void receive_all(int socket, void *data, size_t size);

/* Returns when the other process has ended; calls @turn, if any, repeatedly meanwhile. */
void until_over(int socket, void (*turn)(void));

#endif
