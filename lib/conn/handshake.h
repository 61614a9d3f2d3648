/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The proof of the key, both roles, without I/O: bytes in, bytes out, a verdict.
 *
 * Each end proves its knowledge of the key by a MAC over the whole exchange: label, role, the two
 * nonces, both ends' GIDs and QPNs, session and channel. Each end compares the claimed GID and QPN
 * with the peer of its own QP. An attacker who relays messages between two QPs is therefore
 * detected.
 *
 * A client:
 *
 *	weir_handshake_client(&h, ..., out, &out_length);	send out
 *	weir_handshake_input(&h, in, in_length, out, &out_length);
 *		0 and out_length: send out, go on
 *		0 and h.state == WEIR_HANDSHAKE_DONE: h.welcome is the donor's
 *
 * A donor:
 *
 *	weir_handshake_donor(&h, ...);				wait for the HELLO
 *	weir_handshake_input(&h, in, in_length, out, &out_length);
 *		0 and h.state == WEIR_HANDSHAKE_PROVEN: open the QP, then
 *	weir_handshake_welcome(&h, &welcome, out, &out_length);	send out, done
 *		or weir_handshake_refuse()
 *		< 0 and out_length: send out (a refusal), then end the connection
 *
 * The caller keeps the time: it ends a handshake that takes longer than WEIR_HANDSHAKE_NS.
 */
#ifndef WEIR_LIB_CONN_HANDSHAKE_H
#define WEIR_LIB_CONN_HANDSHAKE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>
#include "lib/conn/key.h"
#include "wire/handshake.h"

#define WEIR_HANDSHAKE_NS 5000000000ull

enum weir_handshake_state {
	WEIR_HANDSHAKE_FAILED, /* for good */
	WEIR_HANDSHAKE_HELLO, /* donor: expects the HELLO */
	WEIR_HANDSHAKE_CHALLENGE, /* client: expects the CHALLENGE */
	WEIR_HANDSHAKE_PROOF, /* donor: expects the PROOF */
	WEIR_HANDSHAKE_WELCOME, /* client: expects the WELCOME */
	WEIR_HANDSHAKE_PROVEN, /* donor: the client knows the key and is owed an answer */
	WEIR_HANDSHAKE_DONE, /* each end has proven the key */
};

/* One end of a QP, as the verbs know it. */
struct weir_endpoint {
	uint8_t gid[WIRE_GID];
	uint32_t qpn;
};

/**
 * struct weir_handshake_setup - known values when the connection is established
 * @key: NULL is the empty key; kept until the handshake is over
 * @local, @remote: both ends of this QP: weir_endpoint_query()
 * @session_id, @channel: as in the REQ
 * @credits: receive buffers for control messages posted at this end
 * @mux, @ended: for a client that is a mux
 * @nonce: fresh random bytes: weir_handshake_nonce(). Never used twice.
 */
struct weir_handshake_setup {
	const struct weir_key *key;
	struct weir_endpoint local, remote;
	uint64_t session_id;
	uint16_t channel;
	uint16_t credits;
	uint8_t nonce[WIRE_NONCE];
	uint8_t mux[WIRE_MUX_ID];
	uint64_t ended;
};

/**
 * struct weir_handshake - one channel's handshake
 * @state: read it after each call
 * @error: reason of a failure
 * @hello, @challenge: the messages; hello.credits and hello.mux are the client's, valid from PROVEN
 *	on
 * @welcome: client: valid once DONE
 *
 * The owner serialises.
 */
struct weir_handshake {
	enum weir_handshake_state state;
	struct weir_error error;
	struct wire_handshake_hello hello;
	struct wire_handshake_challenge challenge;
	struct wire_handshake_welcome welcome;

	struct weir_handshake_setup setup;
};

/* Begins a client's handshake and writes the HELLO. @out always has WIRE_HANDSHAKE_MAX bytes. */
void weir_handshake_client(struct weir_handshake *h, const struct weir_handshake_setup *setup,
			   void *out, size_t *out_length);

void weir_handshake_donor(struct weir_handshake *h, const struct weir_handshake_setup *setup);

/**
 * weir_handshake_input() - process a message from the peer
 * @out, @out_length: receives the answer; length 0: nothing to send
 *
 * On failure h->state is FAILED, h->error is filled, and @out may hold a refusal to send.
 * Return: 0; -EKEYREJECTED no proof, or from another QP than the message names; -EPROTO malformed
 * or out of turn; -EPROTONOSUPPORT; client: the errno of the donor's refusal.
 */
int weir_handshake_input(struct weir_handshake *h, const void *in, size_t in_length, void *out,
			 size_t *out_length);

/**
 * weir_handshake_welcome() - donor: accept a proven client and prove the key to the client
 * @welcome: session_id, incarnation, quota_bytes, message_max and credits are set; a mux also sets
 *	is_known and mux
 *
 * In state PROVEN only; the state becomes DONE.
 */
void weir_handshake_welcome(struct weir_handshake *h, const struct wire_handshake_welcome *welcome,
			    void *out, size_t *out_length);

/* Donor, in any state: writes a refusal; the state becomes FAILED. @status: a negative errno. */
void weir_handshake_refuse(struct weir_handshake *h, int status, const char *text, void *out,
			   size_t *out_length);

/* Fills a refusal, also for the private data of a REJ. @text is cut to fit. */
void weir_handshake_refusal_fill(struct wire_handshake_refusal *refusal, int status,
				 const char *text);

/**
 * weir_handshake_refusal_explain() - turn a refusal into the client's error
 * @refusal: decoded
 * @error: may be NULL
 *
 * Return: the negative errno if weir_session_open() documents it, otherwise -EPROTO.
 */
int weir_handshake_refusal_explain(const struct wire_handshake_refusal *refusal,
				   struct weir_error *error);

void weir_handshake_nonce(uint8_t nonce[static WIRE_NONCE]);

#endif
