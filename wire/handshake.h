/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a client and a donor connect: the private data of the connection manager, and the proof of
 * the key on each channel. docs/reference/protocol.md describes the whole protocol.
 *
 *	client                                  donor
 *	REQ   wire_handshake_connect ------------------->         version, tenant by key id
 *	      <------------------- REJ wire_handshake_refusal     or accept
 *	SEND  wire_handshake_hello --------------------->         fresh nonce, GID, QPN
 *	      <--------------------- SEND wire_handshake_challenge
 *	SEND  wire_handshake_proof --------------------->         MAC over both and the service
 *	      <----------------------- SEND wire_handshake_welcome    MAC over those and itself
 *	                                            or  SEND wire_handshake_refusal, at any time
 *
 * Little-endian, naturally aligned, no padding, sizes asserted. The decoders are pure: they check
 * every length and copy.
 */
#ifndef WEIR_WIRE_HANDSHAKE_H
#define WEIR_WIRE_HANDSHAKE_H

#include "wire/platform.h"

#define WIRE_MAGIC 0x72696577u /* "weir" */
#define WIRE_VERSION 3
#define WIRE_NONCE 32 /* bytes of a nonce */
#define WIRE_MAC 32 /* bytes of HMAC-SHA-256 */
#define WIRE_GID 16
#define WIRE_SESSION 32 /* bytes that name an encrypted connection of the device */
#define WIRE_ENCRYPTS 1u /* flag: the device encrypts packets between hosts if its peer does */
#define WIRE_MUX_ID 16 /* bytes of a mux id: random, not all 0 */
#define WIRE_TEXT 116 /* bytes of a refusal's sentence, NUL included */
#define WIRE_CHANNEL_UNLOAD 16 /* behind all channels, for unloaded writes: wire/unload.h */
#define WIRE_HANDSHAKE_MAX 256 /* size of a receive buffer for any message of the handshake */
#define WIRE_HANDSHAKE_RECVS 2 /* receive buffers for handshake messages at each end of a channel */

enum wire_handshake_type {
	WIRE_HELLO = 1,
	WIRE_CHALLENGE,
	WIRE_PROOF,
	WIRE_WELCOME,
	WIRE_REFUSAL,
};

/* Private data of the REQ. The connection manager may pad the end. */
struct wire_handshake_connect {
	uint32_t magic;
	uint16_t version; /* at this offset in all versions */
	uint16_t channel; /* up to WIRE_CHANNEL_UNLOAD */
	uint64_t session_id; /* 0: a new session, with channel 0 */
	uint64_t key_id; /* selects the key, and so the donor's PD: weir_key_id() */
};
static_assert(sizeof(struct wire_handshake_connect) == 24, "wire_handshake_connect");

/* The service that the client asked for. Never sent: both ends know it, and the MACs cover it. */
struct wire_handshake_service {
	uint32_t magic; /* of the REQ's private data */
	uint16_t port; /* that the client dialled and the donor listens on */
	uint16_t zero;
};
static_assert(sizeof(struct wire_handshake_service) == 8, "wire_handshake_service");

/* Begins each message of the handshake, and the private data of a REJ. */
struct wire_handshake_head {
	uint32_t magic;
	uint16_t version; /* at this offset in all versions */
	uint8_t type; /* enum wire_handshake_type */
	uint8_t length; /* of the whole message */
};
static_assert(sizeof(struct wire_handshake_head) == 8, "wire_handshake_head");

struct wire_handshake_hello {
	struct wire_handshake_head head;
	uint8_t nonce[WIRE_NONCE];
	uint8_t gid[WIRE_GID]; /* the client's */
	uint32_t qpn; /* the client's */
	uint16_t channel;
	uint16_t credits; /* channel 0: initial credits for the donor's control messages */
	uint64_t session_id;
	uint8_t mux[WIRE_MUX_ID]; /* the client's, if a mux; else 0 */
	uint64_t ended; /* mux: a session with this donor that has ended at the client; else 0 */
};
static_assert(sizeof(struct wire_handshake_hello) == 96, "wire_handshake_hello");

struct wire_handshake_challenge {
	struct wire_handshake_head head;
	uint8_t nonce[WIRE_NONCE];
	uint8_t gid[WIRE_GID]; /* the donor's */
	uint32_t qpn; /* the donor's */
	uint32_t flags; /* WIRE_ENCRYPTS; the others are 0, and ignored */
};
static_assert(sizeof(struct wire_handshake_challenge) == 64, "wire_handshake_challenge");

struct wire_handshake_proof {
	struct wire_handshake_head head;
	uint8_t mac[WIRE_MAC];
};
static_assert(sizeof(struct wire_handshake_proof) == 40, "wire_handshake_proof");

struct wire_handshake_welcome {
	struct wire_handshake_head head;
	uint64_t session_id; /* for further channels of this session */
	uint64_t incarnation; /* of the donor */
	uint64_t quota_bytes;
	uint32_t message_max; /* bytes of a control message, head included */
	uint16_t credits; /* channel 0: initial credits for the client's control messages */
	uint16_t zero;
	uint64_t buffer; /* WIRE_CHANNEL_UNLOAD: of WIRE_UNLOAD_SLOTS slots */
	uint32_t rkey; /* of the buffer */
	uint32_t is_known; /* mux: 1: session_id is an earlier session's, not the channel's */
	uint8_t mux[WIRE_MUX_ID]; /* the donor's, if a mux; else 0 */
	uint8_t mac[WIRE_MAC]; /* also covers all fields before */
};
static_assert(sizeof(struct wire_handshake_welcome) == 104, "wire_handshake_welcome");

/* Without a MAC: a refusal can only end a connection. Also the private data of a REJ. */
struct wire_handshake_refusal {
	struct wire_handshake_head head; /* version: the donor's */
	uint32_t status; /* a positive errno of Linux */
	char text[WIRE_TEXT]; /* a sentence for people, padded with NULs */
};
static_assert(sizeof(struct wire_handshake_refusal) == 128, "wire_handshake_refusal");

union wire_handshake_message {
	struct wire_handshake_head head;
	struct wire_handshake_hello hello;
	struct wire_handshake_challenge challenge;
	struct wire_handshake_proof proof;
	struct wire_handshake_welcome welcome;
	struct wire_handshake_refusal refusal;
};
static_assert(sizeof(union wire_handshake_message) <= WIRE_HANDSHAKE_MAX, "wire_handshake_message");

/**
 * wire_handshake_connect_decode() - read the private data of a REQ
 * @data, @length: from the connection manager; may be NULL, 0
 *
 * Return: 0; -EPROTO not weir, too short or out of range; -EPROTONOSUPPORT another version.
 */
int wire_handshake_connect_decode(const void *data, size_t length,
				  struct wire_handshake_connect *out);

/**
 * wire_handshake_refusal_decode() - read the private data of a REJ
 *
 * Unprintable characters are masked; @out->text ends with a NUL. Another version is no error here:
 * head.version is the donor's version.
 *
 * Return: 0; -EPROTO not weir's.
 */
int wire_handshake_refusal_decode(const void *data, size_t length,
				  struct wire_handshake_refusal *out);

/**
 * wire_handshake_encode() - fill in the head of a message
 * @message: all but the head is set
 *
 * Return: the message's length in bytes, to send.
 */
size_t wire_handshake_encode(union wire_handshake_message *message, enum wire_handshake_type type);

/**
 * wire_handshake_decode() - read one message of the handshake
 * @length: must match the type in the message exactly
 *
 * Return: 0; -EPROTO; -EPROTONOSUPPORT another version.
 */
int wire_handshake_decode(const void *data, size_t length, union wire_handshake_message *out);

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian");

#endif
