/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The generations of all blocks, to be kept from one opening to the next. */
#include <endian.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "lib/sealed/sealed.h"

/* Followed by the generations and a MAC over all of it. Little-endian. */
struct state_head {
	char label[16];
	uint64_t blocks;
};

static const struct state_head state_head = { .label = "weir-1 sealed st" };

static size_t covered_bytes(const struct weir_sealed *sealed)
{
	return sizeof(struct state_head) + sealed->blocks * sizeof(uint64_t);
}

size_t weir_sealed_state_bytes(const struct weir_sealed *sealed)
{
	return covered_bytes(sealed) + WEIR_SLOT_STATE_MAC;
}

void weir_sealed_state_export(struct weir_sealed *sealed, void *state)
{
	struct state_head head = state_head;
	uint8_t *at = state;
	uint64_t block, generation;

	head.blocks = htole64(sealed->blocks);
	memcpy(at, &head, sizeof(head));
	at += sizeof(head);
	for (block = 0; block < sealed->blocks; block++, at += sizeof(generation)) {
		generation = htole64(weir_sealed_floor(sealed, block));
		memcpy(at, &generation, sizeof(generation));
	}
	weir_slot_mac_state(sealed->keys, state, covered_bytes(sealed), at);
}

int weir_sealed_state_import(struct weir_sealed *sealed, const void *state, size_t length)
{
	uint8_t mac[WEIR_SLOT_STATE_MAC];
	struct state_head head;
	const uint8_t *at = state;
	uint64_t block, generation;

	if (length != weir_sealed_state_bytes(sealed))
		return -EBADMSG;
	weir_slot_mac_state(sealed->keys, state, covered_bytes(sealed), mac);
	memcpy(&head, at, sizeof(head));
	if (sodium_memcmp(mac, at + covered_bytes(sealed), sizeof(mac)) ||
	    memcmp(head.label, state_head.label, sizeof(head.label)) ||
	    le64toh(head.blocks) != sealed->blocks)
		return -EBADMSG;
	at += sizeof(head);
	for (block = 0; block < sealed->blocks; block++, at += sizeof(generation)) {
		memcpy(&generation, at, sizeof(generation));
		weir_sealed_saw(sealed, block, le64toh(generation));
	}
	return 0;
}
