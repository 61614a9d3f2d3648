/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Primitives without any secrecy, for tests in the simulator and in the kernel: each input gives
 * another output. No host may include this file: the hosts' own primitives have tests of their own.
 */
#ifndef WEIR_CORE_LINK_TOY_NOISE_H
#define WEIR_CORE_LINK_TOY_NOISE_H

#include "core/link/noise.h"

#define TOY_SEED 0xcbf29ce484222325ull
#define TOY_PRIME 2147483647u

static inline uint64_t toy_hash(uint64_t h, const uint8_t *bytes, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		h = (h ^ bytes[i]) * 0x100000001b3ull; /* FNV-1a */
	return h ^ h >> 32;
}

static inline void toy_spread(uint64_t h, uint8_t *out, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++) {
		h = (h ^ i) * 0x9e3779b97f4a7c15ull;
		out[i] = (uint8_t)(h >> 56);
	}
}

static inline void toy_sha256(const uint8_t *bytes, size_t length, uint8_t *digest)
{
	toy_spread(toy_hash(TOY_SEED, bytes, length), digest, WEIR_NOISE_KEY);
}

/* Diffie and Hellman's, modulo a small prime. */
static inline bool toy_dh(const uint8_t *secret, const uint8_t *public, uint8_t *shared)
{
	uint32_t exponent, base, i;
	uint64_t result = 1, square;

	memcpy(&exponent, secret, sizeof(exponent));
	memcpy(&base, public, sizeof(base));
	exponent |= 1;
	square = base % TOY_PRIME;
	for (i = 0; i < 32; i++) {
		if (exponent >> i & 1)
			result = result * square % TOY_PRIME;
		square = square * square % TOY_PRIME;
	}
	memset(shared, 0, WEIR_NOISE_KEY);
	base = (uint32_t)result;
	memcpy(shared, &base, sizeof(base));
	return result;
}

static inline uint64_t toy_tag(const uint8_t *key, uint64_t nonce, const uint8_t *ad,
			       size_t ad_length, const uint8_t *sealed, size_t length)
{
	uint64_t h = toy_hash(TOY_SEED, key, WEIR_NOISE_KEY);

	h = toy_hash(h, (const uint8_t *)&nonce, sizeof(nonce));
	h = toy_hash(h ^ ad_length, ad, ad_length);
	return toy_hash(h ^ length, sealed, length);
}

static inline void toy_stream(const uint8_t *key, uint64_t nonce, const uint8_t *in, size_t length,
			      uint8_t *out)
{
	uint64_t h = toy_hash(nonce + 1, key, WEIR_NOISE_KEY);
	size_t i;

	for (i = 0; i < length; i++) {
		h = (h ^ i) * 0x9e3779b97f4a7c15ull;
		out[i] = in[i] ^ (uint8_t)(h >> 56);
	}
}

static inline void toy_seal(const uint8_t *key, uint64_t nonce, const uint8_t *ad, size_t ad_length,
			    const uint8_t *text, size_t length, uint8_t *sealed)
{
	toy_stream(key, nonce, text, length, sealed);
	toy_spread(toy_tag(key, nonce, ad, ad_length, sealed, length), sealed + length,
		   WEIR_NOISE_TAG);
}

static inline bool toy_open(const uint8_t *key, uint64_t nonce, const uint8_t *ad, size_t ad_length,
			    const uint8_t *sealed, size_t length, uint8_t *text)
{
	uint8_t tag[WEIR_NOISE_TAG];

	toy_spread(toy_tag(key, nonce, ad, ad_length, sealed, length), tag, sizeof(tag));
	if (memcmp(tag, sealed + length, sizeof(tag)))
		return false;
	toy_stream(key, nonce, sealed, length, text);
	return true;
}

static const struct weir_noise_crypto toy_noise = { toy_sha256, toy_dh, toy_seal, toy_open };

#endif
