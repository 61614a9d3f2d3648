/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The answering side of links: hands our shared memory to the processes that ask.
 */
#ifndef WEIR_SOFTNIC_SHM_SERVER_H
#define WEIR_SOFTNIC_SHM_SERVER_H

#include <stdint.h>

struct qp;
struct shm_client;

/** server_accept() - the handler of the listening socket */
void server_accept(void *arg, uint32_t events);

/** server_qp_ready() - a queue pair may be had now: answer whoever asked too early. nic.lock held. */
void server_qp_ready(struct qp *qp);

/**
 * server_find_client() - through whom a queue pair of another process uses ours, or NULL
 * @qp: ours
 * @user: the other's number
 *
 * Context: nic.lock held.
 */
struct shm_client *server_find_client(const struct qp *qp, uint32_t user);

/**
 * server_announce_gone() - tell who sent datagrams to a queue pair that it is no more
 *
 * Context: nic.lock held.
 */
void server_announce_gone(const struct qp *qp);

/**
 * server_doorbells() - where the peer of a queue pair says what it invalidated
 *
 * Context: nic.lock held, and kept for as long as it is used.
 */
const struct shared_doorbells *server_doorbells(const struct qp *qp);

/** server_reset() - after a fork, in the child: they are the parent's clients */
void server_reset(void);

/**
 * server_disconnect() - a client holds up this process: end the connection
 *
 * Context: nic.lock held; @client from server_find_client(), so it is alive.
 */
void server_disconnect(struct shm_client *client);

/** server_announce_files() - to all clients: look which files are still shared. No locks held. */
void server_announce_files(void);

#endif
