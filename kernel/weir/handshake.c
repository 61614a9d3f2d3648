// SPDX-License-Identifier: GPL-2.0-only
#include <crypto/hash.h>
#include <keys/user-type.h>
#include <linux/key.h>

#include "kernel/weir/handshake.h"

#define KEY_MIN 16
#define KEY_MAX 4096

/* The digest that names the key to the donor. */
static int hash_key(struct crypto_shash *sha, const u8 *bytes, unsigned int length, u8 *out)
{
	static const char label[] = "weir-1 key id";
	SHASH_DESC_ON_STACK(desc, sha);
	int rc;

	desc->tfm = sha;
	rc = crypto_shash_init(desc);
	if (!rc)
		rc = crypto_shash_update(desc, label, sizeof(label));
	if (!rc)
		rc = crypto_shash_finup(desc, bytes, length, out);
	shash_desc_zero(desc);
	return rc;
}

static int set_key_id(struct kweir_secret *secret, const u8 *bytes, unsigned int length)
{
	struct crypto_shash *sha = crypto_alloc_shash("sha256", 0, 0);
	u8 digest[WIRE_MAC];
	int rc;

	if (IS_ERR(sha))
		return PTR_ERR(sha);
	rc = hash_key(sha, bytes, length, digest);
	memcpy(&secret->key_id, digest, sizeof(secret->key_id));
	crypto_free_shash(sha);
	return rc;
}

static int set_key(struct kweir_secret *secret, const u8 *bytes, unsigned int length,
		   struct kweir_error *error)
{
	int rc = crypto_shash_setkey(secret->hmac, bytes, length);

	if (!rc)
		rc = set_key_id(secret, bytes, length);
	return rc ? kweir_fail(error, rc, "the kernel cannot use the key (%d)", rc) : 0;
}

/* The key has the form that 'weir key' writes and lib/conn/key.c reads, without the newline. */
static int set_key_of(struct kweir_secret *secret, struct key *key, struct kweir_error *error)
{
	const struct user_key_payload *payload;
	int rc;

	down_read(&key->sem);
	payload = user_key_payload_locked(key);
	if (!payload)
		rc = kweir_fail(error, -EKEYREVOKED, "the key has been revoked");
	else if (payload->datalen < KEY_MIN || payload->datalen > KEY_MAX)
		rc = kweir_fail(error, -EINVAL, "the key has %u bytes: %d to %d make one",
				payload->datalen, KEY_MIN, KEY_MAX);
	else
		rc = set_key(secret, payload->data, payload->datalen, error);
	up_read(&key->sem);
	return rc;
}

int kweir_secret_init(struct kweir_secret *secret, struct key *key, struct kweir_error *error)
{
	int rc;

	secret->hmac = crypto_alloc_shash("hmac(sha256)", 0, 0);
	if (IS_ERR(secret->hmac))
		return kweir_fail(error, PTR_ERR(secret->hmac),
				  "this kernel has no hmac(sha256) (%ld)", PTR_ERR(secret->hmac));
	rc = key ? set_key_of(secret, key, error) : set_key(secret, "", 0, error);
	if (rc)
		crypto_free_shash(secret->hmac);
	return rc;
}

void kweir_secret_fini(struct kweir_secret *secret)
{
	crypto_free_shash(secret->hmac);
}

static int answer_mac(struct weir_handshake *h, const struct kweir_secret *secret, void *out,
		      size_t *out_length, struct kweir_error *error)
{
	u8 bytes[WEIR_HANDSHAKE_TRANSCRIPT_MAX], mac[WIRE_MAC];
	size_t length = weir_handshake_transcript(h, bytes);
	int rc;

	if (!length)
		return 0;
	rc = crypto_shash_tfm_digest(secret->hmac, bytes, length, mac);
	if (rc)
		return kweir_fail(error, rc, "the kernel computed no MAC");
	if (h->wanted_mac == WEIR_HANDSHAKE_MAC_VERIFY)
		rc = weir_handshake_verify_mac(h, mac, out, out_length);
	else
		rc = weir_handshake_write_mac(h, mac, out, out_length);
	return rc ? kweir_fail(error, rc, "%s", h->why) : 0;
}

int kweir_handshake_input(struct weir_handshake *h, const struct kweir_secret *secret,
			  const char *peer, const void *in, size_t in_length, void *out,
			  size_t *out_length, struct kweir_error *error)
{
	int rc = weir_handshake_received(h, in, in_length, out, out_length);

	if (!rc)
		return answer_mac(h, secret, out, out_length, error);
	if (h->refusal.head.magic)
		return kweir_handshake_refusal_explain(&h->refusal, peer, error);
	return kweir_fail(error, rc, "%s", h->why);
}

int kweir_handshake_refusal_explain(const struct wire_handshake_refusal *refusal, const char *peer,
				    struct kweir_error *error)
{
	int status = weir_handshake_refusal_status(refusal);

	if (refusal->head.version != WIRE_VERSION)
		return kweir_fail(error, status,
				  "%s speaks version %u of the protocol, this module version %d",
				  peer, refusal->head.version, WIRE_VERSION);
	return kweir_fail(error, status, "%s refused: %s", peer, refusal->text);
}
