/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The transcript is the proof. Both MACs cover the exact bytes of HELLO and CHALLENGE, as sent and
 * received, so that any change on the way is noticed, also in fields of later versions. The donor's
 * MAC covers the WELCOME too. A label names the role, so that no MAC can be played back to the end
 * that made it.
 *
 * The nonces bind each proof to one connection; the GIDs and QPNs, compared with the verbs' own
 * values, to these two QPs.
 */
#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/conn/handshake.h"

static const char client_label[] = "weir-1 client";
static const char donor_label[] = "weir-1 donor";

static void client_mac(const struct weir_handshake *h, uint8_t mac[static WIRE_MAC])
{
	const struct iovec pieces[] = {
		{ (void *)client_label, sizeof(client_label) },
		{ (void *)&h->hello, sizeof(h->hello) },
		{ (void *)&h->challenge, sizeof(h->challenge) },
	};

	weir_key_mac(h->setup.key, pieces, 3, mac);
}

static void donor_mac(const struct weir_handshake *h, uint8_t mac[static WIRE_MAC])
{
	const struct iovec pieces[] = {
		{ (void *)donor_label, sizeof(donor_label) },
		{ (void *)&h->hello, sizeof(h->hello) },
		{ (void *)&h->challenge, sizeof(h->challenge) },
		{ (void *)&h->welcome, offsetof(struct wire_handshake_welcome, mac) },
	};

	weir_key_mac(h->setup.key, pieces, 4, mac);
}

static size_t encode_message(union wire_handshake_message *message, enum wire_handshake_type type,
			     void *out)
{
	size_t length = wire_handshake_encode(message, type);

	memcpy(out, message, length);
	return length;
}

static bool endpoint_is(const struct weir_endpoint *endpoint, const uint8_t gid[static WIRE_GID],
			uint32_t qpn)
{
	return endpoint->qpn == qpn && !memcmp(endpoint->gid, gid, WIRE_GID);
}

void weir_handshake_client(struct weir_handshake *h, const struct weir_handshake_setup *setup,
			   void *out, size_t *out_length)
{
	union wire_handshake_message m = { .hello = {
						   .qpn = setup->local.qpn,
						   .channel = setup->channel,
						   .credits = setup->credits,
						   .session_id = setup->session_id,
						   .ended = setup->ended,
					   } };

	memset(h, 0, sizeof(*h));
	h->state = WEIR_HANDSHAKE_CHALLENGE;
	h->setup = *setup;
	memcpy(m.hello.nonce, setup->nonce, WIRE_NONCE);
	memcpy(m.hello.gid, setup->local.gid, WIRE_GID);
	memcpy(m.hello.mux, setup->mux, WIRE_MUX_ID);
	*out_length = encode_message(&m, WIRE_HELLO, out);
	h->hello = m.hello;
}

void weir_handshake_donor(struct weir_handshake *h, const struct weir_handshake_setup *setup)
{
	memset(h, 0, sizeof(*h));
	h->state = WEIR_HANDSHAKE_HELLO;
	h->setup = *setup;
}

/* Client: answers the donor's CHALLENGE with the proof. */
static int challenge_received(struct weir_handshake *h,
			      const struct wire_handshake_challenge *challenge, void *out,
			      size_t *out_length)
{
	union wire_handshake_message m = { 0 };

	if (!endpoint_is(&h->setup.remote, challenge->gid, challenge->qpn))
		return weir_error_set(
			&h->error, -EKEYREJECTED,
			"the donor's message names another QP than the one connected: "
			"the connection is being relayed");
	h->challenge = *challenge;
	client_mac(h, m.proof.mac);
	*out_length = encode_message(&m, WIRE_PROOF, out);
	h->state = WEIR_HANDSHAKE_WELCOME;
	return 0;
}

/* Client: checks the donor's proof. */
static int welcome_received(struct weir_handshake *h, const struct wire_handshake_welcome *welcome)
{
	uint8_t mac[WIRE_MAC];

	h->welcome = *welcome;
	donor_mac(h, mac);
	if (sodium_memcmp(mac, welcome->mac, WIRE_MAC))
		return weir_error_set(&h->error, -EKEYREJECTED,
				      "the donor could not prove that it knows the key");
	h->state = WEIR_HANDSHAKE_DONE;
	return 0;
}

/* Donor: answers a HELLO that names this very QP with a challenge. */
static int hello_received(struct weir_handshake *h, const struct wire_handshake_hello *hello,
			  void *out, size_t *out_length)
{
	union wire_handshake_message m = { .challenge = { .qpn = h->setup.local.qpn } };

	if (hello->session_id != h->setup.session_id || hello->channel != h->setup.channel)
		return weir_error_set(&h->error, -EPROTO,
				      "HELLO names another session or channel than the REQ did");
	if (!endpoint_is(&h->setup.remote, hello->gid, hello->qpn))
		return weir_error_set(
			&h->error, -EKEYREJECTED,
			"the client's message names another QP than the one connected: "
			"the connection is being relayed");
	h->hello = *hello;
	memcpy(m.challenge.nonce, h->setup.nonce, WIRE_NONCE);
	memcpy(m.challenge.gid, h->setup.local.gid, WIRE_GID);
	*out_length = encode_message(&m, WIRE_CHALLENGE, out);
	h->challenge = m.challenge;
	h->state = WEIR_HANDSHAKE_PROOF;
	return 0;
}

/* Donor: checks the client's proof. */
static int proof_received(struct weir_handshake *h, const struct wire_handshake_proof *proof)
{
	uint8_t mac[WIRE_MAC];

	client_mac(h, mac);
	if (sodium_memcmp(mac, proof->mac, WIRE_MAC))
		return weir_error_set(&h->error, -EKEYREJECTED,
				      "the client could not prove that it knows the key");
	h->state = WEIR_HANDSHAKE_PROVEN;
	return 0;
}

static bool is_client(const struct weir_handshake *h)
{
	return h->state == WEIR_HANDSHAKE_CHALLENGE || h->state == WEIR_HANDSHAKE_WELCOME;
}

static int message_received(struct weir_handshake *h, const union wire_handshake_message *m,
			    void *out, size_t *out_length)
{
	if (m->head.type == WIRE_HELLO && h->state == WEIR_HANDSHAKE_HELLO)
		return hello_received(h, &m->hello, out, out_length);
	if (m->head.type == WIRE_CHALLENGE && h->state == WEIR_HANDSHAKE_CHALLENGE)
		return challenge_received(h, &m->challenge, out, out_length);
	if (m->head.type == WIRE_PROOF && h->state == WEIR_HANDSHAKE_PROOF)
		return proof_received(h, &m->proof);
	if (m->head.type == WIRE_WELCOME && h->state == WEIR_HANDSHAKE_WELCOME)
		return welcome_received(h, &m->welcome);
	if (m->head.type == WIRE_REFUSAL && is_client(h))
		return weir_handshake_refusal_explain(&m->refusal, &h->error);
	return weir_error_set(&h->error, -EPROTO, "handshake: message %u out of turn",
			      m->head.type);
}

int weir_handshake_input(struct weir_handshake *h, const void *in, size_t in_length, void *out,
			 size_t *out_length)
{
	bool client = is_client(h);
	union wire_handshake_message m;
	int rc;

	*out_length = 0;
	rc = wire_handshake_decode(in, in_length, &m);
	if (rc == -EPROTONOSUPPORT)
		weir_error_set(&h->error, rc, "the peer does not speak version %d of the protocol",
			       WIRE_VERSION);
	else if (rc)
		weir_error_set(&h->error, rc,
			       "handshake: received %zu bytes that are not a valid message",
			       in_length);
	else
		rc = message_received(h, &m, out, out_length);
	if (!rc)
		return 0;
	if (client)
		h->state = WEIR_HANDSHAKE_FAILED;
	else
		weir_handshake_refuse(h, rc, h->error.text, out, out_length);
	return rc;
}

void weir_handshake_welcome(struct weir_handshake *h, const struct wire_handshake_welcome *welcome,
			    void *out, size_t *out_length)
{
	union wire_handshake_message m = { .welcome = *welcome };

	m.welcome.zero = 0;
	wire_handshake_encode(&m, WIRE_WELCOME);
	h->welcome = m.welcome;
	donor_mac(h, m.welcome.mac);
	*out_length = encode_message(&m, WIRE_WELCOME, out);
	h->state = WEIR_HANDSHAKE_DONE;
}

void weir_handshake_refuse(struct weir_handshake *h, int status, const char *text, void *out,
			   size_t *out_length)
{
	union wire_handshake_message m;

	weir_handshake_refusal_fill(&m.refusal, status, text);
	*out_length = encode_message(&m, WIRE_REFUSAL, out);
	h->state = WEIR_HANDSHAKE_FAILED;
}

void weir_handshake_refusal_fill(struct wire_handshake_refusal *refusal, int status,
				 const char *text)
{
	union wire_handshake_message m = { .refusal = { .status = -status } };

	snprintf(m.refusal.text, sizeof(m.refusal.text), "%.*s", WIRE_TEXT - 1, text);
	wire_handshake_encode(&m, WIRE_REFUSAL);
	*refusal = m.refusal;
}

int weir_handshake_refusal_explain(const struct wire_handshake_refusal *refusal,
				   struct weir_error *error)
{
	if (refusal->head.version != WIRE_VERSION)
		return weir_error_set(error, -EPROTONOSUPPORT,
				      "the other end speaks version %u of the protocol, this one "
				      "version %d: upgrade the older one",
				      refusal->head.version, WIRE_VERSION);
	switch (refusal->status) {
	case EKEYREJECTED:
	case EAGAIN:
	case EDQUOT:
	case EHOSTUNREACH:
	case ENOMEM:
	case ESTALE:
	case ETIMEDOUT:
		return weir_error_set(error, -(int)refusal->status, "the other end refused: %s",
				      refusal->text);
	default:
		return weir_error_set(error, -EPROTO, "the other end refused: %s (errno %u)",
				      refusal->text, refusal->status);
	}
}

void weir_handshake_nonce(uint8_t nonce[static WIRE_NONCE])
{
	if (sodium_init() < 0)
		abort(); /* no randomness, no proof */
	randombytes_buf(nonce, WIRE_NONCE);
}
