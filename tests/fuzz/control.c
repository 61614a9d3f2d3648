/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A proven peer sends arbitrary bytes as a control message. The decoders read nothing beyond
 * the bytes, accepted messages are within bounds, and so are the credits.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/control.h"
#include "core/link/credit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void bodies(const void *body, size_t length)
{
	char name[WIRE_CONTROL_NAME_MAX + 1], text[32];
	struct wire_control_request request;
	struct wire_control_region region;
	struct wire_control_entry entry;
	struct wire_control_list list;
	struct wire_control_info info;
	struct wire_control_reclaim recall;
	uint32_t i;

	if (!wire_control_request_decode(body, length, &request, name)) {
		assert(strlen(name) == request.name_length);
		assert(!strchr(name, '/'));
	}
	wire_control_region_decode(body, length, &region);
	wire_control_info_decode(body, length, &info);
	wire_control_reclaim_decode(body, length, &recall);
	wire_control_text_decode(body, length, text, sizeof(text));
	assert(strlen(text) < sizeof(text));
	if (wire_control_list_decode(body, length, &list))
		return;
	assert(wire_control_entry_decode(body, length, list.count, &entry));
	for (i = 0; i < list.count; i++)
		if (!wire_control_entry_decode(body, length, i, &entry)) {
			assert(sizeof(list) + (i + 1) * sizeof(entry) <= length);
			assert(strlen(entry.name) <= WIRE_CONTROL_NAME_MAX);
		}
}

static void credits(const uint8_t *data, size_t size)
{
	struct weir_credit credit;

	weir_credit_init(&credit, 32, 16);
	for (; size; data++, size--) {
		if (weir_credit_has_room(&credit) && *data & 1)
			weir_credit_spend(&credit);
		else if (weir_credit_received(&credit, *data >> 1))
			return;
		assert(credit.open + credit.owed <= credit.ours);
		assert(credit.spendable <= credit.theirs);
	}
}

/* The bytes as a message with a valid head, and as a request, both with their exact lengths. */
static void repaired(const uint8_t *data, size_t size)
{
	struct wire_control_head head = { .kind = 1 + data[0] % 8, .length = (uint32_t)size }, out;
	struct wire_control_request request = { .op = 1 + data[1] % 7,
						.name_length = (uint16_t)size };
	struct wire_control_list list = { .count = data[1] % 8 };
	uint8_t *message = malloc(sizeof(head) + size), *body = malloc(sizeof(request) + size);
	const void *at;

	head.length += data[0] >> 6;
	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), data, size);
	if (!wire_control_decode(message, sizeof(head) + size, &out, &at)) {
		assert(out.length == size);
		bodies(at, out.length);
	}
	request.name_length += data[1] >> 6;
	memcpy(body, &request, sizeof(request));
	memcpy(body + sizeof(request), data, size);
	bodies(body, sizeof(request) + size);
	free(message);
	free(body);
	size = sizeof(list) + list.count * sizeof(struct wire_control_entry);
	body = calloc(1, size);
	memcpy(body, &list, sizeof(list));
	bodies(body, size);
	free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_control_head head;
	const void *body;

	bodies(data, size);
	credits(data, size);
	if (size > 1)
		repaired(data, size);
	if (wire_control_decode(data, size, &head, &body))
		return 0;
	assert(head.length <= WIRE_CONTROL_BODY_MAX);
	assert((const uint8_t *)body + head.length == data + size);
	bodies(body, head.length);
	return 0;
}
