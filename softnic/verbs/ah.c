// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Address handles hold resolved addresses; the verbs that make handles from a received header
 * find the local address to reply from.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip.h>
#include <stdlib.h>
#include <string.h>

#include "ah.h"
#include "softnic/strict/strict.h"
#include "softnic/control/config.h"
#include "softnic/control/fault.h"
#include "gid.h"
#include "pd.h"
#include "softnic/shm/shared.h"
#include "softnic/udp/udp.h"

enum { GRH_VERSION = 6u << 28, UDP = 17, BASE_HEADERS = 8 + 12 + 8 + 4 };

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

bool ah_is_multicast(const union ibv_gid *gid)
{
	return is_ipv4(gid) ? IN_MULTICAST((uint32_t)gid->raw[12] << 24) : gid->raw[0] == 0xff;
}

bool ah_is_between_ipv4(const struct av *av)
{
	return is_ipv4(&av->sgid) && is_ipv4(&av->dgid);
}

/* The header's checksum field must be 0. */
static uint16_t ipv4_checksum(const void *header, size_t length)
{
	const uint8_t *p = header;
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < length; i += 2)
		sum += p[i] << 8 | p[i + 1];
	sum = (sum >> 16) + (sum & 0xffff);
	return htons(~(sum + (sum >> 16)));
}

static void fill_ipv4(const struct av *av, uint32_t length, struct ibv_grh *grh)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tos = av->traffic_class,
		.tot_len = htons(sizeof(ip) + BASE_HEADERS + length),
		.ttl = av->hop_limit,
		.protocol = UDP,
	};

	memcpy(&ip.saddr, av->sgid.raw + 12, sizeof(ip.saddr));
	memcpy(&ip.daddr, av->dgid.raw + 12, sizeof(ip.daddr));
	ip.check = ipv4_checksum(&ip, sizeof(ip));
	memset(grh, 0, sizeof(*grh));
	memcpy((uint8_t *)grh + sizeof(*grh) - sizeof(ip), &ip, sizeof(ip));
}

void ah_fill_grh(const struct av *av, uint32_t length, struct ibv_grh *grh)
{
	if (ah_is_between_ipv4(av)) {
		fill_ipv4(av, length, grh);
		return;
	}
	*grh = (struct ibv_grh){
		.version_tclass_flow = htonl(GRH_VERSION | (uint32_t)av->traffic_class << 20),
		.paylen = htons(BASE_HEADERS + length),
		.next_hdr = UDP,
		.hop_limit = av->hop_limit,
		.sgid = av->sgid,
		.dgid = av->dgid,
	};
}

/* With the option near=0 only an address without a route, such as the port's own, is near. */
int ah_resolve(const struct ibv_context *context, const struct ibv_ah_attr *attr, struct av *av)
{
	uint32_t device = device_index(context->device);
	uint32_t index = attr->is_global ? attr->grh.sgid_index : 0;
	struct udp_route route = { 0 };
	bool is_here;

	if (fault_is_gone())
		return EIO;
	if (!device_has_port(attr->port_num) ||
	    gid_get(device, attr->port_num, index, &av->sgid, &av->ifindex))
		return EINVAL;
	av->dgid = attr->is_global ? attr->grh.dgid : av->sgid;
	is_here = gid_is_here(&av->dgid);
	av->sl = attr->sl;
	av->traffic_class = attr->grh.traffic_class;
	av->hop_limit = attr->is_global && attr->grh.hop_limit ? attr->grh.hop_limit : 64;
	av->is_far = false;
	av->mtu = 0;
	if (ah_is_multicast(&av->dgid) || (is_here && config_get()->value[OPTION_NEAR]))
		return 0;
	av->is_far = !udp_route(&av->dgid, &av->sgid, av->ifindex, &route);
	av->mtu = route.mtu;
	return av->is_far || is_here ? 0 : EHOSTUNREACH;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ah *ah;
	struct av av;
	int rc;

	rc = ah_resolve(pd->context, attr, &av);
	if (!rc && !attr->is_global)
		rc = EINVAL; /* RoCE demands a GRH (annex A17), and the kernel checks for one */
	if (rc) {
		errno = rc;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	ah->av = av;
	pd_use(to_pd(pd));
	return &ah->ibv;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	if (strict_is_destroyed(ah->context, "ibv_destroy_ah()"))
		return EINVAL;
	strict_ah_ends(ah);
	pd_release(to_pd(ah->pd));
	strict_free(to_ah(ah), &ah->context);
	return 0;
}

static void read_grh(const struct ibv_grh *grh, union ibv_gid *from, union ibv_gid *to)
{
	const uint8_t *ip = (const uint8_t *)grh + sizeof(*grh) - sizeof(struct iphdr);

	if (ntohl(grh->version_tclass_flow) >> 28 == 6) {
		*from = grh->sgid;
		*to = grh->dgid;
		return;
	}
	*from = *to = (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff } };
	memcpy(from->raw + 12, ip + offsetof(struct iphdr, saddr), 4);
	memcpy(to->raw + 12, ip + offsetof(struct iphdr, daddr), 4);
}

static int find_own_gid_index(const struct ibv_context *context, uint8_t port,
			      const union ibv_gid *to, const union ibv_gid *from)
{
	uint32_t device = device_index(context->device);
	int index = gid_index(device, port, to);

	return index < 0 ? gid_index(device, port, from) : index;
}

/*
 * A reply's source is the destination of the received datagram. That address may not be in this
 * port's table: it may name a group, or another port, because the QP number alone routes datagrams.
 * Then the source is the sender's address, if the sender is on this host, or index 0.
 */
int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct udp_route route;
	union ibv_gid from, to;
	int index;

	memset(attr, 0, sizeof(*attr));
	attr->port_num = port;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	read_grh(grh, &from, &to);
	index = find_own_gid_index(context, port, &to, &from);
	attr->is_global = 1;
	attr->grh.dgid = from;
	attr->grh.hop_limit = 64;
	attr->grh.sgid_index = index < 0 ? 0 : index;
	if (gid_is_here(&from) || !udp_route(&from, NULL, 0, &route))
		return 0;
	errno = EINVAL;
	return -1;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}
