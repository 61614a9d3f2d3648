/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ways of carrying many connections over one NIC. A caller and a server run in two processes; each
 * connection has a thread at either end. The caller sends messages, and the server answers each
 * with ANSWER_BYTES. Connections from 0 on are bulk; the last connection may be urgent.
 *
 * No error is recovered: a failure prints a message on standard error and ends the process.
 */
#ifndef WEIR_BENCH_SHARE_WAY_H
#define WEIR_BENCH_SHARE_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONNS_MAX 256
#define DEPTH_MAX 1024
#define ANSWER_BYTES 8
#define URGENT_BYTES 1024
#define ADDRESS_MAX 64

/**
 * struct share_job - the parameters of a run
 * @conns: number of connections; @urgent: index of the urgent connection, or -1
 * @sizes, @depths, @weights: per connection: bytes of a message, messages in flight, and the
 *	weight, for ways with weights
 * @host: address on which the server listens
 * @near, @far: sockets of the caller's and the server's daemons, or NULL
 */
struct share_job {
	int conns, urgent;
	size_t sizes[CONNS_MAX];
	int depths[CONNS_MAX];
	unsigned int weights[CONNS_MAX];
	double seconds;
	const char *host, *near, *far;
};

/*
 * Counts so far. @ahead_bytes_max: the most bulk bytes in flight at the post of an urgent message.
 */
struct share_tally {
	uint64_t work_requests, doorbells, sleeps, ahead_bytes_max;
};

/**
 * struct share_way - one way
 * @serve: gets ready for the caller; writes the listening address to @address
 * @accept: returns when all connections are accepted
 * @call: connects all
 * @send: sends a message on connection @conn; waits for room
 * @receive: returns when a message of @conn has arrived. One thread a connection
 * @count: counts of the calling process, or of the daemon it shares
 */
struct share_way {
	const char *name;
	void (*serve)(const struct share_job *job, char *address);
	void (*accept)(const struct share_job *job);
	void (*call)(const struct share_job *job, const char *address);
	void (*send)(int conn, size_t size);
	void (*receive)(int conn);
	void (*count)(struct share_tally *tally);
};

extern const struct share_way way_busy, way_event, way_locked, way_weir, way_lent, way_taken,
	way_put;

/* Unless @good, ends the process with @what and @why. */
void must(bool good, const char *what, const char *why);

#endif
