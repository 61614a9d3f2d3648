/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/secret.h"
#include "lib/conn/handshake.h"
#include "lib/conn/encryption.h"

#define NONCE crypto_aead_chacha20poly1305_ietf_NPUBBYTES

struct wire_handshake_versions weir_handshake_versions = { WIRE_VERSION_MIN, WIRE_VERSION };

struct weir_handshake *weir_handshake_new(void)
{
	return weir_secret_alloc(sizeof(struct weir_handshake));
}

void weir_handshake_free(struct weir_handshake *h)
{
	weir_secret_free(h);
}

int weir_handshake_input(struct weir_handshake *h, const void *in, size_t in_length, void *out,
			 size_t *out_length)
{
	int rc;

	weir_encryption_bind(&h->setup);
	rc = weir_handshake_received(h, in, in_length, out, out_length);
	weir_secret_forget_registers();
	return rc;
}

void weir_handshake_welcome(struct weir_handshake *h, const struct wire_handshake_welcome *welcome,
			    void *out, size_t *out_length)
{
	weir_encryption_bind(&h->setup);
	weir_handshake_admit(h, welcome, out, out_length);
	weir_secret_forget_registers();
}

int weir_handshake_explain(const struct weir_handshake *h, int status, const char *peer,
			   struct weir_error *error)
{
	struct weir_error refusal;

	if (h->refusal.head.magic)
		weir_handshake_refusal_explain(&h->refusal, h->setup.version, &refusal);
	return weir_error_set(error, status, "%s: %s", peer,
			      h->refusal.head.magic ? refusal.text :
			      h->why		    ? h->why :
						      weir_strerror(status));
}

int weir_handshake_refusal_explain(const struct wire_handshake_refusal *refusal, uint16_t version,
				   struct weir_error *error)
{
	int status = weir_handshake_refusal_status(refusal, version);

	if (refusal->head.version != version)
		return weir_error_set(error, status,
				      "the other end speaks version %u of the protocol, this one "
				      "version %u: upgrade the older one",
				      refusal->head.version, version);
	if (status == -(int)refusal->status)
		return weir_error_set(error, status, "the other end refused: %s", refusal->text);
	return weir_error_set(error, status, "the other end refused: %s (errno %u)", refusal->text,
			      refusal->status);
}

void weir_handshake_random(void *bytes, size_t length)
{
	if (sodium_init() < 0)
		abort(); /* no randomness, no proof */
	randombytes_buf(bytes, length);
}

static void sha256(const uint8_t *bytes, size_t length, uint8_t *digest)
{
	crypto_hash_sha256(digest, bytes, length);
}

static bool dh(const uint8_t *secret, const uint8_t *public, uint8_t *shared)
{
	return !crypto_scalarmult(shared, secret, public);
}

static void write_nonce(uint64_t nonce, uint8_t to[static NONCE])
{
	memset(to, 0, NONCE - sizeof(nonce));
	memcpy(to + NONCE - sizeof(nonce), &nonce, sizeof(nonce));
}

static void seal(const uint8_t *key, uint64_t nonce, const uint8_t *ad, size_t ad_length,
		 const uint8_t *text, size_t length, uint8_t *sealed)
{
	uint8_t bytes[NONCE];

	write_nonce(nonce, bytes);
	crypto_aead_chacha20poly1305_ietf_encrypt(sealed, NULL, text, length, ad, ad_length, NULL,
						  bytes, key);
}

static bool open_sealed(const uint8_t *key, uint64_t nonce, const uint8_t *ad, size_t ad_length,
			const uint8_t *sealed, size_t length, uint8_t *text)
{
	uint8_t bytes[NONCE];

	write_nonce(nonce, bytes);
	return !crypto_aead_chacha20poly1305_ietf_decrypt(
		text, NULL, NULL, sealed, length + WEIR_NOISE_TAG, ad, ad_length, bytes, key);
}

const struct weir_noise_crypto weir_handshake_crypto = { sha256, dh, seal, open_sealed };

void weir_handshake_secrets(struct weir_handshake_setup *setup, const struct weir_key *key,
			    bool is_client)
{
	setup->crypto = &weir_handshake_crypto;
	weir_key_psk(key, setup->psk);
	weir_handshake_random(setup->ephemeral.secret, sizeof(setup->ephemeral.secret));
	if (!is_client && sodium_is_zero(setup->identity.secret, sizeof(setup->identity.secret))) {
		weir_handshake_random(setup->identity.secret, sizeof(setup->identity.secret));
		weir_noise_pair_init(&setup->identity, setup->crypto);
	}
	weir_secret_forget_registers();
}
