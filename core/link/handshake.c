/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The transcript is the proof. Both MACs cover the exact bytes of HELLO and CHALLENGE, as sent and
 * received, so that any change on the way is noticed, also in fields of later versions. The donor's
 * MAC covers the WELCOME too. A label names the role, so that no MAC can be played back to the end
 * that made it. The service follows: a proof to one of the key's services is none to another.
 *
 * The nonces bind each proof to one connection; the GIDs and QPNs, compared with the verbs' own
 * values, to these two QPs; the device's session, if there is one, to these two devices.
 */
#include "core/link/handshake.h"

#define LITERAL(number) #number
#define TEXT_OF(macro) LITERAL(macro)

static const char client_label[] = "weir-1 client";
static const char donor_label[] = "weir-1 donor";

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

/* Compares in constant time: the peer must not learn how many bytes of a guess were right. */
static bool macs_match(const uint8_t a[static WIRE_MAC], const uint8_t b[static WIRE_MAC])
{
	volatile uint8_t differences = 0; /* so that the compiler adds no early exit */
	int i;

	for (i = 0; i < WIRE_MAC; i++)
		differences |= a[i] ^ b[i];
	return !differences;
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
	h->is_donor = true;
	h->setup = *setup;
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
	h->wanted_mac = WEIR_HANDSHAKE_MAC_NONE;
	return status;
}

/* Client: the CHALLENGE of this very QP asks for the proof. */
static int challenge_received(struct weir_handshake *h,
			      const struct wire_handshake_challenge *challenge)
{
	if (!endpoint_is(&h->setup.remote, challenge->gid, challenge->qpn))
		return fail(h, -EKEYREJECTED,
			    "the donor's message names another QP than the one connected: "
			    "the connection is being relayed");
	h->challenge = *challenge;
	h->wanted_mac = WEIR_HANDSHAKE_MAC_WRITE;
	return 0;
}

/* Donor: answers a HELLO that names this very QP with a challenge. */
static int hello_received(struct weir_handshake *h, const struct wire_handshake_hello *hello,
			  void *out, size_t *out_length)
{
	union wire_handshake_message m = { .challenge = {
						   .qpn = h->setup.local.qpn,
						   .flags = h->setup.encrypts ? WIRE_ENCRYPTS : 0,
					   } };

	if (hello->session_id != h->setup.session_id || hello->channel != h->setup.channel)
		return fail(h, -EPROTO, "HELLO names another session or channel than the REQ did");
	if (!endpoint_is(&h->setup.remote, hello->gid, hello->qpn))
		return fail(h, -EKEYREJECTED,
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

/* PROOF, WELCOME: our own MAC over the transcript is compared with the received one. */
static int mac_received(struct weir_handshake *h, const uint8_t mac[static WIRE_MAC])
{
	memcpy(h->welcome.mac, mac, WIRE_MAC);
	h->wanted_mac = WEIR_HANDSHAKE_MAC_VERIFY;
	return 0;
}

static int message_received(struct weir_handshake *h, const union wire_handshake_message *m,
			    void *out, size_t *out_length)
{
	enum weir_handshake_state state = h->wanted_mac ? WEIR_HANDSHAKE_FAILED : h->state;

	if (m->head.type == WIRE_HELLO && state == WEIR_HANDSHAKE_HELLO)
		return hello_received(h, &m->hello, out, out_length);
	if (m->head.type == WIRE_CHALLENGE && state == WEIR_HANDSHAKE_CHALLENGE)
		return challenge_received(h, &m->challenge);
	if (m->head.type == WIRE_PROOF && state == WEIR_HANDSHAKE_PROOF)
		return mac_received(h, m->proof.mac);
	if (m->head.type == WIRE_WELCOME && state == WEIR_HANDSHAKE_WELCOME) {
		h->welcome = m->welcome;
		return mac_received(h, m->welcome.mac);
	}
	if (m->head.type == WIRE_REFUSAL &&
	    (state == WEIR_HANDSHAKE_CHALLENGE || state == WEIR_HANDSHAKE_WELCOME)) {
		h->refusal = m->refusal;
		return weir_handshake_refusal_status(&h->refusal);
	}
	return fail(h, -EPROTO, "handshake: a message out of turn");
}

int weir_handshake_received(struct weir_handshake *h, const void *in, size_t in_length, void *out,
			    size_t *out_length)
{
	union wire_handshake_message m;
	int rc;

	*out_length = 0;
	rc = wire_handshake_decode(in, in_length, &m);
	if (rc == -EPROTONOSUPPORT)
		fail(h, rc,
		     "the peer does not speak version " TEXT_OF(WIRE_VERSION) " of the protocol");
	else if (rc)
		fail(h, rc, "handshake: received bytes that are not a valid message");
	else
		rc = message_received(h, &m, out, out_length);
	return rc ? give_up(h, rc, out, out_length) : 0;
}

/* Return: the end of the bytes. */
static uint8_t *append(uint8_t *to, const void *bytes, size_t length)
{
	memcpy(to, bytes, length);
	return to + length;
}

size_t weir_handshake_transcript(const struct weir_handshake *h,
				 uint8_t bytes[static WEIR_HANDSHAKE_TRANSCRIPT_MAX])
{
	bool is_clients = h->state == WEIR_HANDSHAKE_CHALLENGE || h->state == WEIR_HANDSHAKE_PROOF;
	uint8_t *end = bytes;

	if (!h->wanted_mac)
		return 0;
	end = is_clients ? append(end, client_label, sizeof(client_label)) :
			   append(end, donor_label, sizeof(donor_label));
	end = append(end, &h->setup.service, sizeof(h->setup.service));
	if (h->setup.is_encrypted)
		end = append(end, h->setup.session, sizeof(h->setup.session));
	end = append(end, &h->hello, sizeof(h->hello));
	end = append(end, &h->challenge, sizeof(h->challenge));
	if (!is_clients)
		end = append(end, &h->welcome, offsetof(struct wire_handshake_welcome, mac));
	return end - bytes;
}

/* Return: true if @wanted is owed; it no longer is. */
static bool take_wanted(struct weir_handshake *h, enum weir_handshake_mac wanted,
			size_t *out_length)
{
	*out_length = 0;
	if (weir_bug(h->wanted_mac != wanted))
		return false;
	h->wanted_mac = WEIR_HANDSHAKE_MAC_NONE;
	return true;
}

/*
 * An attacker on the path can make both devices believe that the other does not encrypt. So can a
 * host that pauses for longer than the devices wait, so the failure is not final. The donor's flag
 * is authentic if the donor admits us: our proof covers it.
 */
static bool was_downgraded(const struct weir_handshake *h)
{
	return !h->is_donor && h->setup.encrypts && h->challenge.flags & WIRE_ENCRYPTS &&
	       !h->setup.is_encrypted;
}

static int fail_downgraded(struct weir_handshake *h, void *out, size_t *out_length)
{
	fail(h, -ETIMEDOUT,
	     "both ends encrypt, but their packets are in clear text: something between the hosts "
	     "suppresses encryption, or a host paused for seconds: try again");
	return give_up(h, -ETIMEDOUT, out, out_length);
}

static bool takes_no_clear(const struct weir_handshake *h)
{
	return h->setup.encrypts && !h->setup.takes_clear && !h->setup.is_encrypted;
}

/* Final: the peer's device or its options must change. */
static int fail_in_clear(struct weir_handshake *h, void *out, size_t *out_length)
{
	fail(h, -EKEYREJECTED,
	     h->is_donor ? "this donor admits encrypted connections only: use softnic with "
			   "encryption, or start the donor with --encrypt=auto" :
			   "the donor does not encrypt: use softnic there without --no-encrypt, or "
			   "allow clear text here by --encrypt=auto");
	return give_up(h, -EKEYREJECTED, out, out_length);
}

int weir_handshake_write_mac(struct weir_handshake *h, const uint8_t mac[static WIRE_MAC],
			     void *out, size_t *out_length)
{
	union wire_handshake_message m = { 0 };

	if (!take_wanted(h, WEIR_HANDSHAKE_MAC_WRITE, out_length))
		return -EPROTO;
	if (was_downgraded(h)) /* without a proof, the donor admits nobody in clear text */
		return fail_downgraded(h, out, out_length);
	if (!h->is_donor && takes_no_clear(h))
		return fail_in_clear(h, out, out_length);
	if (h->is_donor) {
		m.welcome = h->welcome;
		memcpy(m.welcome.mac, mac, WIRE_MAC);
	} else {
		memcpy(m.proof.mac, mac, WIRE_MAC);
	}
	*out_length = encode_message(&m, h->is_donor ? WIRE_WELCOME : WIRE_PROOF, out);
	h->state = h->is_donor ? WEIR_HANDSHAKE_DONE : WEIR_HANDSHAKE_WELCOME;
	return 0;
}

int weir_handshake_verify_mac(struct weir_handshake *h, const uint8_t mac[static WIRE_MAC],
			      void *out, size_t *out_length)
{
	if (!take_wanted(h, WEIR_HANDSHAKE_MAC_VERIFY, out_length))
		return -EPROTO;
	if (!macs_match(mac, h->welcome.mac)) {
		fail(h, -EKEYREJECTED,
		     h->is_donor ? "the client could not prove that it knows the key" :
				   "the donor could not prove that it knows the key");
		return give_up(h, -EKEYREJECTED, out, out_length);
	}
	if (was_downgraded(h))
		return fail_downgraded(h, out, out_length);
	if (takes_no_clear(h))
		return fail_in_clear(h, out, out_length);
	h->state = h->is_donor ? WEIR_HANDSHAKE_PROVEN : WEIR_HANDSHAKE_DONE;
	return 0;
}

void weir_handshake_admit(struct weir_handshake *h, const struct wire_handshake_welcome *welcome)
{
	union wire_handshake_message m = { .welcome = *welcome };

	if (weir_bug(h->state != WEIR_HANDSHAKE_PROVEN))
		return;
	m.welcome.zero = 0;
	wire_handshake_encode(&m, WIRE_WELCOME);
	h->welcome = m.welcome;
	h->wanted_mac = WEIR_HANDSHAKE_MAC_WRITE;
}

void weir_handshake_refuse(struct weir_handshake *h, int status, const char *text, void *out,
			   size_t *out_length)
{
	union wire_handshake_message m;

	weir_handshake_refusal_fill(&m.refusal, status, text);
	*out_length = encode_message(&m, WIRE_REFUSAL, out);
	h->state = WEIR_HANDSHAKE_FAILED;
	h->wanted_mac = WEIR_HANDSHAKE_MAC_NONE;
}

void weir_handshake_refusal_fill(struct wire_handshake_refusal *refusal, int status,
				 const char *text)
{
	union wire_handshake_message m = { .refusal = { .status = -status } };
	size_t i;

	for (i = 0; i < WIRE_TEXT - 1 && text[i]; i++)
		m.refusal.text[i] = text[i];
	wire_handshake_encode(&m, WIRE_REFUSAL);
	*refusal = m.refusal;
}

int weir_handshake_refusal_status(const struct wire_handshake_refusal *refusal)
{
	if (refusal->head.version != WIRE_VERSION)
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
