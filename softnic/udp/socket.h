/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The process's UDP sockets, and the packets that arrive there.
 */
#ifndef WEIR_SOFTNIC_UDP_SOCKET_H
#define WEIR_SOFTNIC_UDP_SOCKET_H

#include <pthread.h>

#include "softnic/udp/udp.h"

/**
 * struct udp_sockets - of this process
 * @lock: opening, and sending; a leaf
 * @own, @roce: descriptors, or -1
 * @port: of @own, 0 while closed
 * @bytes_sent: in trains; read without the lock
 */
struct udp_sockets {
	pthread_mutex_t lock;
	int own, roce;
	uint16_t port;
	uint64_t bytes_sent;
};

extern struct udp_sockets udp;

/**
 * struct udp_packet - a packet that arrived; all fields are the sender's claims
 * @from, @to: of the original if it was passed on; @to has no interface
 * @bytes, @size: from the BTH to the ICRC
 */
struct udp_packet {
	struct udp_address from, to;
	bool was_passed_on;
	const uint8_t *bytes;
	size_t size;
};

/** udp_socket() - the socket of a port, @port being the own or RoCE's; -1 while closed */
static inline int udp_socket(uint16_t port)
{
	return __atomic_load_n(port == UDP_ROCE_PORT ? &udp.roce : &udp.own, __ATOMIC_ACQUIRE);
}

/** socket_is_ipv4() - is the GID that of an IPv4 address? */
bool socket_is_ipv4(const union ibv_gid *gid);

#endif
