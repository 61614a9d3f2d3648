/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Clients: processes that use this process's queue pairs.
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
	uint32_t slot; /* 0: the client has named no slot, or a wrong slot */
	bool may_trace; /* may reach all our memory: see tracer.h */
	bool is_admitted; /* has been given a queue pair without a closed gate, and our memory */
	bool has_atomics; /* has been given the lock of our atomics */
	struct shm_doorbell_page *doorbell_page; /* NULL without a slot */
	struct pending_lookup *asks;
	uint32_t num_lookups;
	struct shm_client *next;
};

/**
 * client_lookup() - answer a client's lookup of a queue pair, or keep the lookup for later
 *
 * A connected queue pair admits only its remote queue pair; a datagram queue pair admits any.
 *
 * Context: nic.lock held.
 */
void client_lookup(struct shm_client *g, const struct shm_msg *m);

/**
 * client_qp_ready() - answer the pending lookup of @qp, which is now connected
 *
 * Context: nic.lock held.
 */
void client_qp_ready(struct shm_client *g, struct qp *qp);

/**
 * client_gate_opened() - pass a connected queue pair to the client that knows of it already
 *
 * If the message is lost, the client asks again. Context: nic.lock and qp->lock held.
 */
void client_gate_opened(struct shm_client *g, struct qp *qp);

/** client_drop_lookups() - free the pending lookups of a client that is in no list */
void client_drop_lookups(struct shm_client *g);

/**
 * client_qp_fds() - list the memfds that a user of a queue pair must map
 * @fds: room for SHM_MSG_FDS_MAX; the queue pair keeps the descriptors
 * @has: set to HAS_SRQ with an SRQ, else to 0
 *
 * Context: nic.lock held.
 * Return: the number of descriptors.
 */
int client_qp_fds(const struct qp *qp, int *fds, uint32_t *has);

#endif
