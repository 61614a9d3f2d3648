/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The thread that takes packets from the sockets: the engine, or a program's thread while that
 * polls an empty completion queue. On a host with few CPUs a spinning program would keep the
 * engine from running, and elsewhere waking the engine costs as much as the packet's way.
 */
#ifndef WEIR_SOFTNIC_UDP_POLLER_H
#define WEIR_SOFTNIC_UDP_POLLER_H

#include <stdbool.h>
#include <stdint.h>

/**
 * poller_ready() - take the packets of a socket
 * @port: the socket's, as a pointer
 *
 * Context: Engine thread, as softnic_loop_add() calls it.
 */
void poller_ready(void *port, uint32_t events);

/**
 * poller_try() - take packets in place of the engine
 *
 * Costs one load, unless packets of other hosts came lately. May yield the CPU if none wait.
 *
 * Context: A program's thread, no locks held.
 * Return: true if any came: completions may be there.
 */
bool poller_try(void);

/**
 * poller_rest() - the program got completions, and may do something else than poll
 *
 * Costs one load, unless the engine has to take over.
 *
 * Context: A program's thread, no locks held but a CQ's.
 */
void poller_rest(void);

/**
 * poller_leave() - the program asks for an event, so it is about to sleep
 *
 * Costs one load, unless packets of other hosts came lately.
 *
 * Context: A program's thread; no locks held but a CQ's.
 */
void poller_leave(void);

#endif
