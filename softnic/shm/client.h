/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Guests: processes that use queue pairs of ours, and what they ask for and are given.
 */
#ifndef WEIR_SOFTNIC_SHM_CLIENT_H
#define WEIR_SOFTNIC_SHM_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pending_lookup;
struct shm_doorbell_page;
struct shm_msg;
struct qp;

struct shm_client {
	int fd;
	pid_t pid;
	uint32_t slot; /* 0: it has said no other, or a wrong one */
	bool is_admitted; /* it has a queue pair of ours, or had, and our memory */
	struct shm_doorbell_page *doorbell_page; /* NULL: it has no slot */
	struct pending_lookup *asks;
	uint32_t num_lookups;
	struct shm_client *next;
};

/**
 * client_lookup() - it asks for a queue pair of ours: answer, or remember the question
 *
 * Only the queue pair that ours is connected to gets in; to a datagram one, anybody.
 *
 * Context: nic.lock held.
 */
void client_lookup(struct shm_client *g, const struct shm_msg *m);

/** client_qp_ready() - @qp may be had now: answer @g if it asked too early. nic.lock held. */
void client_qp_ready(struct shm_client *g, struct qp *qp);

/** client_drop_lookups() - it has ended, and is in no list any more */
void client_drop_lookups(struct shm_client *g);

/**
 * client_qp_fds() - what whoever uses a queue pair must map
 * @fds: room for SHM_MSG_FDS_MAX; they stay the queue pair's
 * @has: set to HAS_SRQ if that is one of them
 *
 * Context: nic.lock held.
 * Return: how many.
 */
int client_qp_fds(const struct qp *qp, int *fds, uint32_t *has);

#endif
