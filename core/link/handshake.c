/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which message may come when, and what each end compares. noise.c seals and opens.
 *
 * The device's session is known only after the first packets, so it cannot be in the prologue.
 */
#include "core/link/handshake.h"

static size_t encode_message(const struct weir_handshake *h, union wire_handshake_message *message,
			     enum wire_handshake_type type, void *out)
{
	size_t length = wire_handshake_encode_as(message, type, h->setup.version);

	memcpy(out, message, length);
	return length;
}

static bool endpoint_is(const struct weir_endpoint *endpoint, const uint8_t gid[static WIRE_GID],
			uint32_t qpn)
{
	return endpoint->qpn == qpn && !memcmp(endpoint->gid, gid, WIRE_GID);
}

void weir_handshake_fini(struct weir_handshake *h)
{
	weir_noise_wipe(&h->noise, sizeof(h->noise));
	weir_noise_wipe(&h->setup.identity, sizeof(h->setup.identity));
}

/* Moves the secrets of @setup into the state of Noise, but for a donor's identity. */
static void begin(struct weir_handshake *h, struct weir_handshake_setup *setup)
{
	struct wire_handshake_prologue prologue = {
		.magic = WIRE_MAGIC,
		.service = setup->service,
	};

	setup->version = setup->version ? setup->version : WIRE_VERSION;
	setup->version_max = setup->version_max ? setup->version_max : WIRE_VERSION;
	prologue.version = setup->version;
	weir_noise_pair_init(&setup->ephemeral, setup->crypto);
	weir_noise_init(&h->noise, setup->crypto, &prologue, sizeof(prologue), setup->psk,
			&setup->ephemeral);
	weir_noise_wipe(setup->psk, sizeof(setup->psk));
	weir_noise_wipe(&setup->ephemeral, sizeof(setup->ephemeral));
	h->setup = *setup;
	weir_noise_wipe(&setup->identity, sizeof(setup->identity));
}

void weir_handshake_client(struct weir_handshake *h, struct weir_handshake_setup *setup, void *out,
			   size_t *out_length)
{
	union wire_handshake_message m;

	memset(h, 0, sizeof(*h));
	h->state = WEIR_HANDSHAKE_CHALLENGE;
	begin(h, setup);
	h->hello = (struct wire_handshake_hello){
		.qpn = setup->local.qpn,
		.channel = setup->channel,
		.credits = setup->credits,
		.session_id = setup->session_id,
		.ended = setup->ended,
	};
	memcpy(h->hello.gid, setup->local.gid, WIRE_GID);
	memcpy(h->hello.mux, setup->mux, WIRE_MUX_ID);
	weir_noise_write_first(&h->noise, &h->hello, sizeof(h->hello), m.hello.ephemeral);
	*out_length = encode_message(h, &m, WIRE_HELLO, out);
}

void weir_handshake_donor(struct weir_handshake *h, struct weir_handshake_setup *setup)
{
	memset(h, 0, sizeof(*h));
	h->state = WEIR_HANDSHAKE_HELLO;
	h->is_donor = true;
	begin(h, setup);
}

static int fail(struct weir_handshake *h, int status, const char *why)
{
	h->why = why;
	return status;
}

/* Ends the handshake; a donor tells the client. */
static int give_up(struct weir_handshake *h, int status, void *out, size_t *out_length)
{
	if (h->is_donor)
		weir_handshake_refuse(h, status, h->why, out, out_length);
	h->state = WEIR_HANDSHAKE_FAILED;
	weir_handshake_fini(h);
	return status;
}

/*
 * An attacker on the path can make both devices believe that the other does not encrypt. So can a
 * host that pauses for longer than the devices wait, so the failure is not final. The donor's flag
 * is authentic: the CHALLENGE is sealed.
 */
static bool was_downgraded(const struct weir_handshake *h)
{
	return h->setup.encrypts && h->challenge.flags & WIRE_ENCRYPTS && !h->setup.is_encrypted;
}

static int fail_downgraded(struct weir_handshake *h)
{
	return fail(h, -ETIMEDOUT,
		    "both ends encrypt, but their packets are in clear text: something between the "
		    "hosts suppresses encryption, or a host paused for seconds: try again");
}

/*
 * A forged REJ can make a client ask for an older version. Then the donor's newest version, which
 * is sealed, shows that both speak a newer one.
 */
static bool was_made_older(const struct weir_handshake *h)
{
	uint16_t newest = (uint16_t)(h->challenge.flags >> WIRE_NEWEST_SHIFT);

	return newest > h->setup.version && h->setup.version_max > h->setup.version;
}

static bool takes_no_clear(const struct weir_handshake *h)
{
	return h->setup.encrypts && !h->setup.takes_clear && !h->setup.is_encrypted;
}

/* Final: the peer's device or its options must change. */
static int fail_in_clear(struct weir_handshake *h)
{
	return fail(h, -EKEYREJECTED,
		    h->is_donor ? "this donor admits encrypted connections only: use softnic with "
				  "encryption, or start the donor with --encrypt=auto" :
				  "the donor does not encrypt: use softnic there without "
				  "--no-encrypt, or allow clear text here by --encrypt=auto");
}

/* The associated data of a transport message. Return: its length. */
static size_t session_length(const struct weir_handshake *h)
{
	return h->setup.is_encrypted ? sizeof(h->setup.session) : 0;
}

static int fail_donors_proof(struct weir_handshake *h)
{
	return fail(h, -EKEYREJECTED, "the donor could not prove that it knows the key");
}

static int fail_clients_proof(struct weir_handshake *h)
{
	return fail(h, -EKEYREJECTED, "the client could not prove that it knows the key");
}

static bool is_pinned(const struct weir_handshake *h)
{
	unsigned int i;

	for (i = 0; i < h->setup.nr_pins; i++)
		if (!memcmp(h->setup.pins[i], h->identity, WIRE_KEY))
			return true;
	return !h->setup.nr_pins;
}

/* Client: the CHALLENGE of this very QP, from a donor that we trust, asks for the proof. */
static int challenge_received(struct weir_handshake *h,
			      const struct wire_handshake_sealed_challenge *in, void *out,
			      size_t *out_length)
{
	union wire_handshake_message m;

	if (!weir_noise_read_second(&h->noise, in->ephemeral, &h->challenge, sizeof(h->challenge),
				    h->identity))
		return fail_donors_proof(h);
	if (!is_pinned(h))
		return fail(h, -EKEYREJECTED,
			    "the donor has another identity than the key file or the pool "
			    "names: another program answers in its place, or its identity is new");
	if (!endpoint_is(&h->setup.remote, h->challenge.gid, h->challenge.qpn))
		return fail(h, -EKEYREJECTED,
			    "the donor's message names another QP than the one connected: "
			    "the connection is being relayed");
	if (was_made_older(h))
		return fail(h, -ETIMEDOUT,
			    "both ends speak a newer version of the protocol than they were made "
			    "to use: something between the hosts rejects it: try again");
	if (was_downgraded(h)) /* without a proof, the donor admits nobody in clear text */
		return fail_downgraded(h);
	if (takes_no_clear(h))
		return fail_in_clear(h);
	weir_noise_seal(&h->noise, h->setup.session, session_length(h), NULL, 0, m.proof.payload);
	*out_length = encode_message(h, &m, WIRE_PROOF, out);
	h->state = WEIR_HANDSHAKE_WELCOME;
	return 0;
}

/* Donor: answers a HELLO that names this very QP with a challenge. */
static int hello_received(struct weir_handshake *h, const struct wire_handshake_sealed_hello *in,
			  void *out, size_t *out_length)
{
	union wire_handshake_message m;

	if (!weir_noise_read_first(&h->noise, in->ephemeral, &h->hello, sizeof(h->hello)))
		return fail(h, -EKEYREJECTED,
			    "the client asked another service or port, or its message was changed");
	if (h->hello.session_id != h->setup.session_id || h->hello.channel != h->setup.channel)
		return fail(h, -EPROTO, "HELLO names another session or channel than the REQ did");
	if (!endpoint_is(&h->setup.remote, h->hello.gid, h->hello.qpn))
		return fail(h, -EKEYREJECTED,
			    "the client's message names another QP than the one connected: "
			    "the connection is being relayed");
	h->challenge = (struct wire_handshake_challenge){
		.qpn = h->setup.local.qpn,
		.flags = (h->setup.encrypts ? WIRE_ENCRYPTS : 0) |
			 (uint32_t)h->setup.version_max << WIRE_NEWEST_SHIFT,
	};
	memcpy(h->challenge.gid, h->setup.local.gid, WIRE_GID);
	if (!weir_noise_write_second(&h->noise, &h->setup.identity, &h->challenge,
				     sizeof(h->challenge), m.challenge.ephemeral))
		return fail_clients_proof(h);
	weir_noise_wipe(&h->setup.identity, sizeof(h->setup.identity));
	*out_length = encode_message(h, &m, WIRE_CHALLENGE, out);
	h->state = WEIR_HANDSHAKE_PROOF;
	return 0;
}

/* Donor: the client has answered this very challenge. */
static int proof_received(struct weir_handshake *h, const struct wire_handshake_proof *in)
{
	uint8_t none[1];

	if (!weir_noise_open(&h->noise, h->setup.session, session_length(h), in->payload, 0, none))
		return fail_clients_proof(h);
	if (takes_no_clear(h))
		return fail_in_clear(h);
	h->state = WEIR_HANDSHAKE_PROVEN;
	return 0;
}

static int welcome_received(struct weir_handshake *h,
			    const struct wire_handshake_sealed_welcome *in)
{
	if (!weir_noise_open(&h->noise, h->setup.session, session_length(h), in->payload,
			     sizeof(h->welcome), &h->welcome))
		return fail_donors_proof(h);
	if (was_downgraded(h)) /* since the proof */
		return fail_downgraded(h);
	h->state = WEIR_HANDSHAKE_DONE;
	weir_handshake_fini(h);
	return 0;
}

static int message_received(struct weir_handshake *h, const union wire_handshake_message *m,
			    void *out, size_t *out_length)
{
	enum weir_handshake_state state = h->state;

	if (m->head.type == WIRE_HELLO && state == WEIR_HANDSHAKE_HELLO)
		return hello_received(h, &m->hello, out, out_length);
	if (m->head.type == WIRE_CHALLENGE && state == WEIR_HANDSHAKE_CHALLENGE)
		return challenge_received(h, &m->challenge, out, out_length);
	if (m->head.type == WIRE_PROOF && state == WEIR_HANDSHAKE_PROOF)
		return proof_received(h, &m->proof);
	if (m->head.type == WIRE_WELCOME && state == WEIR_HANDSHAKE_WELCOME)
		return welcome_received(h, &m->welcome);
	if (m->head.type == WIRE_REFUSAL &&
	    (state == WEIR_HANDSHAKE_CHALLENGE || state == WEIR_HANDSHAKE_WELCOME)) {
		h->refusal = m->refusal;
		return weir_handshake_refusal_status(&h->refusal, h->setup.version);
	}
	return fail(h, -EPROTO, "handshake: a message out of turn");
}

int weir_handshake_received(struct weir_handshake *h, const void *in, size_t in_length, void *out,
			    size_t *out_length)
{
	union wire_handshake_message m;
	int rc;

	*out_length = 0;
	rc = wire_handshake_decode_as(in, in_length, h->setup.version, &m);
	if (rc == -EPROTONOSUPPORT)
		fail(h, rc, "the peer speaks another version of the protocol than it asked for");
	else if (rc)
		fail(h, rc, "handshake: received bytes that are not a valid message");
	else
		rc = message_received(h, &m, out, out_length);
	return rc ? give_up(h, rc, out, out_length) : 0;
}

void weir_handshake_admit(struct weir_handshake *h, const struct wire_handshake_welcome *welcome,
			  void *out, size_t *out_length)
{
	union wire_handshake_message m;

	*out_length = 0;
	if (weir_bug(h->state != WEIR_HANDSHAKE_PROVEN))
		return;
	h->welcome = *welcome;
	h->welcome.zero = 0;
	weir_noise_seal(&h->noise, h->setup.session, session_length(h), &h->welcome,
			sizeof(h->welcome), m.welcome.payload);
	*out_length = encode_message(h, &m, WIRE_WELCOME, out);
	h->state = WEIR_HANDSHAKE_DONE;
	weir_handshake_fini(h);
}

void weir_handshake_refuse(struct weir_handshake *h, int status, const char *text, void *out,
			   size_t *out_length)
{
	union wire_handshake_message m;

	weir_handshake_refusal_fill(&m.refusal, h->setup.version, status, text);
	*out_length = encode_message(h, &m, WIRE_REFUSAL, out);
	h->state = WEIR_HANDSHAKE_FAILED;
	weir_handshake_fini(h);
}

void weir_handshake_refusal_fill(struct wire_handshake_refusal *refusal, uint16_t version,
				 int status, const char *text)
{
	union wire_handshake_message m = { .refusal = { .status = -status } };
	size_t i;

	for (i = 0; i < WIRE_TEXT - 1 && text[i]; i++)
		m.refusal.text[i] = text[i];
	wire_handshake_encode_as(&m, WIRE_REFUSAL, version);
	*refusal = m.refusal;
}

int weir_handshake_refusal_status(const struct wire_handshake_refusal *refusal, uint16_t version)
{
	if (refusal->head.version != version)
		return -EPROTONOSUPPORT;
	switch (refusal->status) {
	case EKEYREJECTED:
	case EAGAIN:
	case EDQUOT:
	case EHOSTUNREACH:
	case ENOMEM:
	case ESTALE:
	case ETIMEDOUT:
		return -(int)refusal->status;
	default:
		return -EPROTO;
	}
}
