/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A packet that one process of this host passes on to another, over the loopback interface: a
 * header with the addresses of the original, then the packet. The first byte is no opcode of RoCE.
 *
 * Context of all: any; no state.
 */
#ifndef WEIR_SOFTNIC_UDP_PASSED_H
#define WEIR_SOFTNIC_UDP_PASSED_H

#include "softnic/udp/udp.h"

enum { PASSED_HEADER_BYTES = 44 };

/** passed_encode() - write the header for a packet from @from to @to, with its @ifindex unused */
void passed_encode(uint8_t *header, const struct udp_address *from, const struct udp_address *to);

/**
 * passed_decode() - read the header
 * @bytes, @size: as received
 * @from, @to: written on success
 *
 * Return: false if it is no passed-on packet.
 */
bool passed_decode(const uint8_t *bytes, size_t size, struct udp_address *from,
		   struct udp_address *to);

#endif
