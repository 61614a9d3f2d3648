/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fd/passed_fd.h"
#include "preload/unload/discovery/offer_socket.h"

static bool is_ipv4_only; /* this host has no IPv6 */

static struct offer_address address_at(const struct in6_addr *ip, int port)
{
	struct offer_address at = { .v6 = { .sin6_family = AF_INET6,
					    .sin6_addr = *ip,
					    .sin6_port = htons((uint16_t)port) },
				    .size = sizeof(at.v6) };

	if (!is_ipv4_only)
		return at;
	at.v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	memcpy(&at.v4.sin_addr, &ip->s6_addr[12], sizeof(at.v4.sin_addr));
	at.size = sizeof(at.v4);
	return at;
}

static struct offer_address name_at(int number)
{
	struct offer_address at = { .here = { .sun_family = AF_UNIX } };
	int length = snprintf(at.here.sun_path + 1, sizeof(at.here.sun_path) - 1,
			      WIRE_DISCOVERY_NAME, (unsigned int)getuid(), (unsigned int)number);

	at.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	return at;
}

static int socket_make(int family)
{
	return socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Return: @fd, bound to a free address; -1: no address is free, and @fd is closed. */
static int bind_any(int fd, bool is_here)
{
	int i, count = is_here ? WIRE_DISCOVERY_NAMES : WIRE_DISCOVERY_PORTS;
	struct offer_address address;

	for (i = 0; fd >= 0 && i < count; i++) {
		address = is_here ? name_at(i) : address_at(&in6addr_any, WIRE_DISCOVERY_PORT + i);
		if (!bind(fd, &address.any, address.size))
			return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* The kernel attaches the sender's credentials from the first datagram on. */
int offer_socket_open_local(void)
{
	int one = 1, fd = socket_make(AF_UNIX);

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one))) {
		close(fd);
		return -1;
	}
	passed_fd_refuse(fd);
	return bind_any(fd, true);
}

int offer_socket_open_hosts(void)
{
	int zero = 0, fd = socket_make(AF_INET6);

	is_ipv4_only = fd < 0;
	if (is_ipv4_only)
		fd = socket_make(AF_INET);
	else
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	return bind_any(fd, false);
}

bool offer_socket_reaches(const struct in6_addr *ip)
{
	return !IN6_IS_ADDR_LINKLOCAL(ip) && (!is_ipv4_only || IN6_IS_ADDR_V4MAPPED(ip));
}

static bool is_ip(const struct sockaddr *at, const struct in6_addr *ip)
{
	const struct sockaddr_in6 *v6 = (const void *)at;
	const struct sockaddr_in *v4 = (const void *)at;

	if (at->sa_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&v6->sin6_addr, ip);
	return at->sa_family == AF_INET && IN6_IS_ADDR_V4MAPPED(ip) &&
	       !memcmp(&v4->sin_addr, &ip->s6_addr[12], sizeof(v4->sin_addr));
}

bool offer_socket_is_own(const struct in6_addr *ip)
{
	struct ifaddrs *all, *at;
	bool is_own = false;

	if (getifaddrs(&all))
		return false;
	for (at = all; at && !is_own; at = at->ifa_next)
		is_own = at->ifa_addr && is_ip(at->ifa_addr, ip);
	freeifaddrs(all);
	return is_own;
}

union source_cmsg {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

static void source_set(struct msghdr *message, union source_cmsg *source,
		       const struct in6_addr *from)
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

/* Sends to another host, from the address that the receiver expects. */
static void send_from(int fd, const struct wire_discovery_offer *offer,
		      const struct offer_address *to, const struct in6_addr *from)
{
	struct wire_discovery_offer copy = *offer;
	struct offer_address address = *to;
	struct iovec bytes = { &copy, sizeof(copy) };
	struct msghdr message = { .msg_name = &address.any,
				  .msg_namelen = address.size,
				  .msg_iov = &bytes,
				  .msg_iovlen = 1 };
	union source_cmsg source;

	source_set(&message, &source, from);
	sendmsg(fd, &message, 0);
}

void offer_socket_send_local(int fd, const struct wire_discovery_offer *offer)
{
	struct offer_address address;
	int i;

	for (i = 0; i < WIRE_DISCOVERY_NAMES; i++) {
		address = name_at(i);
		sendto(fd, offer, sizeof(*offer), 0, &address.any, address.size);
	}
}

void offer_socket_send_host(int fd, const struct wire_discovery_offer *offer,
			    const struct in6_addr *to, const struct in6_addr *from)
{
	struct offer_address address;
	int port;

	for (port = WIRE_DISCOVERY_PORT; port < WIRE_DISCOVERY_PORT + WIRE_DISCOVERY_PORTS;
	     port++) {
		address = address_at(to, port);
		send_from(fd, offer, &address, from);
	}
}

/* Checks the sender of a Unix datagram by the kernel's credentials. */
static bool is_own_user(struct msghdr *message)
{
	const struct cmsghdr *head = CMSG_FIRSTHDR(message);
	struct ucred who;

	if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_CREDENTIALS)
		return false;
	memcpy(&who, CMSG_DATA(head), sizeof(who));
	return who.uid == getuid();
}

int offer_socket_receive(int fd, struct wire_discovery_offer *offer, struct offer_address *from)
{
	uint8_t bytes[sizeof(*offer) + 1];
	struct iovec room = { bytes, sizeof(bytes) };
	union passed_fd_control sender;
	struct msghdr message = { .msg_name = &from->any,
				  .msg_namelen = sizeof(from->here),
				  .msg_iov = &room,
				  .msg_iovlen = 1,
				  .msg_control = &sender,
				  .msg_controllen = sizeof(sender) };
	ssize_t n;

	from->any.sa_family = AF_UNSPEC; /* a sender without a name leaves this unset */
	n = passed_fd_recvmsg(fd, &message, 0);
	from->size = message.msg_namelen;
	if (n >= 0)
		passed_fd_take(&message, NULL, 0);
	if (n < 0 || wire_discovery_offer_decode(bytes, (size_t)n, offer))
		return -EPROTO;
	return offer_socket_is_local(from) && !is_own_user(&message) ? -EPERM : 0;
}

void offer_socket_answer(int fd, const struct wire_discovery_offer *answer,
			 const struct offer_address *to, const struct in6_addr *from)
{
	if (offer_socket_is_local(to))
		sendto(fd, answer, sizeof(*answer), 0, &to->any, to->size);
	else
		send_from(fd, answer, to, from);
}

bool offer_socket_is_local(const struct offer_address *from)
{
	return from->any.sa_family == AF_UNIX;
}

bool offer_socket_is_from(const struct offer_address *from, const struct in6_addr *ip)
{
	return is_ip(&from->any, ip);
}
