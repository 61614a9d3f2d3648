// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A socket that connects sends nothing, but the kernel looks up its route: the source address and
 * the MTU of the way.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softnic/control/config.h"
#include "softnic/udp/packet_size.h"
#include "softnic/udp/socket.h"

static void fill(struct sockaddr_in6 *at, const union ibv_gid *gid, uint32_t ifindex, uint16_t port)
{
	*at = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
	memcpy(&at->sin6_addr, gid->raw, sizeof(at->sin6_addr));
	if (IN6_IS_ADDR_LINKLOCAL(&at->sin6_addr))
		at->sin6_scope_id = ifindex;
}

static bool is_unicast(const struct in6_addr *at)
{
	if (IN6_IS_ADDR_V4MAPPED(at))
		return !IN_MULTICAST((uint32_t)at->s6_addr[12] << 24) && at->s6_addr[12];
	return !IN6_IS_ADDR_MULTICAST(at) && !IN6_IS_ADDR_UNSPECIFIED(at);
}

static int link_mtu(int fd, bool is_ipv4)
{
	int mtu = 0;
	socklen_t size = sizeof(mtu);

	if (is_ipv4)
		getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &size);
	else
		getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &size);
	return mtu;
}

static bool look_up(int fd, const struct sockaddr_in6 *from, const struct sockaddr_in6 *to,
		    struct udp_route *route)
{
	struct sockaddr_in6 found;
	socklen_t size = sizeof(found);
	bool is_ipv4 = IN6_IS_ADDR_V4MAPPED(&to->sin6_addr);
	const int no = 0;

	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if ((from && bind(fd, (const struct sockaddr *)from, sizeof(*from)) < 0) ||
	    connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&found, &size) < 0)
		return false;
	memcpy(route->from.gid.raw, &found.sin6_addr, sizeof(found.sin6_addr));
	route->from.ifindex = found.sin6_scope_id;
	route->mtu = udp_payload(link_mtu(fd, is_ipv4), is_ipv4,
				  config_get()->value[OPTION_ENCRYPT]);
	return route->mtu && socket_is_ipv4(&route->from.gid) == is_ipv4;
}

int udp_route(const union ibv_gid *gid, const union ibv_gid *from_gid, uint32_t ifindex,
	       struct udp_route *route)
{
	struct sockaddr_in6 to, from;
	bool is_found;
	int fd;

	fill(&to, gid, ifindex, UDP_ROCE_PORT);
	if (from_gid)
		fill(&from, from_gid, ifindex, 0);
	if (!is_unicast(&to.sin6_addr))
		return -EHOSTUNREACH;
	fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
	if (fd < 0)
		return -EHOSTUNREACH;
	is_found = look_up(fd, from_gid ? &from : NULL, &to, route);
	close(fd);
	route->from.port = udp.port;
	return is_found ? 0 : -EHOSTUNREACH;
}
