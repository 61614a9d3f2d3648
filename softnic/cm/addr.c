// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Socket addresses. For the source address of a route, a UDP socket connects to the destination,
 * and the kernel picks the source.
 */
#include <ifaddrs.h>
#include <string.h>
#include <unistd.h>

#include "addr.h"
#include "softnic/verbs/verbs.h"

socklen_t cm_addr_len(const struct sockaddr *sa)
{
	if (sa && sa->sa_family == AF_INET)
		return sizeof(struct sockaddr_in);
	if (sa && sa->sa_family == AF_INET6)
		return sizeof(struct sockaddr_in6);
	return 0;
}

int cm_addr_read(union cm_addr *addr, const struct sockaddr *sa)
{
	socklen_t len = cm_addr_len(sa);

	if (!len)
		return -EAFNOSUPPORT;
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, sa, len);
	return 0;
}

bool cm_addr_is_any(const union cm_addr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		return addr->in.sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&addr->in6.sin6_addr);
}

bool cm_addr_is_multicast(const union cm_addr *addr)
{
	union cm_addr plain = *addr;

	cm_addr_unmap(&plain);
	if (plain.sa.sa_family == AF_INET)
		return IN_MULTICAST(ntohl(plain.in.sin_addr.s_addr));
	return IN6_IS_ADDR_MULTICAST(&plain.in6.sin6_addr);
}

bool cm_addr_lacks_scope(const union cm_addr *addr)
{
	return addr->sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&addr->in6.sin6_addr) &&
	       !addr->in6.sin6_scope_id;
}

in_port_t cm_addr_port(const union cm_addr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		return addr->in.sin_port;
	return addr->sa.sa_family == AF_INET6 ? addr->in6.sin6_port : 0;
}

void cm_addr_set_port(union cm_addr *addr, in_port_t port)
{
	if (addr->sa.sa_family == AF_INET)
		addr->in.sin_port = port;
	else
		addr->in6.sin6_port = port;
}

void cm_addr_set_loopback(union cm_addr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		addr->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		addr->in6.sin6_addr = in6addr_loopback;
}

void cm_addr_route(union cm_addr *src, const union cm_addr *dst)
{
	union cm_addr to = *dst, from = { .sa.sa_family = dst->sa.sa_family };
	socklen_t len = sizeof(from);
	in_port_t port = cm_addr_port(src);
	int s = socket(dst->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (!cm_addr_port(&to))
		cm_addr_set_port(&to, htons(1)); /* sends nothing; connect() refuses port 0 */
	if (s < 0 || connect(s, &to.sa, cm_addr_len(&to.sa)) < 0 ||
	    getsockname(s, &from.sa, &len) < 0)
		cm_addr_set_loopback(&from);
	if (s >= 0)
		close(s);
	*src = from;
	cm_addr_set_port(src, port);
}

void cm_addr_unmap(union cm_addr *addr)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = cm_addr_port(addr) };

	if (addr->sa.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&addr->in6.sin6_addr))
		return;
	memcpy(&in.sin_addr, &addr->in6.sin6_addr.s6_addr[12], sizeof(in.sin_addr));
	memset(addr, 0, sizeof(*addr));
	addr->in = in;
}

bool cm_addr_is_loopback(const union cm_addr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		return ntohl(addr->in.sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&addr->in6.sin6_addr);
}

bool cm_addr_is_same_host(const union cm_addr *a, const struct sockaddr *sa)
{
	union cm_addr b;

	if (cm_addr_read(&b, sa) || a->sa.sa_family != b.sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == b.in.sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b.in6.sin6_addr) &&
	       (!IN6_IS_ADDR_LINKLOCAL(&a->in6.sin6_addr) ||
		a->in6.sin6_scope_id == b.in6.sin6_scope_id);
}

bool cm_addr_is_local(const union cm_addr *addr)
{
	union cm_addr plain = *addr;
	struct ifaddrs *all, *i;
	bool found = false;

	cm_addr_unmap(&plain);
	if (cm_addr_is_loopback(&plain))
		return true;
	if (getifaddrs(&all) < 0)
		return false;
	for (i = all; i && !found; i = i->ifa_next)
		found = cm_addr_is_same_host(&plain, i->ifa_addr);
	freeifaddrs(all);
	return found;
}

void cm_addr_gid(const union cm_addr *addr, union ibv_gid *gid)
{
	union cm_addr plain = *addr;

	cm_addr_unmap(&plain);
	if (cm_addr_is_loopback(&plain))
		cm_addr_set_loopback(&plain);
	memset(gid, 0, sizeof(*gid));
	if (plain.sa.sa_family == AF_INET) {
		gid->raw[10] = gid->raw[11] = 0xff;
		memcpy(&gid->raw[12], &plain.in.sin_addr, sizeof(plain.in.sin_addr));
	} else {
		memcpy(gid->raw, &plain.in6.sin6_addr, sizeof(gid->raw));
	}
}
