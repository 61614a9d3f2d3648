/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A stranger sends arbitrary bytes. Both ends of the handshake refuse the messages, read
 * nothing beyond them, and never accept the stranger as knowing the key. Then an insider, another
 * client of the key, does: it neither poses as the donor nor is admitted in clear text.
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
	const struct wire_handshake_versions next = { WIRE_VERSION, WIRE_VERSION + 1 };
	struct wire_handshake_connect connect;
	struct wire_handshake_reject reject;
	uint16_t version;

	if (!wire_handshake_connect_decode(data, size, &connect))
		assert(connect.channel <= WIRE_CHANNEL_UNLOAD && connect.version == WIRE_VERSION);
	if (!wire_handshake_connect_decode_as(data, size, &next, &connect))
		assert(connect.version >= next.min && connect.version <= next.max);
	if (!wire_handshake_reject_decode(data, size, &reject)) {
		version = wire_handshake_next_version(&next, next.max, reject.refusal.head.version);
		assert(!version || version == WIRE_VERSION);
		assert(strlen(reject.refusal.text) < WIRE_TEXT);
		assert(weir_handshake_refusal_explain(&reject.refusal, WIRE_VERSION, NULL) < 0);
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

static void set_secrets(struct weir_handshake_setup *setup, const struct weir_key *of)
{
	setup->crypto = &weir_handshake_crypto;
	weir_key_psk(of, setup->psk);
	setup->ephemeral.secret[0] = setup->identity.secret[0] = 1;
	weir_noise_pair_init(&setup->identity, setup->crypto);
}

/* The other end: its key, and its state of Noise, from the first message on. */
struct fuzz_peer {
	const struct weir_key *key;
	struct weir_noise noise;
};

static void peer_begin(struct fuzz_peer *peer)
{
	const struct wire_handshake_prologue prologue = { WIRE_MAGIC, WIRE_VERSION,
							  .service.magic = WIRE_MAGIC };
	struct weir_noise_pair e = { { 3 } };
	uint8_t psk[WEIR_NOISE_KEY];

	weir_noise_pair_init(&e, &weir_handshake_crypto);
	weir_key_psk(peer->key, psk);
	weir_noise_init(&peer->noise, &weir_handshake_crypto, &prologue, sizeof(prologue), psk, &e);
}

/* Seals the payload of @m by the peer's key. For a HELLO no key is needed. */
static void peer_seal(struct fuzz_peer *peer, union wire_handshake_message *m, uint8_t type,
		      const uint8_t *payload)
{
	struct wire_handshake_hello hello;
	struct weir_noise_pair s = { { 5 } };

	switch (type) {
	case WIRE_HELLO:
		peer_begin(peer);
		weir_noise_write_first(&peer->noise, payload, sizeof(hello), m->hello.ephemeral);
		break;
	case WIRE_CHALLENGE:
		weir_noise_pair_init(&s, &weir_handshake_crypto);
		weir_noise_write_second(&peer->noise, &s, payload,
					sizeof(struct wire_handshake_challenge),
					m->challenge.ephemeral);
		break;
	case WIRE_PROOF:
		weir_noise_seal(&peer->noise, NULL, 0, payload, 0, m->proof.payload);
		break;
	case WIRE_WELCOME:
		weir_noise_seal(&peer->noise, NULL, 0, payload,
				sizeof(struct wire_handshake_welcome), m->welcome.payload);
		break;
	}
}

/*
 * Gives a message a valid head, and sometimes its tag, the stranger's own GID and QPN. The type
 * comes from @how. Return: its length.
 */
static size_t repair(struct fuzz_peer *peer, uint8_t how, const uint8_t *data, size_t length,
		     uint8_t *to)
{
	union wire_handshake_message m = { 0 };
	size_t left = sizeof(m) - sizeof(m.head);
	uint8_t payload[sizeof(m)] = { 0 };

	memcpy((uint8_t *)&m + sizeof(m.head), data, length < left ? length : left);
	if (how & 0x08)
		memcpy(payload + (how % 8 == WIRE_HELLO ? 22 : 20), data, length < 2 ? length : 2);
	else
		memcpy(payload, data, length < left ? length : left);
	if (!(how & 0x80))
		peer_seal(peer, &m, how % 8, payload);
	length = wire_handshake_encode(&m, how % 8);
	if (how & 0x10)
		m.head.length += how >> 5;
	memcpy(to, &m, length);
	return how & 0x20 ? length - 3 + (how >> 6) * 60u : length;
}

/* A CHALLENGE makes the peer an initiator that reads it. */
static void peer_hears(struct fuzz_peer *peer, const uint8_t *message, size_t length)
{
	union wire_handshake_message m;
	uint8_t payload[sizeof(m)], rs[WIRE_KEY];

	if (wire_handshake_decode(message, length, &m))
		return;
	if (m.head.type == WIRE_HELLO) {
		peer_begin(peer);
		weir_noise_read_first(&peer->noise, m.hello.ephemeral, payload,
				      sizeof(struct wire_handshake_hello));
	} else if (m.head.type == WIRE_CHALLENGE) {
		weir_noise_read_second(&peer->noise, m.challenge.ephemeral, payload,
				       sizeof(struct wire_handshake_challenge), rs);
	}
}

static void converse(struct weir_handshake *h, struct fuzz_peer *peer, const uint8_t *data,
		     size_t size)
{
	uint8_t out[WIRE_HANDSHAKE_MAX], in[2 * WIRE_HANDSHAKE_MAX + 60] = { 0 }, *exact;
	size_t length, in_length, out_length;

	while (size > 1) {
		length = data[1] < size - 2 ? data[1] : size - 2;
		in_length = length < sizeof(in) ? length : sizeof(in);
		memcpy(in, data + 2, in_length);
		if (data[0] % 8 >= WIRE_HELLO && data[0] % 8 <= WIRE_REFUSAL)
			in_length = repair(peer, data[0], data + 2, length, in);
		exact = malloc(in_length ? in_length : 1); /* so that a sanitizer knows its end */
		memcpy(exact, in, in_length);
		weir_handshake_input(h, exact, in_length, out, &out_length);
		free(exact);
		assert(out_length <= sizeof(out));
		peer_hears(peer, out, out_length);
		assert(h->state != WEIR_HANDSHAKE_PROVEN && h->state != WEIR_HANDSHAKE_DONE);
		data += 2 + length;
		size -= 2 + length;
	}
}

static void hear_client(struct fuzz_peer *peer, struct weir_handshake_setup *setup,
			const uint8_t *data, size_t size)
{
	uint8_t out[WIRE_HANDSHAKE_MAX];
	struct weir_handshake h;
	size_t length;

	set_secrets(setup, &key);
	weir_handshake_client(&h, setup, out, &length);
	peer_hears(peer, out, length);
	converse(&h, peer, data, size);
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
	static const uint8_t pins[1][WIRE_KEY] = { { 1 } };
	struct weir_handshake_setup setup = {
		.key = &key,
		.credits = 32,
		.service.magic = WIRE_MAGIC,
	};
	struct fuzz_peer stranger = { .key = NULL }, insider = { .key = &key };
	struct weir_handshake h;

	decode(data, size);
	decode_exchange(data, size);
	repair_exchange(data, size);
	peer_begin(&stranger);
	peer_begin(&insider);
	set_secrets(&setup, &key);
	weir_handshake_donor(&h, &setup);
	converse(&h, &stranger, data, size);
	hear_client(&stranger, &setup, data, size);
	setup.pins = pins;
	setup.nr_pins = 1;
	hear_client(&insider, &setup, data, size);
	setup.nr_pins = 0;
	setup.encrypts = true; /* the insider does not */
	hear_client(&insider, &setup, data, size);
	set_secrets(&setup, &key);
	weir_handshake_donor(&h, &setup);
	converse(&h, &insider, data, size);
	return 0;
}
