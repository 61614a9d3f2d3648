/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "wire/group.h"

static int has_end(const char address[WIRE_GROUP_ADDRESS])
{
	return memchr(address, 0, WIRE_GROUP_ADDRESS) != NULL;
}

int wire_group_hello_check(const struct wire_group_hello *hello, uint64_t length, uint32_t size,
			   uint32_t above)
{
	if (length != sizeof(*hello) || hello->magic != WIRE_GROUP_MAGIC || hello->size != size ||
	    hello->member >= size || hello->member <= above || !has_end(hello->address))
		return -EPROTO;
	return 0;
}

int wire_group_addresses_check(const char (*addresses)[WIRE_GROUP_ADDRESS], uint64_t length,
			       uint32_t size)
{
	uint32_t i;

	if (length != (uint64_t)size * WIRE_GROUP_ADDRESS)
		return -EPROTO;
	for (i = 0; i < size; i++)
		if (!has_end(addresses[i]))
			return -EPROTO;
	return 0;
}
