/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "softnic/roce_cm/cma.h"

#include <errno.h>
#include <string.h>

enum {
	VERSION = 0,
	IP_VERSION_SHIFT = 4,
	SRC_AT = 4,
	DST_AT = 20,
	IPV4_PAD = 12, /* an IPv4 address ends its field */
	SPACE_SHIFT = 16,
};

int roce_cma_decode(struct roce_cma *c, const uint8_t bytes[ROCE_CMA_BYTES])
{
	uint8_t ip = bytes[1] >> IP_VERSION_SHIFT;
	size_t pad = ip == 4 ? IPV4_PAD : 0;

	if (bytes[0] != VERSION || (ip != 4 && ip != 6))
		return -EPROTO;
	memset(c, 0, sizeof(*c));
	c->is_ipv6 = ip == 6;
	c->src_port = (uint16_t)(bytes[2] << 8 | bytes[3]);
	memcpy(c->src, bytes + SRC_AT + pad, sizeof(c->src) - pad);
	memcpy(c->dst, bytes + DST_AT + pad, sizeof(c->dst) - pad);
	return 0;
}

void roce_cma_encode(const struct roce_cma *c, uint8_t bytes[ROCE_CMA_BYTES])
{
	size_t pad = c->is_ipv6 ? 0 : IPV4_PAD;

	memset(bytes, 0, ROCE_CMA_BYTES);
	bytes[0] = VERSION;
	bytes[1] = (uint8_t)((c->is_ipv6 ? 6 : 4) << IP_VERSION_SHIFT);
	bytes[2] = (uint8_t)(c->src_port >> 8);
	bytes[3] = (uint8_t)c->src_port;
	memcpy(bytes + SRC_AT + pad, c->src, sizeof(c->src) - pad);
	memcpy(bytes + DST_AT + pad, c->dst, sizeof(c->dst) - pad);
}

uint64_t roce_cma_service_id(enum roce_cma_space space, uint16_t port)
{
	return (uint64_t)space << SPACE_SHIFT | port;
}

int roce_cma_port(uint64_t service_id, enum roce_cma_space space, uint16_t *port)
{
	if (service_id >> SPACE_SHIFT != (uint64_t)space)
		return -EPROTO;
	*port = (uint16_t)service_id;
	return 0;
}
