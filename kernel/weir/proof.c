// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each end proves its knowledge of the key by a MAC over both ends' messages. Both ends compare the
 * GID and QPN that the peer claims with the QP at the other end of their own connection. So a
 * machine in the middle that relays the messages between two QPs is detected.
 */
#include <crypto/algapi.h>
#include <crypto/hash.h>
#include <keys/user-type.h>
#include <linux/key.h>
#include <linux/random.h>

#include "kernel/weir/proof.h"

#define KEY_MIN 16
#define KEY_MAX 4096

static const char id_label[] = "weir-1 key id";
static const char client_label[] = "weir-1 client";
static const char donor_label[] = "weir-1 donor";

struct hash_piece {
	const void *data;
	unsigned int length;
};

static int hash(struct crypto_shash *tfm, const struct hash_piece *pieces, int count, u8 *out)
{
	SHASH_DESC_ON_STACK(desc, tfm);
	int i, rc;

	desc->tfm = tfm;
	rc = crypto_shash_init(desc);
	for (i = 0; !rc && i < count; i++)
		rc = crypto_shash_update(desc, pieces[i].data, pieces[i].length);
	if (!rc)
		rc = crypto_shash_final(desc, out);
	shash_desc_zero(desc);
	return rc;
}

static int set_key_id(struct kweir_secret *secret, const u8 *bytes, unsigned int length)
{
	const struct hash_piece pieces[] = { { id_label, sizeof(id_label) }, { bytes, length } };
	struct crypto_shash *sha = crypto_alloc_shash("sha256", 0, 0);
	u8 digest[WIRE_MAC];
	int rc;

	if (IS_ERR(sha))
		return PTR_ERR(sha);
	rc = hash(sha, pieces, ARRAY_SIZE(pieces), digest);
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

static int client_mac(const struct kweir_proof *p, u8 *mac)
{
	const struct hash_piece pieces[] = {
		{ client_label, sizeof(client_label) },
		{ &p->hello, sizeof(p->hello) },
		{ &p->challenge, sizeof(p->challenge) },
	};

	return hash(p->secret->hmac, pieces, ARRAY_SIZE(pieces), mac);
}

static int donor_mac(const struct kweir_proof *p, u8 *mac)
{
	const struct hash_piece pieces[] = {
		{ donor_label, sizeof(donor_label) },
		{ &p->hello, sizeof(p->hello) },
		{ &p->challenge, sizeof(p->challenge) },
		{ &p->welcome, offsetof(struct wire_handshake_welcome, mac) },
	};

	return hash(p->secret->hmac, pieces, ARRAY_SIZE(pieces), mac);
}

size_t kweir_proof_begin(struct kweir_proof *p, const struct kweir_secret *secret,
			 const struct kweir_qp_addr *local, const struct kweir_qp_addr *remote,
			 u64 session_id, u16 channel, u16 credits, void *out)
{
	union wire_handshake_message m = { .hello = {
						   .qpn = local->qpn,
						   .channel = channel,
						   .credits = credits,
						   .session_id = session_id,
					   } };
	size_t length;

	memset(p, 0, sizeof(*p));
	p->secret = secret;
	p->remote = *remote;
	get_random_bytes(m.hello.nonce, WIRE_NONCE);
	memcpy(m.hello.gid, local->gid, WIRE_GID);
	length = wire_handshake_encode(&m, WIRE_HELLO);
	memcpy(out, &m, length);
	p->hello = m.hello;
	return length;
}

static int challenge_received(struct kweir_proof *p,
			      const struct wire_handshake_challenge *challenge, void *out,
			      size_t *out_length, struct kweir_error *error)
{
	union wire_handshake_message m = {};
	int rc;

	if (p->challenge.head.type || challenge->qpn != p->remote.qpn ||
	    memcmp(challenge->gid, p->remote.gid, WIRE_GID))
		return kweir_fail(
			error, -EKEYREJECTED,
			"the donor's message names another QP than the one connected: the connection is being relayed");
	p->challenge = *challenge;
	rc = client_mac(p, m.proof.mac);
	if (rc)
		return kweir_fail(error, rc, "the kernel computed no MAC");
	*out_length = wire_handshake_encode(&m, WIRE_PROOF);
	memcpy(out, &m, *out_length);
	return 0;
}

static int welcome_received(struct kweir_proof *p, const struct wire_handshake_welcome *welcome,
			    struct kweir_error *error)
{
	u8 mac[WIRE_MAC];
	int rc;

	if (!p->challenge.head.type)
		return kweir_fail(error, -EPROTO, "the donor sent a WELCOME without a CHALLENGE");
	p->welcome = *welcome;
	rc = donor_mac(p, mac);
	if (rc)
		return kweir_fail(error, rc, "the kernel computed no MAC");
	if (crypto_memneq(mac, welcome->mac, WIRE_MAC))
		return kweir_fail(error, -EKEYREJECTED,
				  "the donor could not prove that it knows the key");
	p->done = true;
	return 0;
}

int kweir_proof_input(struct kweir_proof *p, const void *in, size_t in_length, void *out,
		      size_t *out_length, struct kweir_error *error)
{
	union wire_handshake_message m;
	int rc;

	*out_length = 0;
	rc = wire_handshake_decode(in, in_length, &m);
	if (rc)
		return kweir_fail(error, rc,
				  "the donor's answer is not of version %d of the protocol",
				  WIRE_VERSION);
	switch (m.head.type) {
	case WIRE_CHALLENGE:
		return challenge_received(p, &m.challenge, out, out_length, error);
	case WIRE_WELCOME:
		return welcome_received(p, &m.welcome, error);
	case WIRE_REFUSAL:
		return kweir_proof_explain_refusal(&m.refusal, p->peer, error);
	default:
		return kweir_fail(error, -EPROTO, "unexpected handshake message %u", m.head.type);
	}
}

int kweir_proof_explain_refusal(const struct wire_handshake_refusal *refusal, const char *peer,
				struct kweir_error *error)
{
	int status = -(int)refusal->status;

	if (refusal->head.version != WIRE_VERSION)
		return kweir_fail(error, -EPROTONOSUPPORT,
				  "%s speaks version %u of the protocol, this module version %d",
				  peer, refusal->head.version, WIRE_VERSION);
	switch (status) {
	case -EKEYREJECTED:
	case -EAGAIN:
	case -EDQUOT:
	case -EHOSTUNREACH:
	case -ENOMEM:
	case -ESTALE:
	case -ETIMEDOUT:
		break;
	default:
		status = -EPROTO;
	}
	return kweir_fail(error, status, "%s refused: %s", peer, refusal->text);
}
