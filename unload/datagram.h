/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The UDP socket that offers go through. An IP address is given as in a GID: an IPv4 one mapped.
 *
 * Context of all: with watch_life.
 */
#ifndef UNLOAD_DATAGRAM_H
#define UNLOAD_DATAGRAM_H

#include <netinet/in.h>

#include "wire/offer.h"

union datagram_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* At the first of the ports that is free; of IPv4 alone where there is no IPv6. Return: it, or -1. */
int datagram_open(void);

/* Whether there is a way to it from here. */
bool datagram_reaches(const struct in6_addr *ip);

/*
 * To each of the ports of @to, from the address @from; NULL: the host's choice. One that is lost is
 * as one that nobody answers.
 */
void datagram_send_all(int fd, const struct wire_offer *offer, const struct in6_addr *to,
		       const struct in6_addr *from);

/* Return: 0, what came and whence; -EPROTO it is nothing of ours. */
int datagram_receive(int fd, struct wire_offer *offer, union datagram_address *from);

/* Back to where one came from. */
void datagram_answer(int fd, const struct wire_offer *answer, const union datagram_address *to);

/* Whether it is of that host. */
bool datagram_is_from(const union datagram_address *from, const struct in6_addr *ip);

#endif
