/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address handles, and the address header in front of a datagram.
 *
 * Within the host a datagram is routed by its QP number, which is unique there. The addresses tell
 * the receiver where to reply, and name multicast groups and other hosts.
 */
#ifndef WEIR_SOFTNIC_VERBS_AH_H
#define WEIR_SOFTNIC_VERBS_AH_H

#include "device.h"

struct av {
	union ibv_gid sgid, dgid;
	uint8_t sl, traffic_class, hop_limit;
	bool is_far; /* @dgid is of another host */
	uint32_t mtu, ifindex; /* if so: largest payload, and the interface of @sgid */
};

struct ah {
	struct ibv_ah ibv;
	struct av av;
};

static inline struct ah *to_ah(struct ibv_ah *ah)
{
	return (struct ah *)ah;
}

/**
 * ah_resolve() - find the source and destination address of a path
 * @attr: from the program; without a GRH the path leads from the port's first address to the same
 *	address, because all peers are on this host
 * @av: written on success
 *
 * Return: 0, or
 *	EINVAL       the port does not exist, or its GID table has no entry at sgid_index;
 *	EHOSTUNREACH the destination is no multicast group, and no route leads there;
 *	EIO          the device is gone.
 */
int ah_resolve(const struct ibv_context *context, const struct ibv_ah_attr *attr, struct av *av);

/** ah_is_multicast() - does an address name a multicast group? */
bool ah_is_multicast(const union ibv_gid *gid);

/** ah_is_between_ipv4() - do datagrams on this path carry an IPv4 header? */
bool ah_is_between_ipv4(const struct av *av);

/**
 * ah_fill_grh() - fill in the first 40 bytes of the receiver's buffer
 *
 * As in RoCE: an IPv6 header, or, between IPv4 addresses, 20 zero bytes and an IPv4 header.
 */
void ah_fill_grh(const struct av *av, uint32_t length, struct ibv_grh *grh);

#endif
