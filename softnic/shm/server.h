/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The answering side of a connection: passes our shared memory to clients.
 */
#ifndef WEIR_SOFTNIC_SHM_SERVER_H
#define WEIR_SOFTNIC_SHM_SERVER_H

#include <stdint.h>

struct qp;
struct shm_client;

/** server_accept() - the handler of the listening socket */
void server_accept(void *arg, uint32_t events);

/**
 * server_qp_ready() - answer pending lookups of a queue pair that is now connected
 *
 * Context: nic.lock held.
 */
void server_qp_ready(struct qp *qp);

/**
 * server_find_client() - the client whose queue pair uses one of ours, or NULL
 * @qp: our queue pair
 * @user: number of the client's queue pair
 *
 * Context: nic.lock held.
 */
struct shm_client *server_find_client(const struct qp *qp, uint32_t user);

/**
 * server_announce_gone() - tell clients that sent datagrams to @qp that @qp is destroyed
 *
 * Context: nic.lock held.
 */
void server_announce_gone(const struct qp *qp);

/**
 * server_doorbells() - the doorbell page where a queue pair's peer records invalidated windows
 *
 * Context: nic.lock held as long as the page is used.
 */
const struct shared_doorbells *server_doorbells(const struct qp *qp);

/** server_reset() - in the child of a fork, close the parent's connections */
void server_reset(void);

/**
 * server_disconnect() - end the connection to a client that holds up this process
 * @client: from server_find_client()
 *
 * Context: nic.lock held since server_find_client().
 */
void server_disconnect(struct shm_client *client);

/**
 * server_announce_files() - tell all clients to unmap files that are no longer exported
 *
 * Context: no locks held.
 */
void server_announce_files(void);

#endif
