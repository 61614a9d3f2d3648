/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How the two queue pairs of a connection agree on keys, without I/O: messages and time in,
 * messages and a deadline out.
 *
 * Each end makes an X25519 key pair for one connection. An end that wants encryption offers its
 * public key to the port of the peer's softnic; the peer answers with its own public key and a
 * proof that it has derived the same keys. Nothing but an offer leaves before that.
 *
 *	A                                   B
 *	OFFER  public key, ciphers  ------>           repeated until an answer
 *	       <------  ANSWER  public key, ciphers, proof
 *	       or <---  PLAIN   A's public key: B does not encrypt
 *	sealed packet               ------>           proves to B that A has the keys
 *
 * Both may offer at once: the keys are the same. A peer that answers nothing for 1.9 seconds is no
 * softnic, and the connection goes on in clear text. So does a connection whose peer has answered
 * PLAIN. An end that has accepted a packet in clear text stays with clear text. If its own offer is
 * under way, it waits for the answer, but only for 140 ms if the packet came from another device.
 *
 * A listener on the network learns no key. A sender that forges its address must guess a PSN, as
 * for any RoCE packet. Even then it agrees on nothing: a proof needs the offer, and a key counts
 * only after a proof. Nor does it end an agreement under way: PLAIN echoes the offer, and clear
 * text only shortens the wait for an answer. An attacker on the path may agree on keys with each
 * end, or suppress the agreement: softnic has no secret to notice that. A program that has one
 * compares @session, as weir's handshake does.
 *
 * Context of all: serialised by the queue pair.
 */
#ifndef WEIR_SOFTNIC_SEAL_AGREE_H
#define WEIR_SOFTNIC_SEAL_AGREE_H

#include "softnic/roce/packet.h"
#include "softnic/seal/seal.h"

#define AGREE_NEVER UINT64_MAX

enum {
	AGREE_OPCODE = 0xc0, /* one of the manufacturer's */
	AGREE_VERSION = 1,
	AGREE_PUBLIC_BYTES = 32,
	AGREE_PROOF_BYTES = 32,
	AGREE_SESSION_BYTES = 32,
	AGREE_MESSAGE_BYTES = ROCE_BTH_BYTES + 4 + AGREE_PUBLIC_BYTES + AGREE_PROOF_BYTES,
};

enum agree_kind {
	AGREE_OFFER = 1,
	AGREE_ANSWER,
	AGREE_PLAIN,
};

/**
 * struct agree_message - without a BTH's constants
 * @dest_qpn: the receiver's
 * @psn: of an offer, the sender's first PSN; of an answer or PLAIN, the receiver's
 * @kind: enum agree_kind
 * @ciphers: bits of enum seal_cipher that the sender can run
 * @public: the sender's; of PLAIN, that of the offer
 * @proof: 0 but in an answer
 */
struct agree_message {
	uint32_t dest_qpn, psn;
	uint8_t kind, ciphers;
	uint8_t public[AGREE_PUBLIC_BYTES];
	uint8_t proof[AGREE_PROOF_BYTES];
};

/** agree_is_message() - does a packet claim to be a message? */
bool agree_is_message(const uint8_t *bytes, size_t size);

/** agree_encode() - write a message of AGREE_MESSAGE_BYTES, without ICRC */
void agree_encode(const struct agree_message *m, uint8_t *bytes);

/**
 * agree_decode() - read a message
 * @bytes, @size: with its ICRC, which is not checked here
 *
 * Return: false if it is none: drop it.
 */
bool agree_decode(struct agree_message *m, const uint8_t *bytes, size_t size);

enum agree_state {
	AGREE_OPEN, /* nothing is decided */
	AGREE_CLEAR,
	AGREE_SEALED,
};

/**
 * struct agree_config - what the ends of the connection know
 * @qpn, @dest_qpn: of the connection
 * @receive_psn: the peer's first PSN
 */
struct agree_config {
	uint32_t qpn, dest_qpn, receive_psn;
};

/**
 * struct agree - the agreement; fields are its own, but for reading @state, @seal and @session
 * @seal: valid in state SEALED; before, the keys of the last offer heard
 * @session: the same at both ends, and of no other connection; valid in state SEALED
 * @secret: of @public; wiped when the agreement ends
 * @ciphers: bits of enum seal_cipher; 0: this end cannot or will not encrypt
 * @asks: this end wants encryption, or the peer does
 * @has_started: this end may send, and @send_psn is known
 * @has_candidate: @peer is the public key of the last offer heard
 * @hears_clear: the transport accepted a clear-text packet, probably from a device that will not
 *	answer our offer
 * @proof, @peer_proof: of @public and @peer, for the keys in @seal
 * @refused: public key of the offer that PLAIN answers
 * @owed: kind of the message to send, or 0
 */
struct agree {
	struct agree_config config;
	enum agree_state state;
	uint32_t send_psn;
	uint8_t secret[SEAL_KEY_BYTES];
	uint8_t ciphers;
	bool is_armed, asks, has_started, has_candidate, hears_clear;
	uint8_t owed;
	uint32_t offers;
	uint64_t deadline_ns;
	uint8_t public[AGREE_PUBLIC_BYTES], peer[AGREE_PUBLIC_BYTES], refused[AGREE_PUBLIC_BYTES];
	uint8_t proof[AGREE_PROOF_BYTES], peer_proof[AGREE_PROOF_BYTES];
	uint8_t session[AGREE_SESSION_BYTES];
	struct seal seal;
};

void agree_init(struct agree *a, const struct agree_config *config);

/** agree_fini() - wipe the agreement and its keys; also before agree_init(), if all bytes are 0 */
void agree_fini(struct agree *a);

/**
 * agree_arm() - have a key pair; owed before agree_ask() and agree_input(), once
 * @ciphers: seal_ciphers(), or 0 to refuse all encryption
 * @secret: fresh random bytes
 */
void agree_arm(struct agree *a, uint8_t ciphers, const uint8_t secret[SEAL_KEY_BYTES]);

/** agree_start() - this end may send, from @send_psn on; the first time counts */
void agree_start(struct agree *a, uint32_t send_psn, uint64_t now_ns);

/** agree_ask() - want encryption, unless clear text is decided */
void agree_ask(struct agree *a, uint64_t now_ns);

/** agree_must_wait() - may no RoCE packet leave yet? */
bool agree_must_wait(const struct agree *a);

/** agree_input() - a message came from the peer's address */
void agree_input(struct agree *a, const struct agree_message *m, uint64_t now_ns);

/**
 * agree_open() - a sealed packet came
 *
 * Return: as seal_open(); 0, too, if no key is known.
 */
size_t agree_open(struct agree *a, uint8_t *bytes, size_t size);

/** agree_takes_clear() - may a packet in clear text count? */
static inline bool agree_takes_clear(const struct agree *a)
{
	return a->state != AGREE_SEALED;
}

/** agree_heard_clear() - the transport has accepted a packet in clear text; @of_softnic: maybe */
void agree_heard_clear(struct agree *a, bool of_softnic);

/** agree_output() - take the next message to send; false: none */
bool agree_output(struct agree *a, struct agree_message *m, uint64_t now_ns);

/** agree_deadline_ns() - when to call agree_output() again, or AGREE_NEVER */
uint64_t agree_deadline_ns(const struct agree *a);

#endif
