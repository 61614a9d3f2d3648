/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pair 1: the management datagrams of the connection manager.
 */
#ifndef WEIR_SOFTNIC_UDP_MAD_H
#define WEIR_SOFTNIC_UDP_MAD_H

#include "softnic/roce/packet.h"
#include "softnic/udp/socket.h"

enum { MAD_QPN = 1 };

/**
 * mad_take() - a packet for queue pair 1 arrived
 * @decoded: of the packet, with a right ICRC as far as it can be known
 *
 * Context: The lock of poller.c held. The engine tells the listener later, without locks.
 */
void mad_take(const struct udp_packet *packet, const struct roce_packet *decoded);

/**
 * mad_refused() - a host has nobody at the port of a MAD of ours
 * @to: where it was sent
 * @bytes, @size: of the packet, as the host quotes it
 *
 * Context: As mad_take().
 */
void mad_refused(const struct udp_address *to, const uint8_t *bytes, size_t size);

/** mad_reset() - forget the listener */
void mad_reset(void);

#endif
