/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address handles, and the addresses that a datagram carries in front.
 *
 * Datagrams find their way by the number of the queue pair, which is unique on the host;
 * the addresses are what the receiver answers to, and what names a multicast group.
 */
#ifndef WEIR_SOFTNIC_VERBS_AH_H
#define WEIR_SOFTNIC_VERBS_AH_H

#include "device.h"

struct av {
	union ibv_gid sgid, dgid;
	uint8_t sl, traffic_class, hop_limit;
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
 * ah_resolve() - from where to where a path leads
 * @attr: as the program gave it; without a GRH it leads from the port's first address to itself,
 *	for there is but this host
 * @av: written
 *
 * Return: 0; EINVAL if that port has no such address, EHOSTUNREACH if the other one is neither a
 * group's nor of this host, EIO if the device is gone.
 */
int ah_resolve(const struct ibv_context *context, const struct ibv_ah_attr *attr, struct av *av);

/** ah_is_multicast() - does an address name a group? */
bool ah_is_multicast(const union ibv_gid *gid);

/** ah_is_between_ipv4() - is the header of its datagrams an IPv4 header? */
bool ah_is_between_ipv4(const struct av *av);

/**
 * ah_fill_grh() - what lies in the first 40 bytes of the receiver's buffer
 *
 * As RoCE has it: an IPv6 header, or, between IPv4 addresses, 20 bytes of nothing and an
 * IPv4 header.
 */
void ah_fill_grh(const struct av *av, uint32_t length, struct ibv_grh *grh);

#endif
