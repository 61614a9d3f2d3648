/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The proof of the key, both roles: messages in, messages out, a verdict. The host keeps the key
 * and computes MACs; lib/conn/handshake.h and kernel/weir/handshake.h are the hosts.
 *
 * Each end proves its knowledge of the key by a MAC over the whole exchange: label, role, service,
 * the two nonces, both ends' GIDs and QPNs, session and channel. Each end compares the claimed GID
 * and QPN with the peer of its own QP. An attacker who relays messages between two QPs, or connects
 * a client to another service of the key, is therefore detected. So is an attacker between two
 * devices that encrypt: the MACs cover the session that the device names. The client proves nothing
 * over a connection in clear text if both devices encrypt, so the donor never admits it. If one
 * device does not, the other end decides whether it takes clear text.
 *
 * A client:
 *
 *	weir_handshake_client(&h, ..., out, &out_length);	send out
 *	weir_handshake_received(&h, in, in_length, out, &out_length);
 *		0 and h.wanted_mac: a MAC, see below
 *		0 and out_length: send out, go on
 *		0 and h.state == WEIR_HANDSHAKE_DONE: h.welcome is the donor's
 *
 * A donor:
 *
 *	weir_handshake_donor(&h, ...);				wait for the HELLO
 *	weir_handshake_received(&h, in, in_length, out, &out_length);
 *		0 and h.wanted_mac: a MAC, see below
 *		0 and h.state == WEIR_HANDSHAKE_PROVEN: open the QP, then
 *	weir_handshake_admit(&h, &welcome);			a MAC; send out, done
 *		or weir_handshake_refuse()
 *		< 0 and out_length: send out (a refusal), then end the connection
 *
 * A MAC:
 *
 *	length = weir_handshake_transcript(&h, bytes);		mac = HMAC-SHA-256(key, bytes)
 *	weir_handshake_write_mac(&h, mac, out, &out_length);	to WRITE: send out
 *	weir_handshake_verify_mac(&h, mac, out, &out_length);	to VERIFY: goes on as received()
 *
 * The host keeps the time. @out always has WIRE_HANDSHAKE_MAX bytes.
 */
#ifndef WEIR_CORE_LINK_HANDSHAKE_H
#define WEIR_CORE_LINK_HANDSHAKE_H

#include "core/base/platform.h"
#include "wire/handshake.h"

/* Bytes that a MAC covers: a label, the service and three messages, the last without its MAC. */
#define WEIR_HANDSHAKE_TRANSCRIPT_MAX                                                       \
	(16 + sizeof(struct wire_handshake_service) + WIRE_SESSION +                        \
	 sizeof(struct wire_handshake_hello) +                                              \
	 sizeof(struct wire_handshake_challenge) + offsetof(struct wire_handshake_welcome, mac))

enum weir_handshake_state {
	WEIR_HANDSHAKE_FAILED, /* for good */
	WEIR_HANDSHAKE_HELLO, /* donor: expects the HELLO */
	WEIR_HANDSHAKE_CHALLENGE, /* client: expects the CHALLENGE */
	WEIR_HANDSHAKE_PROOF, /* donor: expects the PROOF */
	WEIR_HANDSHAKE_WELCOME, /* client: expects the WELCOME */
	WEIR_HANDSHAKE_PROVEN, /* donor: the client knows the key and is owed an answer */
	WEIR_HANDSHAKE_DONE, /* each end has proven the key */
};

/* A MAC owed by the host: for the message to send, or to compare with the received one. */
enum weir_handshake_mac {
	WEIR_HANDSHAKE_MAC_NONE,
	WEIR_HANDSHAKE_MAC_WRITE,
	WEIR_HANDSHAKE_MAC_VERIFY,
};

/* One end of a QP, as the verbs know it. */
struct weir_endpoint {
	uint8_t gid[WIRE_GID];
	uint32_t qpn;
};

struct weir_key;

/**
 * struct weir_handshake_setup - known values when the connection is established
 * @key: the host's, for its MACs; the core does not look at it
 * @qp: the host's, to ask for @session; the core does not look at it
 * @encrypts: the device encrypts packets to the peer if the peer's does
 * @takes_clear: if @encrypts: admit a peer whose device does not
 * @is_encrypted, @session: the device's state. The host sets them before each MAC
 * @service: the magic of the REQ, and the listening end's port
 * @local, @remote: both ends of this QP, from the verbs
 * @session_id, @channel: as in the REQ
 * @credits: receive buffers for control messages posted at this end
 * @mux, @ended: for a client that is a mux
 * @nonce: fresh random bytes. Never used twice.
 */
struct weir_handshake_setup {
	const struct weir_key *key;
	void *qp;
	struct wire_handshake_service service;
	struct weir_endpoint local, remote;
	uint64_t session_id;
	uint16_t channel;
	uint16_t credits;
	uint8_t nonce[WIRE_NONCE];
	uint8_t mux[WIRE_MUX_ID];
	uint64_t ended;
	bool encrypts, takes_clear, is_encrypted;
	uint8_t session[WIRE_SESSION];
};

/**
 * struct weir_handshake - one channel's handshake
 * @state: read it after each call
 * @is_donor: the role
 * @wanted_mac: unless NONE, no message is taken before the MAC is given
 * @why: the reason of a failure, a sentence; NULL while there is none, and after a refusal
 * @refusal: client: the donor's, if it refused; its head.magic is 0 otherwise
 * @hello, @challenge: the messages; hello.credits and hello.mux are the client's, valid from PROVEN
 *	on
 * @welcome: client: valid once DONE
 *
 * The owner serialises.
 */
struct weir_handshake {
	enum weir_handshake_state state;
	bool is_donor;
	enum weir_handshake_mac wanted_mac;
	const char *why;
	struct wire_handshake_refusal refusal;
	struct wire_handshake_hello hello;
	struct wire_handshake_challenge challenge;
	struct wire_handshake_welcome welcome;

	struct weir_handshake_setup setup;
};

/* Begins a client's handshake and writes the HELLO. */
void weir_handshake_client(struct weir_handshake *h, const struct weir_handshake_setup *setup,
			   void *out, size_t *out_length);

void weir_handshake_donor(struct weir_handshake *h, const struct weir_handshake_setup *setup);

/**
 * weir_handshake_received() - process a message from the peer
 * @out, @out_length: receives the answer; length 0: nothing to send
 *
 * On failure h->state is FAILED, h->why or h->refusal says why, and a donor's @out is a refusal to
 * send.
 *
 * Return: 0; -EKEYREJECTED no proof, or from another QP than the message names; -EPROTO malformed
 * or out of turn; -EPROTONOSUPPORT; client: weir_handshake_refusal_status().
 */
int weir_handshake_received(struct weir_handshake *h, const void *in, size_t in_length, void *out,
			    size_t *out_length);

/* Writes the bytes that the wanted MAC covers. Return: their number; 0 if no MAC is wanted. */
size_t weir_handshake_transcript(const struct weir_handshake *h,
				 uint8_t bytes[static WEIR_HANDSHAKE_TRANSCRIPT_MAX]);

/**
 * weir_handshake_write_mac() - write the PROOF or the WELCOME, with @mac over the transcript
 *
 * Return: 0; client, with nothing written and the state FAILED: -ETIMEDOUT both devices encrypt,
 * but did not agree on it: another connection may succeed; -EKEYREJECTED the donor's does not
 * encrypt.
 */
int weir_handshake_write_mac(struct weir_handshake *h, const uint8_t mac[static WIRE_MAC],
			     void *out, size_t *out_length);

/**
 * weir_handshake_verify_mac() - compare the peer's MAC with @mac, over the transcript
 *
 * Return: as weir_handshake_received(), also for a client whose device does not encrypt; client:
 * -ETIMEDOUT as weir_handshake_write_mac().
 */
int weir_handshake_verify_mac(struct weir_handshake *h, const uint8_t mac[static WIRE_MAC],
			      void *out, size_t *out_length);

/**
 * weir_handshake_admit() - donor: accept a proven client; the WELCOME needs a MAC
 * @welcome: session_id, incarnation, quota_bytes, message_max and credits are set; a mux also sets
 *	is_known and mux
 *
 * In state PROVEN only; weir_handshake_write_mac() writes the WELCOME, and the state becomes DONE.
 */
void weir_handshake_admit(struct weir_handshake *h, const struct wire_handshake_welcome *welcome);

/* Donor, in any state: writes a refusal; the state becomes FAILED. @status: a negative errno. */
void weir_handshake_refuse(struct weir_handshake *h, int status, const char *text, void *out,
			   size_t *out_length);

/* Fills a refusal, also for the private data of a REJ. @text is cut to fit. */
void weir_handshake_refusal_fill(struct wire_handshake_refusal *refusal, int status,
				 const char *text);

/* Return: the errno of a decoded refusal: -EPROTONOSUPPORT, a documented one, or -EPROTO. */
int weir_handshake_refusal_status(const struct wire_handshake_refusal *refusal);

#endif
