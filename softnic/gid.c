// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Read once a process, in a fixed order: the link-local one, 127.0.0.1, the others.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>

#include "gid.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static union ibv_gid table[SOFTNIC_GIDS_MAX];
static uint32_t entries;

static void add(const union ibv_gid *gid)
{
	uint32_t i;

	for (i = 0; i < entries; i++)
		if (!memcmp(&table[i], gid, sizeof(*gid)))
			return;
	if (entries < SOFTNIC_GIDS_MAX)
		table[entries++] = *gid;
}

static void add_ipv4(in_addr_t addr)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	memcpy(gid.raw + 12, &addr, sizeof(addr));
	add(&gid);
}

static void add_address(const struct sockaddr *sa)
{
	const struct sockaddr_in *in = (const void *)sa;
	const struct sockaddr_in6 *in6 = (const void *)sa;
	union ibv_gid gid;

	if (sa->sa_family == AF_INET) {
		add_ipv4(in->sin_addr.s_addr);
	} else if (sa->sa_family == AF_INET6) {
		memcpy(gid.raw, &in6->sin6_addr, sizeof(gid.raw));
		add(&gid);
	}
}

/* "weir" with the local bit set. */
uint64_t gid_guid(uint32_t device, uint32_t port)
{
	return 0x0277656972000001ull + (device << 8) + (port ? port - SOFTNIC_PORT : 0);
}

static void link_local(uint32_t device, uint32_t port, union ibv_gid *gid)
{
	gid->global.subnet_prefix = htobe64(0xfe80000000000000ull);
	gid->global.interface_id = htobe64(gid_guid(device, port));
}

static void read_addresses(void)
{
	struct ifaddrs *all, *i;
	union ibv_gid own;

	link_local(0, SOFTNIC_PORT, &own);
	add(&own);
	add_ipv4(htonl(INADDR_LOOPBACK));
	if (getifaddrs(&all) < 0)
		return;
	for (i = all; i; i = i->ifa_next)
		if (i->ifa_addr && (i->ifa_flags & IFF_UP))
			add_address(i->ifa_addr);
	freeifaddrs(all);
}

uint32_t gid_count(void)
{
	pthread_once(&once, read_addresses);
	return entries;
}

int gid_get(uint32_t device, uint32_t port, uint32_t index, union ibv_gid *gid)
{
	if (index >= gid_count())
		return -ENODATA;
	if (index)
		*gid = table[index];
	else
		link_local(device, port, gid);
	return 0;
}

int softnic_gid_index(const union ibv_gid *gid)
{
	uint32_t i, n = gid_count();

	for (i = 0; i < n; i++)
		if (!memcmp(&table[i], gid, sizeof(*gid)))
			return i;
	return -ENOENT;
}
