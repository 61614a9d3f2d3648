/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A mux or a member of a group sends arbitrary bytes as a control message. Accepted messages name
 * what they must and nothing else, and their ranges do not wrap.
 *
 * The first byte selects the message's type and which field is small.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "wire/group.h"
#include "wire/mux.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_ring(const struct wire_mux_control *m)
{
	assert(m->value >= WIRE_MUX_WINDOW_MIN && m->value <= WIRE_MUX_WINDOW_MAX && !m->rights);
	if (!m->position) {
		assert(!m->length);
		return;
	}
	assert(m->position + m->value > m->position && m->length <= UINT32_MAX);
	assert(__builtin_popcount(m->value) == 1);
}

static void check(const struct wire_mux_control *m)
{
	const bool names_peer = m->type != WIRE_MUX_OPEN && m->type < WIRE_MUX_LEAVE;
	const bool has_memory = m->type == WIRE_MUX_OPEN || m->type == WIRE_MUX_ACCEPT ||
				m->type == WIRE_MUX_GRANT;

	assert(m->type >= WIRE_MUX_OPEN && m->type <= WIRE_MUX_STAY);
	if (names_peer)
		assert(m->to);
	if (!has_memory)
		assert(!m->length && !m->rights);
	if (m->type >= WIRE_MUX_LEAVE)
		assert(!m->to && !m->from && !m->value && !m->position);
	if (m->type == WIRE_MUX_OPEN || m->type == WIRE_MUX_ACCEPT)
		check_ring(m);
	if (m->type == WIRE_MUX_GRANT)
		assert(m->rights && m->rights <= 3 && m->length &&
		       m->position + m->length > m->position && m->from);
	if (m->type == WIRE_MUX_REFUSE)
		assert(m->value && m->value < 4096);
	if (m->type == WIRE_MUX_FIN)
		assert(m->value < 4096);
}

static void read_control(const uint8_t *data, size_t size)
{
	struct wire_mux_control m = { 0 }, out;
	uint8_t bytes[1 + sizeof(m)];

	if (!wire_mux_control_decode(data, size, &out))
		check(&out);
	if (size < 2)
		return;
	memcpy(&m, data + 2, size - 2 < sizeof(m) ? size - 2 : sizeof(m));
	m.type = data[0] % (WIRE_MUX_STAY + 2);
	if (data[1] & 1)
		m.rights = data[1] >> 6;
	if (data[1] & 2)
		m.length = data[1] >> 4;
	if (data[1] & 4)
		m.from = data[1] & 1;
	if (data[1] & 8)
		m.value = data[0] & 0x80 ? 1u << (data[0] >> 2 & 31) : 0;
	if (data[1] & 16)
		m.position = data[0] & 0x40 ? UINT64_MAX - data[0] : 0;
	memcpy(bytes + 1, &m, sizeof(m)); /* unaligned */
	if (!wire_mux_control_decode(bytes + 1, sizeof(m), &out)) {
		assert(!memcmp(&out, &m, sizeof(m)));
		check(&out);
	}
}

static void read_group(const uint8_t *data, size_t size)
{
	struct wire_group_hello hello = { .magic = WIRE_GROUP_MAGIC };
	uint32_t members = size ? data[0] % 8 + 1u : 1;
	char (*addresses)[WIRE_GROUP_ADDRESS] = malloc(size ? size : 1);

	memcpy(addresses, data, size);
	if (!wire_group_addresses_check((const char (*)[WIRE_GROUP_ADDRESS])addresses, size,
					members)) {
		for (uint32_t i = 0; i < members; i++)
			assert(strlen(addresses[i]) < WIRE_GROUP_ADDRESS);
	}
	free(addresses);
	if (size > 3)
		memcpy((char *)&hello + 8, data + 3,
		       size - 3 < sizeof(hello) - 8 ? size - 3 : sizeof(hello) - 8);
	if (size > 2) {
		hello.size = data[1] & 1 ? members : hello.size;
		hello.member = data[1] & 2 ? data[2] % 10 : hello.member;
	}
	if (!wire_group_hello_check(&hello, sizeof(hello), members, 0)) {
		assert(hello.member < members && hello.size == members);
		assert(memchr(hello.address, 0, sizeof(hello.address)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_control(data, size);
	read_group(data, size);
	return 0;
}
