/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sockets for offers: a Unix socket on this host, a UDP socket between hosts. An IP address has
 * the form of a GID: IPv4 addresses are mapped.
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

/* Opens a socket at the user's first free name. Return: the socket, or -1. */
int offer_socket_open_local(void);

/* Opens a socket at the first free port; IPv4 only on a host without IPv6. Return: the socket, or
 * -1. */
int offer_socket_open_hosts(void);

/* Is there a route to @ip from this host? */
bool offer_socket_reaches(const struct in6_addr *ip);

/* Is @ip an address of any interface of this host? */
bool offer_socket_is_own(const struct in6_addr *ip);

/* Sends to all processes of this user on this host. A lost offer is like one without an answer. */
void offer_socket_send_local(int fd, const struct wire_discovery_offer *offer);

/* Sends to each port of @to, from the address @from. */
void offer_socket_send_host(int fd, const struct wire_discovery_offer *offer,
			    const struct in6_addr *to, const struct in6_addr *from);

/*
 * Return: 0, with the offer and its sender, on another host or of this user here; -EPROTO not an
 * offer; -EPERM sent by another user.
 */
int offer_socket_receive(int fd, struct wire_discovery_offer *offer, struct offer_address *from);

/* Answers the sender of an offer; to another host from the address @from. */
void offer_socket_answer(int fd, const struct wire_discovery_offer *answer,
			 const struct offer_address *to, const struct in6_addr *from);

/* Did the offer arrive through this host's Unix socket? */
bool offer_socket_is_local(const struct offer_address *from);

/* Did the offer come from the host @ip? */
bool offer_socket_is_from(const struct offer_address *from, const struct in6_addr *ip);

#endif
