/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ways of carrying many connections over one NIC. A caller and a server, in two processes; each
 * connection has a thread at either end. The caller sends messages, the server answers each with
 * ANSWER_BYTES. Connections from 0 on are bulk; the last one is urgent, where one is wanted.
 *
 * Nobody recovers here: what fails is told on standard error and ends the process.
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
 * struct share_job - what is asked for
 * @conns: all of them; @urgent: the number of the urgent one, or -1
 * @sizes, @depths, @weights: of each connection: bytes of a message, how many wait for their answers,
 *	and its weight, for those who know such
 * @host: where the server listens
 * @near, @far: sockets of the daemons of caller and server, or NULL
 */
struct share_job {
	int conns, urgent;
	size_t sizes[CONNS_MAX];
	int depths[CONNS_MAX];
	unsigned int weights[CONNS_MAX];
	double seconds;
	const char *host, *near, *far;
};

/* So far. @ahead_bytes_max: of bulk, posted and not done, when something urgent was. */
struct share_tally {
	uint64_t work_requests, doorbells, sleeps, ahead_bytes_max;
};

/**
 * struct share_way - one
 * @serve: be ready for the caller; @address receives where
 * @accept: returns when all connections are there
 * @call: connect all
 * @send: a message of connection @conn; waits for room
 * @receive: returns when a message of @conn has come. One thread a connection
 * @count: of the calling process, or of what it shares
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

/* Ends the process with @what and why unless @good. */
void must(bool good, const char *what, const char *why);

#endif
