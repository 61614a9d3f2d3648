/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each function is one of the specification's, named at it. The hash covers the prologue and each
 * byte sent so far. The chaining key covers all secrets. A payload is sealed by a key from the
 * latter, with the former as associated data.
 */
#include "core/link/noise.h"

#define SHA256_BLOCK 64

static const char protocol[] = "Noise_NXpsk2_25519_ChaChaPoly_SHA256";

void weir_noise_wipe(void *secrets, size_t length)
{
	volatile uint8_t *byte = secrets;

	while (length--)
		*byte++ = 0;
}

void weir_noise_pair_init(struct weir_noise_pair *pair, const struct weir_noise_crypto *crypto)
{
	static const uint8_t base[WEIR_NOISE_KEY] = { 9 };

	crypto->dh(pair->secret, base, pair->public);
}

/* HMAC-SHA-256 under a key of 32 bytes over at most 33 bytes. */
static void hmac(const struct weir_noise_crypto *crypto, const uint8_t *key, const uint8_t *bytes,
		 size_t length, uint8_t *mac)
{
	uint8_t block[SHA256_BLOCK + WEIR_NOISE_KEY + 1];
	int i;

	memset(block, 0x36, SHA256_BLOCK);
	for (i = 0; i < WEIR_NOISE_KEY; i++)
		block[i] ^= key[i];
	memcpy(block + SHA256_BLOCK, bytes, length);
	crypto->sha256(block, SHA256_BLOCK + length, mac);
	for (i = 0; i < SHA256_BLOCK; i++)
		block[i] ^= 0x36 ^ 0x5c;
	memcpy(block + SHA256_BLOCK, mac, WEIR_NOISE_KEY);
	crypto->sha256(block, SHA256_BLOCK + WEIR_NOISE_KEY, mac);
	weir_noise_wipe(block, sizeof(block));
}

/* HKDF(): the first is the new chaining key. @out: room for @count outputs of 32 bytes. */
static void hkdf(struct weir_noise *n, const uint8_t *input, size_t length, uint8_t *out, int count)
{
	uint8_t temp[WEIR_NOISE_KEY], block[WEIR_NOISE_KEY + 1];
	size_t at = 0;
	int i;

	hmac(n->crypto, n->chaining_key, input, length, temp);
	for (i = 0; i < count; i++) {
		block[at] = (uint8_t)(i + 1);
		hmac(n->crypto, temp, block, at + 1, out + i * WEIR_NOISE_KEY);
		memcpy(block, out + i * WEIR_NOISE_KEY, WEIR_NOISE_KEY);
		at = WEIR_NOISE_KEY;
	}
	weir_noise_wipe(temp, sizeof(temp));
	weir_noise_wipe(block, sizeof(block));
}

/* MixHash() */
static void mix_hash(struct weir_noise *n, const void *bytes, size_t length)
{
	uint8_t block[WEIR_NOISE_KEY + WEIR_NOISE_PAYLOAD_MAX + WEIR_NOISE_TAG];

	memcpy(block, n->hash, WEIR_NOISE_KEY);
	memcpy(block + WEIR_NOISE_KEY, bytes, length);
	n->crypto->sha256(block, WEIR_NOISE_KEY + length, n->hash);
}

static void set_key(struct weir_noise *n, const uint8_t *key)
{
	memcpy(n->key, key, WEIR_NOISE_KEY);
	n->nonce = 0;
}

/* MixKey() */
static void mix_key(struct weir_noise *n, const uint8_t *input)
{
	uint8_t out[2 * WEIR_NOISE_KEY];

	hkdf(n, input, WEIR_NOISE_KEY, out, 2);
	memcpy(n->chaining_key, out, WEIR_NOISE_KEY);
	set_key(n, out + WEIR_NOISE_KEY);
	weir_noise_wipe(out, sizeof(out));
}

/* MixKeyAndHash(), the token "psk" */
static void mix_psk(struct weir_noise *n)
{
	uint8_t out[3 * WEIR_NOISE_KEY];

	hkdf(n, n->psk, WEIR_NOISE_KEY, out, 3);
	memcpy(n->chaining_key, out, WEIR_NOISE_KEY);
	mix_hash(n, out + WEIR_NOISE_KEY, WEIR_NOISE_KEY);
	set_key(n, out + 2 * WEIR_NOISE_KEY);
	weir_noise_wipe(out, sizeof(out));
}

/* The token "e" beside a psk: an ephemeral key sent in clear */
static void mix_ephemeral(struct weir_noise *n, const uint8_t *public)
{
	mix_hash(n, public, WEIR_NOISE_KEY);
	mix_key(n, public);
}

/* The tokens "ee" and "es" */
static bool mix_dh(struct weir_noise *n, const uint8_t *secret, const uint8_t *public)
{
	uint8_t shared[WEIR_NOISE_KEY];
	bool is_valid = n->crypto->dh(secret, public, shared);

	mix_key(n, shared);
	weir_noise_wipe(shared, sizeof(shared));
	return is_valid;
}

/* EncryptAndHash() */
static void encrypt(struct weir_noise *n, const void *text, size_t length, uint8_t *out)
{
	n->crypto->seal(n->key, n->nonce++, n->hash, WEIR_NOISE_KEY, text, length, out);
	mix_hash(n, out, length + WEIR_NOISE_TAG);
}

/* DecryptAndHash() */
static bool decrypt(struct weir_noise *n, const uint8_t *in, void *text, size_t length)
{
	if (!n->crypto->open(n->key, n->nonce++, n->hash, WEIR_NOISE_KEY, in, length, text))
		return false;
	mix_hash(n, in, length + WEIR_NOISE_TAG);
	return true;
}

/* Split(): the initiator sends under the first key. Nothing before can be computed again. */
static void split(struct weir_noise *n, bool is_initiator)
{
	static const uint8_t none[1];
	uint8_t out[2 * WEIR_NOISE_KEY];

	hkdf(n, none, 0, out, 2);
	memcpy(is_initiator ? n->send : n->receive, out, WEIR_NOISE_KEY);
	memcpy(is_initiator ? n->receive : n->send, out + WEIR_NOISE_KEY, WEIR_NOISE_KEY);
	weir_noise_wipe(out, sizeof(out));
	weir_noise_wipe(n->chaining_key, sizeof(n->chaining_key));
	weir_noise_wipe(n->key, sizeof(n->key));
	weir_noise_wipe(n->psk, sizeof(n->psk));
	weir_noise_wipe(&n->e, sizeof(n->e));
}

void weir_noise_init(struct weir_noise *n, const struct weir_noise_crypto *crypto,
		     const void *prologue, size_t length, const uint8_t *psk,
		     const struct weir_noise_pair *e)
{
	memset(n, 0, sizeof(*n));
	n->crypto = crypto;
	n->e = *e;
	memcpy(n->psk, psk, WEIR_NOISE_KEY);
	crypto->sha256((const uint8_t *)protocol, sizeof(protocol) - 1, n->hash);
	memcpy(n->chaining_key, n->hash, WEIR_NOISE_KEY);
	mix_hash(n, prologue, length);
}

void weir_noise_write_first(struct weir_noise *n, const void *payload, size_t length, uint8_t *out)
{
	memcpy(out, n->e.public, WEIR_NOISE_KEY);
	mix_ephemeral(n, n->e.public);
	encrypt(n, payload, length, out + WEIR_NOISE_KEY);
}

bool weir_noise_read_first(struct weir_noise *n, const uint8_t *in, void *payload, size_t length)
{
	memcpy(n->re, in, WEIR_NOISE_KEY);
	mix_ephemeral(n, n->re);
	return decrypt(n, in + WEIR_NOISE_KEY, payload, length);
}

bool weir_noise_write_second(struct weir_noise *n, const struct weir_noise_pair *s,
			     const void *payload, size_t length, uint8_t *out)
{
	memcpy(out, n->e.public, WEIR_NOISE_KEY);
	out += WEIR_NOISE_KEY;
	mix_ephemeral(n, n->e.public);
	if (!mix_dh(n, n->e.secret, n->re))
		return false;
	encrypt(n, s->public, WEIR_NOISE_KEY, out);
	out += WEIR_NOISE_KEY + WEIR_NOISE_TAG;
	if (!mix_dh(n, s->secret, n->re))
		return false;
	mix_psk(n);
	encrypt(n, payload, length, out);
	split(n, false);
	return true;
}

bool weir_noise_read_second(struct weir_noise *n, const uint8_t *in, void *payload, size_t length,
			    uint8_t *rs)
{
	memcpy(n->re, in, WEIR_NOISE_KEY);
	in += WEIR_NOISE_KEY;
	mix_ephemeral(n, n->re);
	if (!mix_dh(n, n->e.secret, n->re) || !decrypt(n, in, rs, WEIR_NOISE_KEY))
		return false;
	in += WEIR_NOISE_KEY + WEIR_NOISE_TAG;
	if (!mix_dh(n, n->e.secret, rs))
		return false;
	mix_psk(n);
	if (!decrypt(n, in, payload, length))
		return false;
	split(n, true);
	return true;
}

void weir_noise_seal(struct weir_noise *n, const uint8_t *ad, size_t ad_length, const void *text,
		     size_t length, uint8_t *sealed)
{
	n->crypto->seal(n->send, n->nr_sent++, ad, ad_length, text, length, sealed);
}

bool weir_noise_open(struct weir_noise *n, const uint8_t *ad, size_t ad_length,
		     const uint8_t *sealed, size_t length, void *text)
{
	return n->crypto->open(n->receive, n->nr_received++, ad, ad_length, sealed, length, text);
}
