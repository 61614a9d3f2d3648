/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The invariant CRC of a RoCE v2 packet (annex A17): the CRC-32 of Ethernet over IP header, UDP
 * header, transport headers and payload, with ones for the fields that routers change.
 *
 * Context of all: any; no state.
 */
#ifndef WEIR_SOFTNIC_ROCE_ICRC_H
#define WEIR_SOFTNIC_ROCE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct roce_flow - the headers below UDP's payload, as far as the ICRC covers them
 * @is_ipv6: else @src and @dst are the first 4 bytes, and the IP header has no options
 * @dont_fragment, @ip_id: IPv4 only
 * @src_port, @dst_port: of UDP, in host order
 */
struct roce_flow {
	bool is_ipv6;
	bool dont_fragment;
	uint16_t ip_id;
	uint8_t src[16];
	uint8_t dst[16];
	uint16_t src_port;
	uint16_t dst_port;
};

/**
 * roce_icrc() - the ICRC of a packet
 * @bytes, @size: from the BTH to the padding; at least a BTH
 */
uint32_t roce_icrc(const struct roce_flow *flow, const uint8_t *bytes, size_t size);

/** roce_icrc_append() - write the ICRC behind a packet; returns the length with the ICRC */
size_t roce_icrc_append(const struct roce_flow *flow, uint8_t *bytes, size_t size);

/** roce_icrc_is_right() - whether a packet of @size bytes, at least 16, ends with its ICRC */
bool roce_icrc_is_right(const struct roce_flow *flow, const uint8_t *bytes, size_t size);

#endif
