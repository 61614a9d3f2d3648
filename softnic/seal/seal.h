/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sealed packets between two softnics: encrypted and authenticated, with a key for each direction
 * of each connection.
 *
 *	BTH (12 bytes)   opcode SEAL_OPCODE, and the destination queue pair
 *	counter (8)      big-endian, another one for each packet of a direction
 *	encrypted        the RoCE packet, from its own BTH to its padding
 *	tag (16)         of AES-GCM or Poly1305
 *
 * The opcode is one of the manufacturer's (C0 to FF), so a dissector shows a packet with unknown
 * contents. Everything before the encrypted part is authenticated. The tag replaces the ICRC. So an
 * observer sees hosts, queue pairs, numbers of packets, sizes and times; not operations, keys or
 * addresses. It sees no PSN but the first one of each end, which agree.h and the connection manager
 * send in clear text.
 *
 * The nonce is the counter. Not the PSN: a packet that is sent again may have other contents, such
 * as its request for an acknowledgement. A receiver takes each counter once. Counters far behind
 * the highest are refused.
 *
 * Context of all: serialised by the queue pair.
 */
#ifndef WEIR_SOFTNIC_SEAL_SEAL_H
#define WEIR_SOFTNIC_SEAL_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softnic/seal/sodium_calls.h"

enum {
	SEAL_OPCODE = 0xc1,
	SEAL_KEY_BYTES = 32,
	SEAL_HEADER_BYTES = 20, /* BTH and counter */
	SEAL_TAG_BYTES = 16,
	SEAL_EXTRA_BYTES = SEAL_HEADER_BYTES + SEAL_TAG_BYTES,
	SEAL_WINDOW = 2048, /* counters below the highest that may still come */
};

/*
 * A key seals this many packets. The next key of the direction is a hash of it. Both ends know from
 * a packet's counter which key it needs, so they exchange nothing. The keys are forgotten as they
 * are replaced: a key that leaks opens no earlier packets. A receiver keeps the key before the
 * current one for packets in disorder.
 *
 * The number keeps a key of AES-GCM below 2^35 blocks of 16 bytes, for which an attacker's
 * advantage is at most 2^-57 (RFC 9001, B.1.1). ChaCha20-Poly1305 has no such bound. Of forged
 * packets, 2^36 against ChaCha20-Poly1305 and 2^52 against AES-GCM give that advantage (RFC 9001,
 * 6.6). The 64 bits of the counters last for thousands of years.
 */
#define SEAL_KEY_PACKETS (1ull << 26)

/* An offer has the bits of all ciphers that its sender can use. A connection has one cipher. */
enum seal_cipher {
	SEAL_NONE = 0,
	SEAL_AES_256_GCM = 1,
	SEAL_CHACHA20_POLY1305 = 2,
};

/* A key of one direction, ready for use. @number: the first is 0 */
struct seal_key {
	crypto_aead_aes256gcm_state aes;
	uint8_t bytes[SEAL_KEY_BYTES];
	uint64_t number;
};

/**
 * struct seal - the keys of a connection, and the counters of its packets
 * @out: the key for sending
 * @in: the keys for receiving, each at its number modulo 2
 * @sent: counter of the last packet sent; the first is 1
 * @highest: counter accepted
 * @seen: a bit for each counter of the window, at the counter modulo SEAL_WINDOW
 * @forged: packets refused for their tag; @replayed: for their counter
 */
struct seal {
	struct seal_key out, in[2];
	enum seal_cipher cipher;
	uint64_t sent, highest;
	uint64_t seen[SEAL_WINDOW / 64];
	uint64_t forged, replayed;
};

/** seal_ciphers() - the ciphers that this host can run; 0: none, because libsodium is missing */
uint8_t seal_ciphers(void);

/** seal_choose() - the better cipher of a set of bits, or SEAL_NONE */
enum seal_cipher seal_choose(uint8_t ciphers);

/** seal_cipher_name() - for people and logs */
const char *seal_cipher_name(enum seal_cipher cipher);

/**
 * seal_init() - a connection that has not sent or received
 * @cipher: one of seal_ciphers()
 * @out, @in: fresh keys; a key is never used for two connections or directions
 */
void seal_init(struct seal *s, enum seal_cipher cipher, const uint8_t out[SEAL_KEY_BYTES],
	       const uint8_t in[SEAL_KEY_BYTES]);

/**
 * seal_close() - seal a packet in place
 * @at: the RoCE packet is at @at + SEAL_HEADER_BYTES; there is room for the tag behind it
 * @size: of the RoCE packet
 *
 * Return: the size of the sealed packet.
 */
size_t seal_close(struct seal *s, uint32_t dest_qpn, uint8_t *at, size_t size);

/** seal_is_sealed() - does a packet claim to be sealed? */
bool seal_is_sealed(const uint8_t *bytes, size_t size);

/** seal_dest_qpn() - the queue pair that a sealed packet names */
uint32_t seal_dest_qpn(const uint8_t *bytes);

/**
 * seal_is_own() - has this end sealed a packet, and lately?
 * @bytes: as a host quotes them that has refused the packet; overwritten
 *
 * Return: false if not, and if @bytes lack the packet's end.
 */
bool seal_is_own(const struct seal *s, uint8_t *bytes, size_t size);

/**
 * seal_open() - check and decrypt a packet in place
 * @bytes, @size: a packet for which seal_is_sealed() holds
 *
 * A refused packet changes no state but a counter of refusals; its bytes may be overwritten.
 *
 * Return: the size of the RoCE packet at @bytes + SEAL_HEADER_BYTES; 0: refused.
 */
size_t seal_open(struct seal *s, uint8_t *bytes, size_t size);

#endif
