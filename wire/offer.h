/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How two programs that run under "weir run --unload" find out that they can unload to each other.
 * For each of its connected QPs, a process asks at the address that the peer's GID is: one datagram
 * to each of a few UDP ports, at which every such process has one. Who owns the other QP, and sees
 * that it is connected to the asker's, answers with a buffer of wire/unload.h. An offer that is
 * repeated gets the same answer; one that nobody answers means that nothing is unloaded.
 *
 * A return is not a message here: the target writes it, by RDMA, to where the offer says, and its
 * complement behind it: devices promise no more than that bytes arrive.
 *
 * Little-endian, naturally aligned, no padding, sizes asserted.
 */
#ifndef WEIR_WIRE_OFFER_H
#define WEIR_WIRE_OFFER_H

#include "wire/platform.h"
#include "wire/unload.h"

#define WIRE_OFFER_MAGIC 0x756c6e75u /* "unlu" */
#define WIRE_OFFER_VERSION 1
#define WIRE_OFFER_PORT 18680 /* the first of */
#define WIRE_OFFER_PORTS 32
#define WIRE_OFFER_GID 16

enum wire_offer_type {
	WIRE_OFFER = 1,
	WIRE_OFFER_TAKEN, /* @qpn to @rkey are the answerer's */
	WIRE_OFFER_REFUSED, /* it is the owner, but unloads nothing here */
};

/**
 * struct wire_offer - one datagram, either way
 * @nonce: the asker's; an answer repeats it
 * @addr: an offer's: of the 8 bytes, aligned, that returns are written to; an answer's: of the
 * buffer
 * @from_qpn, @to_qpn: the program's QPs, the asker's and the other one; an answer repeats them
 * @qpn, @psn: of the QP that is to be connected, and its first PSN
 * @rkey: for @addr
 * @from_gid: the asker's; an answer repeats it
 */
struct wire_offer {
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
	uint8_t from_gid[WIRE_OFFER_GID];
};
static_assert(sizeof(struct wire_offer) == 64, "wire_offer");

/*
 * Copies @size bytes that came to @out. Return: 0; -EPROTO it is none; -EPROTONOSUPPORT a later
 * one's.
 */
static inline int wire_offer_decode(const void *from, size_t size, struct wire_offer *out)
{
	if (size != sizeof(*out))
		return -EPROTO;
	memcpy(out, from, sizeof(*out));
	if (out->magic != WIRE_OFFER_MAGIC)
		return -EPROTO;
	if (out->version != WIRE_OFFER_VERSION)
		return -EPROTONOSUPPORT;
	return out->type >= WIRE_OFFER && out->type <= WIRE_OFFER_REFUSED ? 0 : -EPROTO;
}

/* A return as it is written. */
static inline uint64_t wire_return_word(const struct wire_return *r)
{
	uint32_t word = wire_return_encode(r);

	return word | (uint64_t)~word << 32;
}

/* Whether all of a return has been written to @word; then it is copied to @out. */
static inline bool wire_return_whole(uint64_t word, struct wire_return *out)
{
	if ((uint32_t)word != ~(uint32_t)(word >> 32))
		return false;
	*out = wire_return_decode((uint32_t)word);
	return true;
}

#endif
