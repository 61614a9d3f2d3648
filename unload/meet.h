/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How QPs find each other: offers out, offers in, and their answers. See wire/offer.h.
 *
 * Context of all: with watch_life; in the service thread, unless noted.
 */
#ifndef UNLOAD_MEET_H
#define UNLOAD_MEET_H

#include <stdint.h>

struct watched;

/*
 * A UDP port, so that others find us. Return: its descriptor; -1: no port is free, nothing can be
 * unloaded.
 */
int meet_open(void);

/* One datagram is waiting. */
void meet_receive(int fd);

/*
 * The peer of a QP is to be looked for, if it has not been. Context: any. Return: whether it is
 * new.
 */
int meet_want(struct watched *w);

/* Sends what is due. Return: when to come again, ns; UINT64_MAX: no need. */
uint64_t meet_seek(int fd, uint64_t now_ns);

#endif
