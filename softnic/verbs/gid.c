// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * GIDs are in the order of discovery, after the link-local GID and before 127.0.0.1: programs take
 * the first of IPv4, which should reach other hosts.
 *
 * The kernel queues a notice of each address change before the changing call returns. So a query
 * checks for notices, and rereads all addresses only after a notice.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "async.h"
#include "softnic/loop/fork.h"
#include "gid.h"
#include "softnic/loop/loop.h"

/* The last entry is the last to be taken: programs find an empty one there. */
enum { OWN, FIRST_READ, LOOPBACK = SOFTNIC_GIDS_MAX - 2 };
enum { DEVICE_SHIFT = 8 };
enum { LOOPBACK_IFINDEX = 1 }; /* in every network namespace, see Linux include/net/flow.h */

#define LINK_LOCAL_PREFIX 0xfe80000000000000ull

static struct {
	pthread_mutex_t lock;
	int notices; /* a socket, or -1 */
	bool is_read;
	union ibv_gid gids[SOFTNIC_GIDS_MAX]; /* except OWN, which differs per port */
	uint32_t ifindex[SOFTNIC_GIDS_MAX]; /* interface of each address read */
} table = { .lock = PTHREAD_MUTEX_INITIALIZER, .notices = -1 };

static bool gid_is_empty(const union ibv_gid *gid)
{
	return !gid->global.subnet_prefix && !gid->global.interface_id;
}

static bool gid_is_same(const union ibv_gid *a, const union ibv_gid *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static void gid_from_ipv4(in_addr_t addr, union ibv_gid *gid)
{
	*gid = (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff } };
	memcpy(gid->raw + 12, &addr, sizeof(addr));
}

/* Returns false for other address families, and for an interface that is down. */
static bool gid_from_ifaddr(const struct ifaddrs *i, union ibv_gid *gid)
{
	const struct sockaddr_in *in = (const void *)i->ifa_addr;
	const struct sockaddr_in6 *in6 = (const void *)i->ifa_addr;

	if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
		return false;
	if (i->ifa_addr->sa_family == AF_INET)
		gid_from_ipv4(in->sin_addr.s_addr, gid);
	else if (i->ifa_addr->sa_family == AF_INET6)
		memcpy(gid->raw, &in6->sin6_addr, sizeof(gid->raw));
	else
		return false;
	return true;
}

/* "weir" with the local bit set. */
uint64_t gid_guid(uint32_t device, uint32_t port)
{
	return 0x0277656972000001ull + (device << DEVICE_SHIFT) + (port ? port - SOFTNIC_PORT : 0);
}

static void make_link_local(uint32_t device, uint32_t port, union ibv_gid *gid)
{
	gid->global.subnet_prefix = htobe64(LINK_LOCAL_PREFIX);
	gid->global.interface_id = htobe64(gid_guid(device, port));
}

/* Searches the addresses read from the host; -ENOENT if @gid is none. */
static int find_gid(const union ibv_gid *gid)
{
	int i;

	for (i = FIRST_READ; i < SOFTNIC_GIDS_MAX; i++)
		if (gid_is_same(&table.gids[i], gid))
			return i;
	return -ENOENT;
}

static bool is_host_address(const struct ifaddrs *all, const union ibv_gid *gid)
{
	union ibv_gid found;

	for (; all; all = all->ifa_next)
		if (gid_from_ifaddr(all, &found) && gid_is_same(&found, gid))
			return true;
	return false;
}

/* Removes the GIDs that are not in @all. Returns true if there were any. */
static bool remove_others(const struct ifaddrs *all)
{
	bool removed = false;
	int i;

	for (i = FIRST_READ; i < SOFTNIC_GIDS_MAX; i++) {
		if (i == LOOPBACK || gid_is_empty(&table.gids[i]) ||
		    is_host_address(all, &table.gids[i]))
			continue;
		memset(&table.gids[i], 0, sizeof(table.gids[i]));
		removed = true;
	}
	return removed;
}

/* Returns true if an address was added. Without room, an address is ignored. */
static bool add_new(const struct ifaddrs *all)
{
	static const union ibv_gid none;
	union ibv_gid gid;
	bool added = false;
	int at;

	for (; all; all = all->ifa_next) {
		if (!gid_from_ifaddr(all, &gid))
			continue;
		at = find_gid(&gid);
		if (at < 0) {
			at = find_gid(&none);
			if (at < 0)
				break;
			table.gids[at] = gid;
			added = true;
		}
		table.ifindex[at] = if_nametoindex(all->ifa_name);
	}
	return added;
}

static void read_addresses(void)
{
	struct ifaddrs *all;
	bool changed;

	gid_from_ipv4(htonl(INADDR_LOOPBACK), &table.gids[LOOPBACK]);
	if (getifaddrs(&all) < 0)
		return;
	changed = remove_others(all);
	changed |= add_new(all);
	freeifaddrs(all);
	if (changed && table.is_read)
		async_raise_ports(IBV_EVENT_GID_CHANGE);
	table.is_read = true;
}

/* Contents and lost notices do not matter: any notice means to reread. */
static bool has_pending_notice(void)
{
	bool found = false;
	char any[1];

	while (recv(table.notices, any, sizeof(any), MSG_DONTWAIT) >= 0 || errno == ENOBUFS ||
	       errno == EINTR)
		found = true;
	return found || errno != EAGAIN;
}

static void lock_refreshed(void)
{
	pthread_mutex_lock(&table.lock);
	if (has_pending_notice() || !table.is_read)
		read_addresses();
}

static void unlock_table(void)
{
	pthread_mutex_unlock(&table.lock);
}

static void netlink_ready(void *arg, uint32_t events)
{
	(void)arg;
	(void)events;
	lock_refreshed();
	unlock_table();
}

static int subscribe_netlink(void)
{
	const struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

void gid_watch(void)
{
	int fd = subscribe_netlink();

	if (fd >= 0 && softnic_loop_add(fd, EPOLLIN, netlink_ready, NULL)) {
		close(fd);
		fd = -1;
	}
	pthread_mutex_lock(&table.lock);
	table.notices = fd;
	pthread_mutex_unlock(&table.lock);
	netlink_ready(NULL, 0); /* the first read; later differences are changes */
}

/* In the child of a fork: the netlink socket is shared with the parent. */
static void reset_gids(void)
{
	if (table.notices >= 0)
		close(table.notices);
	table.notices = -1;
	table.is_read = false;
}

const struct fork_part gid_fork = { &table.lock, reset_gids };

int gid_get(uint32_t device, uint32_t port, uint32_t index, union ibv_gid *gid, uint32_t *ifindex)
{
	int rc = 0;

	if (index >= SOFTNIC_GIDS_MAX)
		return -ENODATA;
	if (index == OWN) {
		make_link_local(device, port, gid);
		if (ifindex)
			*ifindex = LOOPBACK_IFINDEX;
		return 0;
	}
	lock_refreshed();
	if (gid_is_empty(&table.gids[index]))
		rc = -ENODATA;
	else
		*gid = table.gids[index];
	if (!rc && ifindex)
		*ifindex = index == LOOPBACK ? LOOPBACK_IFINDEX : table.ifindex[index];
	unlock_table();
	return rc;
}

int gid_index(uint32_t device, uint32_t port, const union ibv_gid *gid)
{
	union ibv_gid own;
	int i;

	make_link_local(device, port, &own);
	if (gid_is_same(&own, gid))
		return OWN;
	if (gid_is_empty(gid))
		return -ENOENT;
	lock_refreshed();
	i = find_gid(gid);
	unlock_table();
	return i;
}

static bool is_own_of_some_port(const union ibv_gid *gid)
{
	uint64_t n = be64toh(gid->global.interface_id) - gid_guid(0, SOFTNIC_PORT);

	return gid->global.subnet_prefix == htobe64(LINK_LOCAL_PREFIX) &&
	       n >> DEVICE_SHIFT < SOFTNIC_DEVICES_MAX &&
	       n % (1 << DEVICE_SHIFT) < SOFTNIC_PORTS_MAX;
}

bool gid_is_here(const union ibv_gid *gid)
{
	return is_own_of_some_port(gid) || gid_index(0, SOFTNIC_PORT, gid) >= 0;
}

int softnic_gid_index(const union ibv_gid *gid)
{
	return gid_index(0, SOFTNIC_PORT, gid);
}
