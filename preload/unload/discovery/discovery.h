/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How QPs find each other: offers, and answers to offers. See wire/discovery.h.
 *
 * Context of all: with tracked_qp_life; in the service thread, unless noted.
 */
#ifndef WEIR_PRELOAD_UNLOAD_DISCOVERY_DISCOVERY_H
#define WEIR_PRELOAD_UNLOAD_DISCOVERY_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>

struct tracked_qp;

/**
 * struct discovery_sockets - sockets for offers and answers
 * @here: for processes of this user on this host
 * @hosts: for other hosts, if there is a key; -1: no discovery between hosts
 */
struct discovery_sockets {
	int here;
	int hosts;
};

/* Return: 0; -EADDRNOTAVAIL no address is free, nothing can be unloaded. */
int discovery_open(struct discovery_sockets *sockets);

/* A datagram waits at @fd. Return: true if discovery_run() has work now. */
bool discovery_receive(int fd);

/*
 * Starts the search for a QP's peer, unless already started. Context: any. Return: true if started
 * now.
 */
bool discovery_want(struct tracked_qp *w);

/* Ends the search, until discovery_want(). Context: any. */
void discovery_stop(struct tracked_qp *w);

/* Sends due offers. Return: when to call again, ns; UINT64_MAX: no need. */
uint64_t discovery_run(const struct discovery_sockets *sockets, uint64_t now_ns);

#endif
