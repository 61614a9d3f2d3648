/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How two programs under "weir run --unload" discover each other. For each of its connected QPs, a
 * process sends an offer to the host of the peer's GID. The process that owns the other QP, if
 * connected to the asker's, answers with a buffer of wire/unload.h. A repeated offer gets the same
 * answer. Without an answer nothing is unloaded.
 *
 * On one host, offers go through Unix sockets, and the kernel vouches that both ends are the same
 * user's. Between hosts, offers are datagrams to each of a few UDP ports, and both ends need the
 * same key; a process without a key sends none. Every offer and answer carries a MAC under the key,
 * or under the empty key. The MAC covers the datagram and a secret of the program's connection: its
 * initial PSN.
 *
 * The asker's first message into the buffer is empty and requests a return; nothing is unloaded
 * before the return arrives. Returns are words written by RDMA to the address in the offer.
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
#define WIRE_DISCOVERY_PORT 18680 /* the first port */
#define WIRE_DISCOVERY_PORTS 32
#define WIRE_DISCOVERY_NAMES 256 /* of Unix sockets */
#define WIRE_DISCOVERY_GID 16

enum wire_discovery_type {
	WIRE_DISCOVERY_OFFER = 1,
	WIRE_DISCOVERY_ACCEPTED, /* @qpn to @rkey are the answerer's */
	WIRE_DISCOVERY_REFUSED, /* the owner of the QP does not unload here */
};

/* The name of an abstract Unix socket: user id, index. */
#define WIRE_DISCOVERY_NAME "weir-unload-%u-%u"

/**
 * struct wire_discovery_offer - one datagram, either way
 * @nonce: the asker's; an answer repeats it
 * @addr: in an offer: 8 aligned bytes to write returns to; in an answer: the buffer
 * @from_qpn, @to_qpn: the program's QPs, the asker's first; an answer repeats both
 * @qpn, @psn: the QP to connect, and its first PSN
 * @rkey: for @addr
 * @from_gid: the asker's; an answer repeats it
 * @mac: HMAC-SHA-256 over all fields before and struct wire_discovery_secret
 */
struct wire_discovery_offer {
	uint32_t magic;
	uint16_t version; /* at this offset in all versions */
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
 * struct wire_discovery_secret - covered by the MAC but not sent
 * @psn: first send PSN of the asker's QP; the other end knows no more before RTS, a state that some
 *	QPs never enter
 */
struct wire_discovery_secret {
	uint32_t psn;
};

/*
 * Copies a datagram of @size bytes to @out.
 * Return: 0; -EPROTO malformed; -EPROTONOSUPPORT another version.
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

#endif
