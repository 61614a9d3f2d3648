/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The proof of the key, both roles: messages in, messages out, a verdict. The host gives the key,
 * random bytes and the primitives; lib/conn/handshake.h and kernel/weir/handshake.h are the hosts.
 *
 * The handshake is Noise_NXpsk2_25519_ChaChaPoly_SHA256 (core/link/noise.h) and two transport
 * messages. Why this pattern: the donor knows its clients by the key alone (N), and sends its
 * public key (X), so a client that trusts several donors need not know which one answers. The
 * properties and their reasons:
 *
 * - The client knows the key, now: the PROOF is sealed under the key and the secret of both
 *   ephemeral pairs. A repeated HELLO gets a CHALLENGE that needs another PROOF.
 * - The donor knows the key, now, and the secret of its identity: the payload of the CHALLENGE is
 *   sealed under the key and the secrets of the client's ephemeral pair with both of the donor's
 *   (ee, es). A client that pins identities compares. So a client of the same key cannot pose as
 *   the donor. A client without a pin learns only that the other end knows the key.
 * - Forward secrecy: the CHALLENGE, PROOF and WELCOME are sealed under keys that need an ephemeral
 *   secret. Both ends wipe theirs. A key or identity that leaks later opens nothing recorded.
 *   The HELLO holds no secret: its payload is authenticated by the CHALLENGE, and not encrypted.
 * - The same QPs: each end compares the GID and QPN in the other's payload with the peer of its own
 *   QP, so relaying between two QPs is detected.
 * - The same service and version: both are in the prologue.
 * - No older version than both ends speak: the CHALLENGE holds the donor's newest. A client that
 *   was made to ask for less, by a forged REJ, sends no PROOF.
 * - No reflection: each direction has a key of its own.
 * - The same encrypted connection: PROOF and WELCOME have its name as associated data, if the
 *   device encrypts. The CHALLENGE holds the donor's word that its device encrypts. A client whose
 *   device would, too, sends no PROOF over a connection in clear text. If one device does not
 *   encrypt, the other end decides whether it takes clear text.
 * - Changes: each byte of a payload and each public key is covered by a tag, and each head has one
 *   valid value.
 *
 * A client:
 *
 *	weir_handshake_client(&h, &setup, out, &out_length);	send out
 *	weir_handshake_received(&h, in, in_length, out, &out_length);
 *		0 and out_length: send out, go on
 *		0 and h.state == WEIR_HANDSHAKE_DONE: h.welcome is the donor's
 *
 * A donor:
 *
 *	weir_handshake_donor(&h, &setup);			wait for the HELLO
 *	weir_handshake_received(&h, in, in_length, out, &out_length);
 *		0 and out_length: send out, go on
 *		0 and h.state == WEIR_HANDSHAKE_PROVEN: open the QP, then
 *	weir_handshake_admit(&h, &welcome, out, &out_length);	send out, done
 *		or weir_handshake_refuse()
 *		< 0 and out_length: send out (a refusal), then end the connection
 *
 * The host keeps the time. @out always has WIRE_HANDSHAKE_MAX bytes.
 */
#ifndef WEIR_CORE_LINK_HANDSHAKE_H
#define WEIR_CORE_LINK_HANDSHAKE_H

#include "core/base/platform.h"
#include "core/link/noise.h"
#include "wire/handshake.h"

enum weir_handshake_state {
	WEIR_HANDSHAKE_FAILED, /* for good */
	WEIR_HANDSHAKE_HELLO, /* donor: expects the HELLO */
	WEIR_HANDSHAKE_CHALLENGE, /* client: expects the CHALLENGE */
	WEIR_HANDSHAKE_PROOF, /* donor: expects the PROOF */
	WEIR_HANDSHAKE_WELCOME, /* client: expects the WELCOME */
	WEIR_HANDSHAKE_PROVEN, /* donor: the client knows the key and is owed an answer */
	WEIR_HANDSHAKE_DONE, /* client: the donor has admitted us; donor: WELCOME is written */
};

/* One end of a QP, as the verbs know it. */
struct weir_endpoint {
	uint8_t gid[WIRE_GID];
	uint32_t qpn;
};

struct weir_key;

/**
 * struct weir_handshake_setup - known values when the connection is established
 * @key: the host's; the core does not look at it
 * @qp: the host's, to ask for @session; the core does not look at it
 * @version: of the connection: the REQ's; 0: the newest
 * @version_max: the newest that this end speaks; 0: the newest
 * @encrypts: the device encrypts packets to the peer if the peer's does
 * @takes_clear: if @encrypts: admit a peer whose device does not
 * @is_encrypted, @session: the device's state. The host sets them before each message
 * @service: the magic of the REQ, and the listening end's port
 * @local, @remote: both ends of this QP, from the verbs
 * @session_id, @channel: as in the REQ
 * @credits: receive buffers for control messages posted at this end
 * @mux, @ended: for a client that is a mux
 * @pins, @nr_pins: client: public keys of the donors to trust; none: any donor that knows
 *	the key. Kept until the end of the handshake
 * @crypto: the host's primitives
 * @psk: of the key: weir_key_psk()
 * @ephemeral: its secret is fresh random bytes, never used twice; the core sets its public key
 * @identity: donor: its static pair
 */
struct weir_handshake_setup {
	const struct weir_key *key;
	void *qp;
	struct wire_handshake_service service;
	uint16_t version, version_max;
	struct weir_endpoint local, remote;
	uint64_t session_id;
	uint16_t channel;
	uint16_t credits;
	uint8_t mux[WIRE_MUX_ID];
	uint64_t ended;
	bool encrypts, takes_clear, is_encrypted;
	uint8_t session[WIRE_SESSION];
	const uint8_t (*pins)[WIRE_KEY];
	unsigned int nr_pins;
	const struct weir_noise_crypto *crypto;
	uint8_t psk[WEIR_NOISE_KEY];
	struct weir_noise_pair ephemeral, identity;
};

/**
 * struct weir_handshake - one channel's handshake
 * @state: read it after each call
 * @is_donor: the role
 * @why: the reason of a failure, a sentence; NULL while there is none, and after a refusal
 * @refusal: client: the donor's, if it refused; its head.magic is 0 otherwise
 * @hello, @challenge: the payloads; hello.credits and hello.mux are the client's, valid from PROVEN
 *	on
 * @welcome: client: valid once DONE
 * @identity: client: the donor's public key, valid once DONE
 *
 * Secrets are wiped as soon as they are not needed. The owner serialises.
 */
struct weir_handshake {
	enum weir_handshake_state state;
	bool is_donor;
	const char *why;
	struct wire_handshake_refusal refusal;
	struct wire_handshake_hello hello;
	struct wire_handshake_challenge challenge;
	struct wire_handshake_welcome welcome;
	uint8_t identity[WIRE_KEY];

	struct weir_handshake_setup setup;
	struct weir_noise noise;
};

/* Begins a client's handshake and writes the HELLO. Takes the secrets: wipes them in @setup. */
void weir_handshake_client(struct weir_handshake *h, struct weir_handshake_setup *setup, void *out,
			   size_t *out_length);

/* Begins a donor's. Takes the secrets: wipes them in @setup. */
void weir_handshake_donor(struct weir_handshake *h, struct weir_handshake_setup *setup);

/**
 * weir_handshake_received() - process a message from the peer
 * @out, @out_length: receives the answer; length 0: nothing to send
 *
 * On failure h->state is FAILED, h->why or h->refusal says why, and a donor's @out is a refusal to
 * send.
 *
 * Return: 0; -EKEYREJECTED no proof, another identity than the pinned ones, another QP than the
 * message names, or clear text is not taken; -EPROTO malformed or out of turn; -EPROTONOSUPPORT;
 * client: weir_handshake_refusal_status(), and -ETIMEDOUT both devices encrypt, or both ends speak
 * a newer version, but did not agree on it: another connection may succeed.
 */
int weir_handshake_received(struct weir_handshake *h, const void *in, size_t in_length, void *out,
			    size_t *out_length);

/**
 * weir_handshake_admit() - donor: accept a proven client, write the WELCOME
 * @welcome: session_id, incarnation, quota_bytes, message_max and credits are set; a mux also sets
 *	is_known and mux
 *
 * In state PROVEN only; the state becomes DONE.
 */
void weir_handshake_admit(struct weir_handshake *h, const struct wire_handshake_welcome *welcome,
			  void *out, size_t *out_length);

/* Donor, in any state: writes a refusal; the state becomes FAILED. @status: a negative errno. */
void weir_handshake_refuse(struct weir_handshake *h, int status, const char *text, void *out,
			   size_t *out_length);

/* Wipes all secrets: a host calls it when the connection ends, before a verdict or after it. */
void weir_handshake_fini(struct weir_handshake *h);

/*
 * Fills a refusal, also for the private data of a REJ. @version: of the connection, or of
 * wire_handshake_reject_version(). @text is cut to fit.
 */
void weir_handshake_refusal_fill(struct wire_handshake_refusal *refusal, uint16_t version,
				 int status, const char *text);

/*
 * @version: that this end has asked for. Return: the errno of a decoded refusal: -EPROTONOSUPPORT,
 * a documented one, or -EPROTO.
 */
int weir_handshake_refusal_status(const struct wire_handshake_refusal *refusal, uint16_t version);

#endif
