/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a client and a donor meet: what the connection manager carries, and the proof of
 * the key that follows on each channel. docs/reference/protocol.md tells the whole story.
 *
 *	client                                  donor
 *	REQ   wire_connect ------------------->         version, tenant by key id
 *	      <------------------- REJ wire_refusal     or accept
 *	SEND  wire_hello --------------------->         fresh nonce, GID, QPN
 *	      <--------------------- SEND wire_challenge
 *	SEND  wire_proof --------------------->         MAC over both
 *	      <----------------------- SEND wire_welcome    MAC over both and itself
 *	                                            or  SEND wire_refusal, at any time
 *
 * Little-endian, naturally aligned, no padding, sizes asserted. The decoders are pure: they
 * check every length, copy, and look at nothing else.
 */
#ifndef WEIR_WIRE_HANDSHAKE_H
#define WEIR_WIRE_HANDSHAKE_H

#include "wire/platform.h"

#define WIRE_MAGIC 0x72696577u /* "weir" */
#define WIRE_VERSION 2
#define WIRE_NONCE 32 /* bytes of a nonce */
#define WIRE_MAC 32 /* bytes of HMAC-SHA-256 */
#define WIRE_GID 16
#define WIRE_MUX_ID 16 /* of a mux: random bytes, not all 0 */
#define WIRE_TEXT 116 /* bytes of a refusal's sentence, NUL included */
#define WIRE_CHANNELS_MAX 16
#define WIRE_CHANNEL_UNLOAD 16 /* one more, for what is unloaded: wire/unload.h */
#define WIRE_HANDSHAKE_MAX 256 /* a receive buffer of this size holds any message of the handshake */
#define WIRE_HANDSHAKE_RECVS 2 /* each end receives at most this many of them on a channel */

enum wire_handshake_type {
	WIRE_HELLO = 1,
	WIRE_CHALLENGE,
	WIRE_PROOF,
	WIRE_WELCOME,
	WIRE_REFUSAL,
};

/* Private data of the REQ. Bytes after it are padding of the connection manager's. */
struct wire_connect {
	uint32_t magic;
	uint16_t version; /* at this place in all versions */
	uint16_t channel; /* below WIRE_CHANNELS_MAX, or WIRE_CHANNEL_UNLOAD */
	uint64_t session_id; /* 0: a new session, and then channel is 0 */
	uint64_t key_id; /* names the key, and so the donor's PD: weir_key_id() */
};
static_assert(sizeof(struct wire_connect) == 24, "wire_connect");

/* Begins each message of the handshake, and the private data of a REJ. */
struct wire_handshake_head {
	uint32_t magic;
	uint16_t version; /* at this place in all versions */
	uint8_t type; /* enum wire_handshake_type */
	uint8_t length; /* of the whole message */
};
static_assert(sizeof(struct wire_handshake_head) == 8, "wire_handshake_head");

struct wire_hello {
	struct wire_handshake_head head;
	uint8_t nonce[WIRE_NONCE];
	uint8_t gid[WIRE_GID]; /* the client's */
	uint32_t qpn; /* the client's */
	uint16_t channel;
	uint16_t credits; /* control messages the donor may send before more is granted; channel 0 */
	uint64_t session_id;
	uint8_t mux[WIRE_MUX_ID]; /* the client's, if it is a mux; else 0 */
	uint64_t ended; /* mux: a session with this donor that it has no more; else 0 */
};
static_assert(sizeof(struct wire_hello) == 96, "wire_hello");

struct wire_challenge {
	struct wire_handshake_head head;
	uint8_t nonce[WIRE_NONCE];
	uint8_t gid[WIRE_GID]; /* the donor's */
	uint32_t qpn; /* the donor's */
	uint32_t zero;
};
static_assert(sizeof(struct wire_challenge) == 64, "wire_challenge");

struct wire_proof {
	struct wire_handshake_head head;
	uint8_t mac[WIRE_MAC];
};
static_assert(sizeof(struct wire_proof) == 40, "wire_proof");

struct wire_welcome {
	struct wire_handshake_head head;
	uint64_t session_id; /* what further channels of this session name */
	uint64_t incarnation; /* of the donor */
	uint64_t quota_bytes;
	uint32_t message_max; /* bytes of a control message, head included */
	uint16_t credits; /* control messages the client may send before more is granted; channel 0 */
	uint16_t zero;
	uint64_t buffer; /* of WIRE_SLOTS slots; WIRE_CHANNEL_UNLOAD */
	uint32_t rkey; /* of it */
	uint32_t is_known; /* mux: 1: session_id is one that there was, and this channel is not of it */
	uint8_t mux[WIRE_MUX_ID]; /* the donor's, if it is a mux; else 0 */
	uint8_t mac[WIRE_MAC]; /* over all before it, too */
};
static_assert(sizeof(struct wire_welcome) == 104, "wire_welcome");

/* Not proven by a MAC: it can only end a connection. Also the private data of a REJ. */
struct wire_refusal {
	struct wire_handshake_head head; /* version: the one that the donor speaks */
	uint32_t status; /* a positive errno of Linux */
	char text[WIRE_TEXT]; /* a sentence for people, padded with NULs */
};
static_assert(sizeof(struct wire_refusal) == 128, "wire_refusal");

union wire_handshake {
	struct wire_handshake_head head;
	struct wire_hello hello;
	struct wire_challenge challenge;
	struct wire_proof proof;
	struct wire_welcome welcome;
	struct wire_refusal refusal;
};
static_assert(sizeof(union wire_handshake) <= WIRE_HANDSHAKE_MAX, "wire_handshake");

/**
 * wire_connect_decode() - read the private data of a REQ
 * @data, @length: as the connection manager gave it; may be NULL, 0
 *
 * Return: 0; -EPROTO not weir, too short or out of range; -EPROTONOSUPPORT another version.
 */
int wire_connect_decode(const void *data, size_t length, struct wire_connect *out);

/**
 * wire_refusal_decode() - read the private data of a REJ
 *
 * Text that is not printable ASCII is masked; @out->text ends with a NUL. Another version is no
 * error here: head.version says which one the donor speaks.
 * Return: 0; -EPROTO it is not weir's.
 */
int wire_refusal_decode(const void *data, size_t length, struct wire_refusal *out);

/**
 * wire_handshake_encode() - fill in the head of a message
 * @message: the rest of it is set
 *
 * Return: its length in bytes, the number to send.
 */
size_t wire_handshake_encode(union wire_handshake *message, enum wire_handshake_type type);

/**
 * wire_handshake_decode() - read one message of the handshake
 *
 * @length must be exactly what the message's type says; head.type tells which one it is.
 * Return: 0; -EPROTO; -EPROTONOSUPPORT another version.
 */
int wire_handshake_decode(const void *data, size_t length, union wire_handshake *out);

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian");

#endif
