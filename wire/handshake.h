/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a client and a donor connect: the private data of the connection manager, and the proof of
 * the key on each channel. docs/reference/protocol.md describes the whole protocol.
 *
 *	client                                  donor
 *	REQ   wire_handshake_connect ------------------->         version, tenant by key id
 *	      <------------------- REJ wire_handshake_reject      or accept
 *	SEND  wire_handshake_sealed_hello -------------->         Noise NXpsk2: e
 *	      <-------------- SEND wire_handshake_sealed_challenge    e, ee, s, es, psk
 *	SEND  wire_handshake_proof --------------------->         the first transport message
 *	      <---------------- SEND wire_handshake_sealed_welcome    the first in return
 *	                                            or  SEND wire_handshake_refusal, at any time
 *
 * Little-endian, naturally aligned, no padding, sizes asserted. The decoders are pure: they check
 * every length and copy.
 */
#ifndef WEIR_WIRE_HANDSHAKE_H
#define WEIR_WIRE_HANDSHAKE_H

#include "wire/platform.h"

#define WIRE_MAGIC 0x72696577u /* "weir" */
#define WIRE_VERSION 4 /* the newest */
#define WIRE_VERSION_MIN 4 /* the oldest; 3 had no forward secrecy */
#define WIRE_KEY 32 /* bytes of a public key */
#define WIRE_TAG 16 /* bytes by which a sealed payload grows */
#define WIRE_MAC 32 /* bytes of HMAC-SHA-256, of datagrams: wire/discovery.h */
#define WIRE_GID 16
#define WIRE_SESSION 32 /* bytes that name an encrypted connection of the device */
#define WIRE_ENCRYPTS 1u /* flag: the device encrypts packets between hosts if its peer does */
#define WIRE_NEWEST_SHIFT 16 /* in flags: the donor's newest version, 16 bits */
#define WIRE_MUX_ID 16 /* bytes of a mux id: random, not all 0 */
#define WIRE_COOKIE 16 /* bytes; all 0: no cookie */
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
	uint16_t version; /* the client would speak; at this offset in all versions */
	uint16_t channel; /* up to WIRE_CHANNEL_UNLOAD */
	uint64_t session_id; /* 0: a new session, with channel 0 */
	uint64_t key_id; /* selects the key, and so the donor's PD: weir_key_id() */
	uint8_t cookie[WIRE_COOKIE]; /* of a REJ; older clients end before it */
};
static_assert(sizeof(struct wire_handshake_connect) == 40, "wire_handshake_connect");

/* The service that the client asked for. Never sent: both ends know it. */
struct wire_handshake_service {
	uint32_t magic; /* of the REQ's private data */
	uint16_t port; /* that the client dialled and the donor listens on */
	uint16_t zero;
};
static_assert(sizeof(struct wire_handshake_service) == 8, "wire_handshake_service");

/* Begins each message of the handshake. */
struct wire_handshake_head {
	uint32_t magic;
	uint16_t version; /* at this offset in all versions */
	uint8_t type; /* enum wire_handshake_type */
	uint8_t length; /* of the whole message */
};
static_assert(sizeof(struct wire_handshake_head) == 8, "wire_handshake_head");

/* The prologue of Noise. Never sent: both ends' must be equal. */
struct wire_handshake_prologue {
	uint32_t magic;
	uint16_t version;
	uint16_t zero;
	struct wire_handshake_service service;
};
static_assert(sizeof(struct wire_handshake_prologue) == 16, "wire_handshake_prologue");

/* The payloads, sealed in the messages below. */

struct wire_handshake_hello {
	uint8_t gid[WIRE_GID]; /* the client's */
	uint32_t qpn; /* the client's */
	uint16_t channel;
	uint16_t credits; /* channel 0: initial credits for the donor's control messages */
	uint64_t session_id;
	uint8_t mux[WIRE_MUX_ID]; /* the client's, if a mux; else 0 */
	uint64_t ended; /* mux: a session with this donor that has ended at the client; else 0 */
};
static_assert(sizeof(struct wire_handshake_hello) == 56, "wire_handshake_hello");

struct wire_handshake_challenge {
	uint8_t gid[WIRE_GID]; /* the donor's */
	uint32_t qpn; /* the donor's */
	/*
	 * WIRE_ENCRYPTS, and from bit WIRE_NEWEST_SHIFT on the newest version that the donor
	 * speaks; 0: this one. The others are 0, and ignored
	 */
	uint32_t flags;
};
static_assert(sizeof(struct wire_handshake_challenge) == 24, "wire_handshake_challenge");

struct wire_handshake_welcome {
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
};
static_assert(sizeof(struct wire_handshake_welcome) == 64, "wire_handshake_welcome");

struct wire_handshake_sealed_hello {
	struct wire_handshake_head head;
	uint8_t ephemeral[WIRE_KEY];
	uint8_t payload[sizeof(struct wire_handshake_hello) + WIRE_TAG];
};
static_assert(sizeof(struct wire_handshake_sealed_hello) == 112, "wire_handshake_sealed_hello");

struct wire_handshake_sealed_challenge {
	struct wire_handshake_head head;
	uint8_t ephemeral[WIRE_KEY];
	uint8_t identity[WIRE_KEY + WIRE_TAG]; /* the donor's public key, sealed */
	uint8_t payload[sizeof(struct wire_handshake_challenge) + WIRE_TAG];
};
static_assert(sizeof(struct wire_handshake_sealed_challenge) == 128,
	      "wire_handshake_sealed_challenge");

struct wire_handshake_proof {
	struct wire_handshake_head head;
	uint8_t payload[WIRE_TAG]; /* of no bytes */
};
static_assert(sizeof(struct wire_handshake_proof) == 24, "wire_handshake_proof");

struct wire_handshake_sealed_welcome {
	struct wire_handshake_head head;
	uint8_t payload[sizeof(struct wire_handshake_welcome) + WIRE_TAG];
};
static_assert(sizeof(struct wire_handshake_sealed_welcome) == 88, "wire_handshake_sealed_welcome");

/* In clear: a refusal can only end a connection. */
struct wire_handshake_refusal {
	/*
	 * version: of the REQ, if the donor speaks it; else the donor's newest, and a client that
	 * speaks that asks again
	 */
	struct wire_handshake_head head;
	uint32_t status; /* a positive errno of Linux */
	char text[WIRE_TEXT]; /* a sentence for people, padded with NULs */
};
static_assert(sizeof(struct wire_handshake_refusal) == 128, "wire_handshake_refusal");

/* Private data of the REJ, at most 148 bytes. The connection manager may pad the end. */
struct wire_handshake_reject {
	struct wire_handshake_refusal refusal;
	uint8_t cookie[WIRE_COOKIE]; /* to bring in another REQ; older donors end before it */
};
static_assert(sizeof(struct wire_handshake_reject) == 144, "wire_handshake_reject");

union wire_handshake_message {
	struct wire_handshake_head head;
	struct wire_handshake_sealed_hello hello;
	struct wire_handshake_sealed_challenge challenge;
	struct wire_handshake_proof proof;
	struct wire_handshake_sealed_welcome welcome;
	struct wire_handshake_refusal refusal;
};
static_assert(sizeof(union wire_handshake_message) <= WIRE_HANDSHAKE_MAX, "wire_handshake_message");

/* The versions that an end speaks: all from @min to @max. */
struct wire_handshake_versions {
	uint16_t min, max;
};

/* Of this build. */
#define WIRE_VERSIONS ((struct wire_handshake_versions){ WIRE_VERSION_MIN, WIRE_VERSION })

/**
 * wire_handshake_connect_decode_as() - read the private data of a REQ
 * @data, @length: from the connection manager; may be NULL, 0
 * @versions: to accept
 *
 * Return: 0; -EPROTO not weir, too short or out of range; -EPROTONOSUPPORT another version:
 * @out->version.
 */
int wire_handshake_connect_decode_as(const void *data, size_t length,
				     const struct wire_handshake_versions *versions,
				     struct wire_handshake_connect *out);

/* The same for the versions of this build. */
int wire_handshake_connect_decode(const void *data, size_t length,
				  struct wire_handshake_connect *out);

/* Which version to reject a REQ with: its own, or the newest of @versions. */
uint16_t wire_handshake_reject_version(const struct wire_handshake_versions *versions,
				       uint16_t asked);

/*
 * After a REQ of version @asked and a REJ with version @offered: the version to ask for next.
 * Return: 0: none.
 */
uint16_t wire_handshake_next_version(const struct wire_handshake_versions *versions, uint16_t asked,
				     uint16_t offered);

/**
 * wire_handshake_reject_decode() - read the private data of a REJ
 * @data, @length: from the connection manager; may be NULL, 0
 *
 * Unprintable characters are masked; the text ends with a NUL. Another version is no error here:
 * head.version is the donor's version.
 *
 * Return: 0; -EPROTO not weir's.
 */
int wire_handshake_reject_decode(const void *data, size_t length,
				 struct wire_handshake_reject *out);

/* Whether a REQ or a REJ has a cookie. */
bool wire_handshake_has_cookie(const uint8_t cookie[WIRE_COOKIE]);

/**
 * wire_handshake_encode_as() - fill in the head of a message
 * @message: all but the head is set
 * @version: of the connection
 *
 * Return: the message's length in bytes, to send.
 */
size_t wire_handshake_encode_as(union wire_handshake_message *message,
				enum wire_handshake_type type, uint16_t version);

/* The same in the newest version. */
size_t wire_handshake_encode(union wire_handshake_message *message, enum wire_handshake_type type);

/**
 * wire_handshake_decode_as() - read one message of the handshake
 * @length: must match the type in the message exactly
 * @version: of the connection
 *
 * Return: 0; -EPROTO; -EPROTONOSUPPORT another version.
 */
int wire_handshake_decode_as(const void *data, size_t length, uint16_t version,
			     union wire_handshake_message *out);

/* The same in the newest version. */
int wire_handshake_decode(const void *data, size_t length, union wire_handshake_message *out);

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian");

#endif
