// SPDX-License-Identifier: GPL-2.0-only
#include <crypto/chacha20poly1305.h>
#include <crypto/curve25519.h>
#include <crypto/sha2.h>
#include <keys/user-type.h>
#include <linux/kernel.h>
#include <linux/key.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "kernel/weir/handshake.h"

#define KEY_MIN 16
#define KEY_MAX 4096
#define DONOR_WORD "donor "
#define DONOR_WORD_LENGTH (sizeof(DONOR_WORD) - 1)
#define DONOR_LINE (1 + DONOR_WORD_LENGTH + 2 * WIRE_KEY) /* with the newline before */

/* SHA-256 of a label, with its NUL, and the key: as weir_key_id() and weir_key_psk(). */
static int hash_key(const char *label, const u8 *bytes, unsigned int length, u8 *digest)
{
	size_t label_size = strlen(label) + 1;
	u8 *all = kmalloc(label_size + length, GFP_KERNEL);

	if (!all)
		return -ENOMEM;
	memcpy(all, label, label_size);
	memcpy(all + label_size, bytes, length);
	sha256(all, label_size + length, digest);
	kfree_sensitive(all);
	return 0;
}

static int set_key(struct kweir_secret *secret, const u8 *bytes, unsigned int length,
		   struct kweir_error *error)
{
	u8 digest[SHA256_DIGEST_SIZE];
	int rc = hash_key("weir-1 key id", bytes, length, digest);

	if (!rc)
		rc = hash_key("weir-4 psk", bytes, length, secret->psk);
	memcpy(&secret->key_id, digest, sizeof(secret->key_id));
	return rc ? kweir_fail(error, rc, "out of memory") : 0;
}

/*
 * Takes the last line off @bytes, if it is "donor" and a public key in hexadecimal digits. Return:
 * the length without it, or @length unchanged.
 */
static unsigned int take_donor(const u8 *bytes, unsigned int length, u8 *donor)
{
	const u8 *line;

	if (length < DONOR_LINE)
		return length;
	line = bytes + length - (DONOR_LINE - 1);
	if (line[-1] != '\n' || memcmp(line, DONOR_WORD, DONOR_WORD_LENGTH) ||
	    hex2bin(donor, line + DONOR_WORD_LENGTH, WIRE_KEY))
		return length;
	return length - DONOR_LINE;
}

/* As in lib/conn/key.c: a pin with a mistake must not become none. @length: at least KEY_MIN */
static bool has_bad_donor(const u8 *bytes, unsigned int length)
{
	static const char word[] = "\ndonor";
	const unsigned int word_length = sizeof(word) - 1;
	unsigned int i;

	for (i = 0; i + word_length <= length; i++)
		if (!memcmp(bytes + i, word, word_length))
			return true;
	return length >= DONOR_LINE - 1 &&
	       !memcmp(bytes + length - (DONOR_LINE - 1), DONOR_WORD, DONOR_WORD_LENGTH);
}

/* Return: the length of the key alone, or -EINVAL. */
static int take_donors(struct kweir_secret *secret, const u8 *bytes, unsigned int length)
{
	u8 donor[WIRE_KEY];
	unsigned int rest;

	while ((rest = take_donor(bytes, length, donor)) != length) {
		if (secret->nr_donors == KWEIR_DONORS_MAX)
			return -EINVAL;
		memcpy(secret->donors[secret->nr_donors++], donor, WIRE_KEY);
		length = rest;
	}
	if (length < KEY_MIN || length > KEY_MAX || has_bad_donor(bytes, length))
		return -EINVAL;
	return length;
}

/* The key has the form that 'weir key' writes and lib/conn/key.c reads, without the newline. */
static int set_payload(struct kweir_secret *secret, const struct user_key_payload *payload,
		       struct kweir_error *error)
{
	int length = take_donors(secret, payload->data, payload->datalen);

	if (length < 0)
		return kweir_fail(error, -EINVAL,
				  "the key has %u bytes: %d to %d make one, and up to %d right lines of donors",
				  payload->datalen, KEY_MIN, KEY_MAX, KWEIR_DONORS_MAX);
	return set_key(secret, payload->data, length, error);
}

static int set_key_of(struct kweir_secret *secret, struct key *key, struct kweir_error *error)
{
	const struct user_key_payload *payload;
	int rc;

	down_read(&key->sem);
	payload = user_key_payload_locked(key);
	if (!payload)
		rc = kweir_fail(error, -EKEYREVOKED, "the key has been revoked");
	else
		rc = set_payload(secret, payload, error);
	up_read(&key->sem);
	return rc;
}

int kweir_secret_init(struct kweir_secret *secret, struct key *key, struct kweir_error *error)
{
	secret->nr_donors = 0;
	return key ? set_key_of(secret, key, error) : set_key(secret, "", 0, error);
}

void kweir_secret_fini(struct kweir_secret *secret)
{
	memzero_explicit(secret, sizeof(*secret));
}

static void hash(const u8 *bytes, size_t length, u8 *digest)
{
	sha256(bytes, length, digest);
}

static bool dh(const u8 *secret, const u8 *public, u8 *shared)
{
	return curve25519(shared, secret, public);
}

static void seal(const u8 *key, u64 nonce, const u8 *ad, size_t ad_length, const u8 *text,
		 size_t length, u8 *sealed)
{
	chacha20poly1305_encrypt(sealed, text, length, ad, ad_length, nonce, key);
}

static bool open_sealed(const u8 *key, u64 nonce, const u8 *ad, size_t ad_length, const u8 *sealed,
			size_t length, u8 *text)
{
	return chacha20poly1305_decrypt(text, sealed, length + WEIR_NOISE_TAG, ad, ad_length, nonce,
					key);
}

static const struct weir_noise_crypto crypto = { hash, dh, seal, open_sealed };

void kweir_handshake_secrets(struct weir_handshake_setup *setup, const struct kweir_secret *secret)
{
	setup->crypto = &crypto;
	memcpy(setup->psk, secret->psk, sizeof(setup->psk));
	setup->pins = secret->donors;
	setup->nr_pins = secret->nr_donors;
	get_random_bytes_wait(setup->ephemeral.secret, sizeof(setup->ephemeral.secret));
	curve25519_clamp_secret(setup->ephemeral.secret);
}

int kweir_handshake_input(struct weir_handshake *h, const char *peer, const void *in,
			  size_t in_length, void *out, size_t *out_length,
			  struct kweir_error *error)
{
	int rc = weir_handshake_received(h, in, in_length, out, out_length);

	if (!rc)
		return 0;
	if (h->refusal.head.magic)
		return kweir_handshake_refusal_explain(&h->refusal, h->setup.version, peer, error);
	return kweir_fail(error, rc, "%s: %s", peer, h->why);
}

int kweir_handshake_refusal_explain(const struct wire_handshake_refusal *refusal, u16 version,
				    const char *peer, struct kweir_error *error)
{
	int status = weir_handshake_refusal_status(refusal, version);

	if (refusal->head.version != version)
		return kweir_fail(error, status,
				  "%s speaks version %u of the protocol, this module version %u: "
				  "upgrade the older one",
				  peer, refusal->head.version, version);
	return kweir_fail(error, status, "%s refused: %s", peer, refusal->text);
}
