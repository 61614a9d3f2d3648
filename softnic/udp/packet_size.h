/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How much a packet carries on a link.
 *
 * Context of all: any; no state.
 */
#ifndef WEIR_SOFTNIC_UDP_PACKET_SIZE_H
#define WEIR_SOFTNIC_UDP_PACKET_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "softnic/roce/packet.h"
#include "softnic/roce/qp.h"
#include "softnic/seal/seal.h"

enum { IPV4_BYTES = 20, IPV6_BYTES = 40, UDP_BYTES = 8 };

/** udp_header_bytes() - bytes of IP and UDP */
static inline int udp_header_bytes(bool is_ipv4)
{
	return (is_ipv4 ? IPV4_BYTES : IPV6_BYTES) + UDP_BYTES;
}

/**
 * udp_payload() - the path MTU that a queue pair gets
 * @seals: sealed packets are the longest, and this end may seal
 *
 * Return: a power of two, as the path MTUs of RoCE are; 0 if even the smallest does not fit.
 */
static inline uint32_t udp_payload(int link_mtu, bool is_ipv4, bool seals)
{
	int room = link_mtu - udp_header_bytes(is_ipv4) - ROCE_HEADERS_MAX -
		   (seals ? SEAL_EXTRA_BYTES : 0);
	uint32_t mtu = ROCE_PAYLOAD_MAX;

	while (mtu >= ROCE_MTU_MIN && (int)mtu > room)
		mtu /= 2;
	return mtu < ROCE_MTU_MIN ? 0 : mtu;
}

#endif
