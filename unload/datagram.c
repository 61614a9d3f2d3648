/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unload/datagram.h"

static bool is_ipv4_only; /* this host has no IPv6 */

static union datagram_address address_at(const struct in6_addr *ip, int port)
{
	union datagram_address at = { .v6 = { .sin6_family = AF_INET6, .sin6_addr = *ip,
					      .sin6_port = htons((uint16_t)port) } };

	if (!is_ipv4_only)
		return at;
	at.v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	memcpy(&at.v4.sin_addr, &ip->s6_addr[12], sizeof(at.v4.sin_addr));
	return at;
}

static int socket_make(int family)
{
	return socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static int bind_any(int fd)
{
	union datagram_address address;
	int port;

	for (port = WIRE_OFFER_PORT; port < WIRE_OFFER_PORT + WIRE_OFFER_PORTS; port++) {
		address = address_at(&in6addr_any, port);
		if (!bind(fd, &address.any, sizeof(address)))
			return 0;
	}
	return -1;
}

int datagram_open(void)
{
	int zero = 0, fd = socket_make(AF_INET6);

	is_ipv4_only = fd < 0;
	if (is_ipv4_only)
		fd = socket_make(AF_INET);
	else
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (fd >= 0 && bind_any(fd)) {
		close(fd);
		return -1;
	}
	return fd;
}

bool datagram_reaches(const struct in6_addr *ip)
{
	return !IN6_IS_ADDR_LINKLOCAL(ip) && (!is_ipv4_only || IN6_IS_ADDR_V4MAPPED(ip));
}

union source {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

static void source_set(struct msghdr *message, union source *source, const struct in6_addr *from)
{
	struct in6_pktinfo v6 = { .ipi6_addr = *from };
	struct in_pktinfo v4 = { .ipi_ifindex = 0 };
	bool is_v4 = IN6_IS_ADDR_V4MAPPED(from);
	size_t size = is_v4 ? sizeof(v4) : sizeof(v6);

	memcpy(&v4.ipi_spec_dst, &from->s6_addr[12], sizeof(v4.ipi_spec_dst));
	source->head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(size),
					 .cmsg_level = is_v4 ? IPPROTO_IP : IPPROTO_IPV6,
					 .cmsg_type = is_v4 ? IP_PKTINFO : IPV6_PKTINFO };
	memcpy(CMSG_DATA(&source->head), is_v4 ? (void *)&v4 : (void *)&v6, size);
	message->msg_control = source;
	message->msg_controllen = CMSG_SPACE(size);
}

void datagram_send_all(int fd, const struct wire_offer *offer, const struct in6_addr *to,
		       const struct in6_addr *from)
{
	struct wire_offer copy = *offer;
	struct iovec bytes = { &copy, sizeof(copy) };
	union datagram_address address;
	struct msghdr message = { .msg_name = &address, .msg_namelen = sizeof(address),
				  .msg_iov = &bytes, .msg_iovlen = 1 };
	union source source;
	int port;

	if (from)
		source_set(&message, &source, from);
	for (port = WIRE_OFFER_PORT; port < WIRE_OFFER_PORT + WIRE_OFFER_PORTS; port++) {
		address = address_at(to, port);
		sendmsg(fd, &message, 0);
	}
}

int datagram_receive(int fd, struct wire_offer *offer, union datagram_address *from)
{
	socklen_t from_size = sizeof(*from);
	uint8_t bytes[sizeof(*offer) + 1];
	ssize_t n = recvfrom(fd, bytes, sizeof(bytes), 0, &from->any, &from_size);

	return n < 0 || wire_offer_decode(bytes, (size_t)n, offer) ? -EPROTO : 0;
}

void datagram_answer(int fd, const struct wire_offer *answer, const union datagram_address *to)
{
	sendto(fd, answer, sizeof(*answer), 0, &to->any, sizeof(*to));
}

bool datagram_is_from(const union datagram_address *from, const struct in6_addr *ip)
{
	if (from->any.sa_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&from->v6.sin6_addr, ip);
	return IN6_IS_ADDR_V4MAPPED(ip) &&
	       !memcmp(&from->v4.sin_addr, &ip->s6_addr[12], sizeof(from->v4.sin_addr));
}
