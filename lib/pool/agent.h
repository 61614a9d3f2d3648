/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A donor's part in its pool: a thread that registers the donor with a lease, keeps the lease, and
 * runs the coordinator while this donor leads. No request for data involves the thread.
 */
#ifndef WEIR_LIB_POOL_AGENT_H
#define WEIR_LIB_POOL_AGENT_H

#include <stdint.h>
#include <weir/donor.h>
#include <weir/error.h>

struct weir_pool_agent;

/**
 * struct weir_pool_agent_options - a donor that joins a pool; texts are copied
 * @pool: the pool's place, as for weir_pool_client_open()
 * @name: the donor's name in the pool
 * @address: clients connect to it
 * @domain: the donor's failure domain
 * @bytes: memory that it lends
 * @incarnation: number of the donor's memory
 * @identity: the public key that the pool's clients must find at @address; NULL: they trust any
 * @on_restart: the pool has gone on without this incarnation. The donor must close and open again,
 *	so that its memory is another. Called once, from the agent's thread
 * @on_log: "EVENT[ KEY=VALUE...][: REASON]"
 * @arg: passed to both
 */
struct weir_pool_agent_options {
	const char *pool, *name, *address, *domain;
	uint64_t bytes, incarnation;
	const unsigned char *identity;
	void (*on_restart)(void *arg);
	void (*on_log)(void *arg, enum weir_log_level level, const char *line);
	void *arg;
};

/**
 * weir_pool_agent_start() - register the donor, and start the thread
 * @options: copied
 * @agent: receives the agent; the caller owes a weir_pool_agent_stop()
 * @error: may be NULL
 *
 * Return: 0; -EINVAL a bad name or domain; -ENOENT no such pool; -EBUSY a donor of another
 *	address or domain is registered under the name; or an error of store.h.
 */
int weir_pool_agent_start(const struct weir_pool_agent_options *options,
			  struct weir_pool_agent **agent, struct weir_error *error);

/* Leaves the pool, and frees the agent. The donor's members become OUT. */
void weir_pool_agent_stop(struct weir_pool_agent *agent);

#endif
