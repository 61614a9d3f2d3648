/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A proven peer sends arbitrary bytes as a control message. The decoders read nothing beyond
 * the bytes, accepted messages are within bounds, and so are the credits.
 */
#include <assert.h>
#include <stdint.h>
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
	for (i = 0; i < list.count; i++)
		if (!wire_control_entry_decode(body, length, i, &entry))
			assert(strlen(entry.name) <= WIRE_CONTROL_NAME_MAX);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_control_head head;
	const void *body;

	bodies(data, size);
	credits(data, size);
	if (wire_control_decode(data, size, &head, &body))
		return 0;
	assert(head.length <= WIRE_CONTROL_BODY_MAX);
	assert((const uint8_t *)body + head.length == data + size);
	bodies(body, head.length);
	return 0;
}
