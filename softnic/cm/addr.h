/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connection manager's addresses, and which of them are this host's.
 */
#ifndef WEIR_SOFTNIC_CM_ADDR_H
#define WEIR_SOFTNIC_CM_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>

union ibv_gid;

union cm_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* Return: bytes of an IPv4 or IPv6 socket address, 0 for any other or NULL. */
socklen_t cm_addr_len(const struct sockaddr *sa);

/* Return: 0, or -EAFNOSUPPORT: @sa is neither IPv4 nor IPv6. */
int cm_addr_read(union cm_addr *addr, const struct sockaddr *sa);

bool cm_addr_is_any(const union cm_addr *addr);
bool cm_addr_is_loopback(const union cm_addr *addr);
bool cm_addr_is_multicast(const union cm_addr *addr);

/* IPv6 link-local without a scope: it could be on any interface. */
bool cm_addr_lacks_scope(const union cm_addr *addr);
in_port_t cm_addr_port(const union cm_addr *addr); /* big endian */
void cm_addr_set_port(union cm_addr *addr, in_port_t port);
void cm_addr_set_loopback(union cm_addr *addr); /* keeps family and port */

/* Where the host would send to @dst from, or loopback; @src keeps its port. */
void cm_addr_route(union cm_addr *src, const union cm_addr *dst);

/* Loopback, or an address of one of this host's interfaces. */
bool cm_addr_is_local(const union cm_addr *addr);

/* IPv4, also when written as IPv6 (::ffff:a.b.c.d), becomes plain IPv4. */
void cm_addr_unmap(union cm_addr *addr);

/*
 * As RoCE v2 has it, groups too: IPv4 is mapped, IPv6 is what it is. The port has one GID for all
 * of 127.0.0.0/8.
 */
void cm_addr_gid(const union cm_addr *addr, union ibv_gid *gid);

#endif
