/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The answering side of links: hands our shared memory to the processes that ask.
 */
#ifndef WEIR_SOFTNIC_SHM_SERVER_H
#define WEIR_SOFTNIC_SHM_SERVER_H

#include <stdint.h>

struct qp;
struct guest;

/** serve_accept() - the handler of the listening socket */
void serve_accept(void *arg, uint32_t events);

/** serve_ready() - a queue pair may be had now: answer whoever asked too early. nic.lock held. */
void serve_ready(struct qp *qp);

/**
 * serve_guest() - through whom a queue pair of another process uses ours, or NULL
 * @qp: ours
 * @user: the other's number
 *
 * Context: nic.lock held.
 */
struct guest *serve_guest(const struct qp *qp, uint32_t user);

/**
 * serve_gone() - tell who sent datagrams to a queue pair that it is no more
 *
 * Context: nic.lock held.
 */
void serve_gone(const struct qp *qp);

/**
 * serve_bell() - where the peer of a queue pair says what it invalidated
 *
 * Context: nic.lock held, and kept for as long as it is used.
 */
const struct shared_bell *serve_bell(const struct qp *qp);

/** serve_forget_all() - after a fork, in the child: they are the parent's guests */
void serve_forget_all(void);

/**
 * serve_cut_off() - a guest holds up this process: end the connection
 *
 * Context: nic.lock held; @guest from serve_guest(), so it is alive.
 */
void serve_cut_off(struct guest *guest);

/** serve_tell_files() - to all guests: look which files are still shared. No locks held. */
void serve_tell_files(void);

#endif
