// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <string.h>

#include "softnic/udp/passed.h"

static const uint8_t magic[4] = { 0xff, 'W', 'P', 1 };

enum { FROM_AT = 4, TO_AT = 20, IFINDEX_AT = 36, FROM_PORT_AT = 40, TO_PORT_AT = 42 };

/* Both ends are on this host, so numbers keep its byte order. */
void passed_encode(uint8_t *header, const struct udp_address *from, const struct udp_address *to)
{
	memset(header, 0, PASSED_HEADER_BYTES);
	memcpy(header, magic, sizeof(magic));
	memcpy(header + FROM_AT, &from->gid, sizeof(from->gid));
	memcpy(header + TO_AT, &to->gid, sizeof(to->gid));
	memcpy(header + IFINDEX_AT, &from->ifindex, sizeof(from->ifindex));
	memcpy(header + FROM_PORT_AT, &from->port, sizeof(from->port));
	memcpy(header + TO_PORT_AT, &to->port, sizeof(to->port));
}

bool passed_decode(const uint8_t *bytes, size_t size, struct udp_address *from,
		   struct udp_address *to)
{
	if (size < PASSED_HEADER_BYTES || memcmp(bytes, magic, sizeof(magic)) != 0)
		return false;
	memcpy(&from->gid, bytes + FROM_AT, sizeof(from->gid));
	memcpy(&to->gid, bytes + TO_AT, sizeof(to->gid));
	memcpy(&from->ifindex, bytes + IFINDEX_AT, sizeof(from->ifindex));
	memcpy(&from->port, bytes + FROM_PORT_AT, sizeof(from->port));
	memcpy(&to->port, bytes + TO_PORT_AT, sizeof(to->port));
	return true;
}
