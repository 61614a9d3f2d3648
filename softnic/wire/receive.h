/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving: from the sockets to queue pairs, queue pair 1, and other processes.
 */
#ifndef WEIR_SOFTNIC_WIRE_RECEIVE_H
#define WEIR_SOFTNIC_WIRE_RECEIVE_H

#include "softnic/wire/socket.h"

/**
 * receive_ready() - take the packets of a socket
 * @port: the socket's, as a pointer
 *
 * Context: Engine thread, as softnic_loop_add() calls it.
 */
void receive_ready(void *port, uint32_t events);

/**
 * receive_pass_on() - give a packet to the process in @slot, or drop it if no process has the slot
 *
 * Context: Engine thread.
 */
void receive_pass_on(const struct wire_packet *packet, uint32_t slot);

/** receive_reset() - in the child of a fork, forget the buffers and the listener for MADs */
void receive_reset(void);

#endif
