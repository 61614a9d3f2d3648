/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How QPs find each other: offers out, offers in, and their answers. See wire/discovery.h.
 *
 * Context of all: with tracked_qp_life; in the service thread, unless noted.
 */
#ifndef WEIR_PRELOAD_UNLOAD_DISCOVERY_DISCOVERY_H
#define WEIR_PRELOAD_UNLOAD_DISCOVERY_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>

struct tracked_qp;

/**
 * struct discovery_sockets - where others find us, and we them
 * @here: those of this user on this host
 * @hosts: those on others, where there is a key; -1: none are looked for
 */
struct discovery_sockets {
	int here;
	int hosts;
};

/* Return: 0; -EADDRNOTAVAIL no place is free, nothing can be unloaded. */
int discovery_open(struct discovery_sockets *sockets);

/* A datagram is waiting at one of them. Return: whether there is something to look for now. */
bool discovery_receive(int fd);

/*
 * The peer of a QP is to be looked for, if it has not been. Context: any. Return: whether it is
 * new.
 */
bool discovery_want(struct tracked_qp *w);

/* It is not looked for any more, until it is wanted anew. Context: any. */
void discovery_stop(struct tracked_qp *w);

/* Sends what is due. Return: when to come again, ns; UINT64_MAX: no need. */
uint64_t discovery_run(const struct discovery_sockets *sockets, uint64_t now_ns);

#endif
