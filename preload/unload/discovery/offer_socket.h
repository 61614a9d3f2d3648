/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sockets that offers go through: a Unix one on this host, a UDP one between hosts. An IP
 * address is given as in a GID: an IPv4 one mapped.
 *
 * Context of all: with tracked_qp_life.
 */
#ifndef WEIR_PRELOAD_UNLOAD_DISCOVERY_OFFER_SOCKET_H
#define WEIR_PRELOAD_UNLOAD_DISCOVERY_OFFER_SOCKET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/un.h>

#include "wire/discovery.h"

struct offer_address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un here;
	};
	socklen_t size;
};

/* At the first of the user's names that is free. Return: it, or -1. */
int offer_socket_open_local(void);

/* At the first of the ports that is free; of IPv4 alone where there is no IPv6. Return: it, or -1. */
int offer_socket_open_hosts(void);

/* Whether there is a way to it from here. */
bool offer_socket_reaches(const struct in6_addr *ip);

/* Whether it is an address of this host, of whatever interface. */
bool offer_socket_is_own(const struct in6_addr *ip);

/* To all of this user's on this host. One that is lost is as one that nobody answers. */
void offer_socket_send_local(int fd, const struct wire_discovery_offer *offer);

/* To each of the ports of @to, from the address @from. */
void offer_socket_send_host(int fd, const struct wire_discovery_offer *offer,
			    const struct in6_addr *to, const struct in6_addr *from);

/*
 * Return: 0, what came and whence: from another host, or from this user here; -EPROTO it is nothing
 * of ours; -EPERM it is another user's.
 */
int offer_socket_receive(int fd, struct wire_discovery_offer *offer, struct offer_address *from);

/* Back to where one came from; to another host from the address @from. */
void offer_socket_answer(int fd, const struct wire_discovery_offer *answer,
			 const struct offer_address *to, const struct in6_addr *from);

/* Whether it came through this host's Unix socket. */
bool offer_socket_is_local(const struct offer_address *from);

/* Whether it is of that host. */
bool offer_socket_is_from(const struct offer_address *from, const struct in6_addr *ip);

#endif
