/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A stranger sends arbitrary bytes. Both ends of the handshake refuse the messages, read
 * nothing beyond them, and never accept the stranger as knowing the key.
 *
 * The input is a sequence of messages, each after a byte with its length.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "lib/conn/handshake.h"
#include "wire/exchange.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct weir_key key = { .length = 16, .bytes = "0123456789abcdef" };

static void decode(const uint8_t *data, size_t size)
{
	struct wire_handshake_connect connect;
	struct wire_handshake_refusal refusal;

	if (!wire_handshake_connect_decode(data, size, &connect))
		assert(connect.channel <= WIRE_CHANNEL_UNLOAD);
	if (!wire_handshake_refusal_decode(data, size, &refusal)) {
		assert(strlen(refusal.text) < WIRE_TEXT);
		assert(weir_handshake_refusal_explain(&refusal, NULL) < 0);
	}
}

static void decode_exchange(const uint8_t *data, size_t size)
{
	struct wire_exchange_connect connect;
	struct wire_exchange_offer offer;
	struct wire_exchange_freed gives;

	if (!wire_exchange_connect_decode(data, size, &connect))
		assert(connect.magic == WIRE_EXCHANGE_MAGIC);
	if (!wire_exchange_offer_decode(data, size, &offer))
		assert(offer.slots && offer.slots <= WIRE_EXCHANGE_SLOTS_MAX && offer.slot_bytes &&
		       offer.slot_bytes <= WIRE_EXCHANGE_SLOT_BYTES_MAX);
	if (!wire_exchange_freed_decode(data, size, &gives))
		assert(gives.count && gives.count <= WIRE_EXCHANGE_FREED_MAX);
}

static void converse(struct weir_handshake *h, const uint8_t *data, size_t size)
{
	uint8_t out[WIRE_HANDSHAKE_MAX];
	size_t length, out_length;

	while (size) {
		length = data[0] < size ? data[0] : size - 1;
		weir_handshake_input(h, data + 1, length, out, &out_length);
		assert(out_length <= sizeof(out));
		assert(h->state != WEIR_HANDSHAKE_PROVEN && h->state != WEIR_HANDSHAKE_DONE);
		data += 1 + length;
		size -= 1 + length;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct weir_handshake_setup setup = { .key = &key, .credits = 32 };
	uint8_t out[WIRE_HANDSHAKE_MAX];
	struct weir_handshake h;
	size_t out_length;

	decode(data, size);
	decode_exchange(data, size);
	weir_handshake_donor(&h, &setup);
	converse(&h, data, size);
	weir_handshake_client(&h, &setup, out, &out_length);
	converse(&h, data, size);
	return 0;
}
