/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The agent of a block device on a pool. The agent holds the claim on the volume, tells the module
 * of each new map, and reports the module's findings to the pool: donors that do not answer, and
 * members that have all data. The module keeps the claim: if the agent dies, another takes it over.
 *
 * Paging never waits for the agent, but a write to a donor that has died waits until the agent has
 * brought a map without the donor. So the agent locks its memory, and its allocations wait for no
 * writeback.
 */
#ifndef WEIR_APPS_BLK_AGENT_AGENT_H
#define WEIR_APPS_BLK_AGENT_AGENT_H

#include "apps/blk/blk.h"

/**
 * struct blk_agent_options - a device to attach
 * @pool: POOL/VOLUME
 * @write: adds the options of the sessions to ATTACH, but for the timeout, and loads the key.
 *	Returns an exit status
 * @timeout_ms: of the sessions; 0: as the pool's lease suggests
 */
struct blk_agent_options {
	const char *cmd, *pool;
	int (*write)(struct nlmsghdr *message, void *arg);
	void *arg;
	uint32_t timeout_ms;
};

/*
 * Attaches a device and prints its name, in a child that stays as its agent, and another that
 * replaces an agent that dies: see keeper.c. Return: an exit status, in the parent.
 */
int blk_agent_attach(const struct blk_agent_options *options);

/* Ends the claim of a device that has been detached. @agent: @bytes that the module has kept. */
void blk_agent_release(const char *pool, const void *agent, size_t bytes);

#endif
