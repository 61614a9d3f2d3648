/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How two programs that run under "weir run --unload" find out that they can unload to each other.
 * For each of its connected QPs, a process asks where the peer's GID is. Who owns the other QP, and
 * sees that it is connected to the asker's, answers with a buffer of wire/unload.h. An offer that
 * is repeated gets the same answer; one that nobody answers means that nothing is unloaded.
 *
 * On one host offers go through Unix sockets, of which the kernel says whose they are: both ends
 * are the same user's. Between hosts they are datagrams to each of a few UDP ports, and both ends
 * have the same key; without one nobody is asked there. Every offer and answer carries a MAC under
 * that key, or under the empty one, over itself and what only the two ends of the program's
 * connection know: the PSN that it began with.
 *
 * The asker's first message into the buffer is an empty one, which asks for a return: before that
 * has come nothing is unloaded. A return is not a message here: the target writes it, by RDMA, to
 * where the offer says, and its complement behind it: devices promise no more than that bytes
 * arrive.
 *
 * Little-endian, naturally aligned, no padding, sizes asserted.
 */
#ifndef WEIR_WIRE_DISCOVERY_H
#define WEIR_WIRE_DISCOVERY_H

#include "wire/handshake.h"
#include "wire/platform.h"
#include "wire/unload.h"

#define WIRE_DISCOVERY_MAGIC 0x756c6e75u /* "unlu" */
#define WIRE_DISCOVERY_VERSION 2
#define WIRE_DISCOVERY_PORT 18680 /* the first of */
#define WIRE_DISCOVERY_PORTS 32
#define WIRE_DISCOVERY_NAMES 256 /* of Unix sockets */
#define WIRE_DISCOVERY_GID 16

enum wire_discovery_type {
	WIRE_DISCOVERY_OFFER = 1,
	WIRE_DISCOVERY_ACCEPTED, /* @qpn to @rkey are the answerer's */
	WIRE_DISCOVERY_REFUSED, /* it is the owner, but unloads nothing here */
};

/* The name of a Unix socket, abstract: of the user's number, and which of them it is. */
#define WIRE_DISCOVERY_NAME "weir-unload-%u-%u"

/**
 * struct wire_discovery_offer - one datagram, either way
 * @nonce: the asker's; an answer repeats it
 * @addr: an offer's: of the 8 bytes, aligned, that returns are written to; an answer's: of the
 * buffer
 * @from_qpn, @to_qpn: the program's QPs, the asker's and the other one; an answer repeats them
 * @qpn, @psn: of the QP that is to be connected, and its first PSN
 * @rkey: for @addr
 * @from_gid: the asker's; an answer repeats it
 * @mac: HMAC-SHA-256 over all before it, and struct wire_discovery_secret
 */
struct wire_discovery_offer {
	uint32_t magic;
	uint16_t version; /* at this place in all versions */
	uint16_t type;
	uint64_t nonce;
	uint64_t addr;
	uint32_t from_qpn;
	uint32_t to_qpn;
	uint32_t qpn;
	uint32_t psn;
	uint32_t rkey;
	uint32_t reserved; /* 0 */
	uint8_t from_gid[WIRE_DISCOVERY_GID];
	uint8_t mac[WIRE_MAC];
};
static_assert(sizeof(struct wire_discovery_offer) == 96, "wire_discovery_offer");

/**
 * struct wire_discovery_secret - what the MAC is over besides, and is not sent
 * @psn: that the asker's QP sends with first; the other one knows no more before it is in RTS,
 *	where some never go
 */
struct wire_discovery_secret {
	uint32_t psn;
};

/*
 * Copies @size bytes that came to @out. Return: 0; -EPROTO it is none; -EPROTONOSUPPORT a later
 * one's.
 */
static inline int wire_discovery_offer_decode(const void *from, size_t size,
					      struct wire_discovery_offer *out)
{
	if (size != sizeof(*out))
		return -EPROTO;
	memcpy(out, from, sizeof(*out));
	if (out->magic != WIRE_DISCOVERY_MAGIC)
		return -EPROTO;
	if (out->version != WIRE_DISCOVERY_VERSION)
		return -EPROTONOSUPPORT;
	return out->type >= WIRE_DISCOVERY_OFFER && out->type <= WIRE_DISCOVERY_REFUSED ? 0 :
											  -EPROTO;
}

/* A return as it is written. */
static inline uint64_t wire_discovery_return_word(const struct wire_unload_return *r)
{
	uint32_t word = wire_unload_return_encode(r);

	return word | (uint64_t)~word << 32;
}

/* Whether all of a return has been written to @word; then it is copied to @out. */
static inline bool wire_discovery_return_is_whole(uint64_t word, struct wire_unload_return *out)
{
	if ((uint32_t)word != ~(uint32_t)(word >> 32))
		return false;
	*out = wire_unload_return_decode((uint32_t)word);
	return true;
}

#endif
