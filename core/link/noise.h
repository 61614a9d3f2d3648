/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Noise_NXpsk2_25519_ChaChaPoly_SHA256, as revision 34 of the Noise specification defines it:
 *
 *	-> e			weir_noise_write_first(), weir_noise_read_first()
 *	<- e, ee, s, es, psk	weir_noise_write_second(), weir_noise_read_second()
 *	transport messages	weir_noise_seal(), weir_noise_open()
 *
 * The host gives the primitives. The end that connects is the initiator. The owner serialises.
 */
#ifndef WEIR_CORE_LINK_NOISE_H
#define WEIR_CORE_LINK_NOISE_H

#include "core/base/platform.h"

#define WEIR_NOISE_KEY 32 /* bytes of each key and hash */
#define WEIR_NOISE_TAG 16
#define WEIR_NOISE_PAYLOAD_MAX 128

/* Bytes that each handshake message adds to its payload. */
#define WEIR_NOISE_FIRST (WEIR_NOISE_KEY + WEIR_NOISE_TAG)
#define WEIR_NOISE_SECOND (2 * WEIR_NOISE_KEY + 2 * WEIR_NOISE_TAG)

/**
 * struct weir_noise_crypto - the host's primitives; pure functions
 * @sha256: of up to 256 bytes
 * @dh: X25519. Return: false if @shared is all zero
 * @seal: ChaCha20-Poly1305 of RFC 8439. Its nonce is 4 bytes 0 and @nonce, little-endian. Writes
 *	@length bytes and the tag
 * @open: the opposite, of @length bytes and the tag. Return: false, and nothing written, if
 *	anything was changed
 */
struct weir_noise_crypto {
	void (*sha256)(const uint8_t *bytes, size_t length, uint8_t *digest);
	bool (*dh)(const uint8_t *secret, const uint8_t *public, uint8_t *shared);
	void (*seal)(const uint8_t *key, uint64_t nonce, const uint8_t *ad, size_t ad_length,
		     const uint8_t *text, size_t length, uint8_t *sealed);
	bool (*open)(const uint8_t *key, uint64_t nonce, const uint8_t *ad, size_t ad_length,
		     const uint8_t *sealed, size_t length, uint8_t *text);
};

/* A key pair of X25519. */
struct weir_noise_pair {
	uint8_t secret[WEIR_NOISE_KEY], public[WEIR_NOISE_KEY];
};

/**
 * struct weir_noise - one end of a conversation, in the specification's words
 * @chaining_key, @hash, @key, @nonce: the SymmetricState; @key is that of the next payload
 * @psk, @e: the shared key, and the own ephemeral pair, until the second message
 * @re: the other end's ephemeral key
 * @send, @receive: keys of the transport messages, after the second message
 * @nr_sent, @nr_received: transport messages, their nonces
 */
struct weir_noise {
	const struct weir_noise_crypto *crypto;
	uint8_t chaining_key[WEIR_NOISE_KEY], hash[WEIR_NOISE_KEY], key[WEIR_NOISE_KEY];
	uint64_t nonce;
	uint8_t psk[WEIR_NOISE_KEY];
	struct weir_noise_pair e;
	uint8_t re[WEIR_NOISE_KEY];
	uint8_t send[WEIR_NOISE_KEY], receive[WEIR_NOISE_KEY];
	uint64_t nr_sent, nr_received;
};

/* Overwrites secrets; no compiler drops it. */
void weir_noise_wipe(void *secrets, size_t length);

/* Sets pair->public from pair->secret. */
void weir_noise_pair_init(struct weir_noise_pair *pair, const struct weir_noise_crypto *crypto);

/**
 * weir_noise_init() - begin, at either end
 * @prologue: both ends' must be equal; at most WEIR_NOISE_PAYLOAD_MAX bytes
 * @psk: the shared key, WEIR_NOISE_KEY bytes
 * @e: an ephemeral pair, of this conversation alone
 */
void weir_noise_init(struct weir_noise *n, const struct weir_noise_crypto *crypto,
		     const void *prologue, size_t length, const uint8_t *psk,
		     const struct weir_noise_pair *e);

/* -> e: writes WEIR_NOISE_FIRST bytes more than the payload has. Anybody can read the payload. */
void weir_noise_write_first(struct weir_noise *n, const void *payload, size_t length, uint8_t *out);

/* @length: of the payload. Return: false: not from an end with this prologue. */
bool weir_noise_read_first(struct weir_noise *n, const uint8_t *in, void *payload, size_t length);

/**
 * weir_noise_write_second() - <- e, ee, s, es, psk: writes WEIR_NOISE_SECOND bytes more
 * @s: the responder's static pair
 *
 * Then the keys of the transport messages are set, and all others wiped.
 *
 * Return: false: the initiator's ephemeral key is not valid.
 */
bool weir_noise_write_second(struct weir_noise *n, const struct weir_noise_pair *s,
			     const void *payload, size_t length, uint8_t *out);

/**
 * weir_noise_read_second() - the opposite
 * @rs: receives the responder's static key, which it has proven to know the secret of
 *
 * Return: false: not the answer to this first message, by an end with this psk.
 */
bool weir_noise_read_second(struct weir_noise *n, const uint8_t *in, void *payload, size_t length,
			    uint8_t *rs);

/* Writes a transport message: @length bytes and the tag. @ad: authenticated, not sent. */
void weir_noise_seal(struct weir_noise *n, const uint8_t *ad, size_t ad_length, const void *text,
		     size_t length, uint8_t *sealed);

/* @length: of the text. Return: false: changed, repeated, or another end's. */
bool weir_noise_open(struct weir_noise *n, const uint8_t *ad, size_t ad_length,
		     const uint8_t *sealed, size_t length, void *text);

#endif
