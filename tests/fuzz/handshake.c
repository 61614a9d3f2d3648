/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A stranger sends arbitrary bytes. Both ends of the handshake refuse the messages, read
 * nothing beyond them, and never accept the stranger as knowing the key.
 *
 * The input is a sequence of messages, each after a byte that says how to repair its head and one
 * with its length.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
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

/*
 * Gives a message a valid head, and sometimes the stranger's own GID and QPN. The type comes from
 * @how. Return: its length.
 */
static size_t repair(uint8_t how, const uint8_t *data, size_t length, uint8_t *to)
{
	union wire_handshake_message m = { 0 };
	size_t left = sizeof(m) - sizeof(m.head);

	memcpy((uint8_t *)&m + sizeof(m.head), data, length < left ? length : left);
	if (how & 0x08 && how % 8 == WIRE_HELLO)
		m.hello = (struct wire_handshake_hello){ .credits = m.hello.credits };
	if (how & 0x08 && how % 8 == WIRE_CHALLENGE)
		m.challenge = (struct wire_handshake_challenge){ .flags = m.challenge.flags };
	length = wire_handshake_encode(&m, how % 8);
	if (how & 0x10)
		m.head.length += how >> 5;
	memcpy(to, &m, length);
	return how & 0x20 ? length - 3 + (how >> 6) * 60u : length;
}

static void converse(struct weir_handshake *h, const uint8_t *data, size_t size)
{
	uint8_t out[WIRE_HANDSHAKE_MAX], in[2 * WIRE_HANDSHAKE_MAX + 60] = { 0 }, *exact;
	size_t length, in_length, out_length;

	while (size > 1) {
		length = data[1] < size - 2 ? data[1] : size - 2;
		in_length = length < sizeof(in) ? length : sizeof(in);
		memcpy(in, data + 2, in_length);
		if (data[0] % 8 >= WIRE_HELLO && data[0] % 8 <= WIRE_REFUSAL)
			in_length = repair(data[0], data + 2, length, in);
		exact = malloc(in_length ? in_length : 1); /* so that a sanitizer knows its end */
		memcpy(exact, in, in_length);
		weir_handshake_input(h, exact, in_length, out, &out_length);
		free(exact);
		assert(out_length <= sizeof(out));
		assert(h->state != WEIR_HANDSHAKE_PROVEN && h->state != WEIR_HANDSHAKE_DONE);
		data += 2 + length;
		size -= 2 + length;
	}
}

/* The exchange's messages with valid heads. */
static void repair_exchange(const uint8_t *data, size_t size)
{
	struct wire_exchange_offer offer = { .slots = 1, .slot_bytes = 1 };
	struct wire_exchange_freed *freed;
	size_t length;

	if (size < 4)
		return;
	memcpy((uint8_t *)&offer + sizeof(offer.head) + data[0] % 12, data + 1,
	       size - 1 < 8 ? size - 1 : 8);
	wire_exchange_offer_encode(&offer);
	decode_exchange((uint8_t *)&offer, sizeof(offer) - (data[0] >> 7));
	length = 8 + data[1] % 64 * 4u;
	freed = calloc(1, length);
	freed->count = data[2] & 1 ? data[3] : data[1] % 64;
	decode_exchange((uint8_t *)freed, length);
	free(freed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct weir_handshake_setup setup = { .key = &key, .credits = 32 };
	uint8_t out[WIRE_HANDSHAKE_MAX];
	struct weir_handshake h;
	size_t out_length;

	decode(data, size);
	decode_exchange(data, size);
	repair_exchange(data, size);
	weir_handshake_donor(&h, &setup);
	converse(&h, data, size);
	weir_handshake_client(&h, &setup, out, &out_length);
	converse(&h, data, size);
	return 0;
}
