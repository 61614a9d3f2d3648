/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The header by which rdma_cm names IP addresses: at the beginning of the private data of REQ and
 * SIDR_REQ (IB specification, annex A11).
 *
 * Context of all: any; no state.
 */
#ifndef WEIR_SOFTNIC_ROCE_CM_CMA_H
#define WEIR_SOFTNIC_ROCE_CM_CMA_H

#include <stdbool.h>
#include <stdint.h>

enum { ROCE_CMA_BYTES = 36 };

/* Port spaces, as rdma_cma.h has them. */
enum roce_cma_space {
	ROCE_CMA_TCP = 0x0106,
	ROCE_CMA_UDP = 0x0111,
};

/**
 * struct roce_cma - addresses of a connection
 * @is_ipv6: else the addresses are IPv4, in their first 4 bytes
 * @src_port: of the program that connects
 * @src, @dst: in network order of their bytes
 */
struct roce_cma {
	bool is_ipv6;
	uint16_t src_port;
	uint8_t src[16], dst[16];
};

/** roce_cma_decode() - Return: 0, or -EPROTO: another version of the header or of IP */
int roce_cma_decode(struct roce_cma *c, const uint8_t bytes[ROCE_CMA_BYTES]);

void roce_cma_encode(const struct roce_cma *c, uint8_t bytes[ROCE_CMA_BYTES]);

/** roce_cma_service_id() - the service at a port of a program that listens */
uint64_t roce_cma_service_id(enum roce_cma_space space, uint16_t port);

/** roce_cma_port() - Return: 0, or -EPROTO: not a service ID of @space */
int roce_cma_port(uint64_t service_id, enum roce_cma_space space, uint16_t *port);

#endif
