/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sockets of the wire: opening, and taking packets from them.
 */
#ifndef WEIR_SOFTNIC_UDP_SOCKET_H
#define WEIR_SOFTNIC_UDP_SOCKET_H

#include <pthread.h>

#include "softnic/udp/udp.h"

/**
 * struct wire_sockets - of this process
 * @lock: opening, and sending; a leaf
 * @own, @roce: descriptors, or -1
 * @port: of @own, 0 while closed
 */
struct wire_sockets {
	pthread_mutex_t lock;
	int own, roce;
	uint16_t port;
};

extern struct wire_sockets wire;

/**
 * struct wire_packet - a packet that arrived; all fields are the sender's claims
 * @from, @to: of the original if it was passed on; @to has no interface
 * @bytes, @size: from the BTH to the ICRC
 */
struct wire_packet {
	struct wire_address from, to;
	bool was_passed_on;
	const uint8_t *bytes;
	size_t size;
};

/** wire_socket() - the socket of a port, @port being the own or RoCE's; -1 while closed */
static inline int wire_socket(uint16_t port)
{
	return __atomic_load_n(port == WIRE_ROCE_PORT ? &wire.roce : &wire.own, __ATOMIC_ACQUIRE);
}

/** socket_is_ipv4() - is the GID that of an IPv4 address? */
bool socket_is_ipv4(const union ibv_gid *gid);

#endif
