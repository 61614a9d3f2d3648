/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving: from the sockets to queue pairs, queue pair 1, and other processes.
 */
#ifndef WEIR_SOFTNIC_UDP_RECEIVE_H
#define WEIR_SOFTNIC_UDP_RECEIVE_H

#include "softnic/udp/socket.h"

/**
 * receive_batch() - take the packets that wait at a socket
 * @port: the socket's
 * @bytes: set to how many came for this process, with UDP's headers
 *
 * Context: the lock of poller.c held; no other.
 * Return: whether any came, also for other processes.
 */
bool receive_batch(uint16_t port, size_t *bytes);

/**
 * receive_pass_on() - give a packet to the process in @slot, or drop it if no process has the slot
 *
 * Context: Any thread.
 */
void receive_pass_on(const struct udp_packet *packet, uint32_t slot);

/**
 * receive_leave() - leave port 4791, and pass on what waits there for other processes
 *
 * What waits for this process is dropped.
 *
 * Context: The process ends. The lock of poller.c held.
 */
void receive_leave(void);

#endif
