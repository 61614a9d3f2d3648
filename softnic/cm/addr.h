/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Socket addresses of the connection manager, and the test for addresses of this host.
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

/* Return: size of an IPv4 or IPv6 socket address in bytes, else 0; @sa may be NULL. */
socklen_t cm_addr_len(const struct sockaddr *sa);

/* Return: 0, or -EAFNOSUPPORT if @sa is neither IPv4 nor IPv6. */
int cm_addr_read(union cm_addr *addr, const struct sockaddr *sa);

bool cm_addr_is_any(const union cm_addr *addr);
bool cm_addr_is_loopback(const union cm_addr *addr);
bool cm_addr_is_multicast(const union cm_addr *addr);

/* True for an IPv6 link-local address without a scope, which names no interface. */
bool cm_addr_lacks_scope(const union cm_addr *addr);
in_port_t cm_addr_port(const union cm_addr *addr); /* big endian */
void cm_addr_set_port(union cm_addr *addr, in_port_t port);
void cm_addr_set_loopback(union cm_addr *addr); /* keeps family and port */

/* Set @src to the host's source address for @dst, or to loopback; the port of @src stays. */
void cm_addr_route(union cm_addr *src, const union cm_addr *dst);

/* True for loopback, or an address of one of this host's interfaces. */
bool cm_addr_is_local(const union cm_addr *addr);

/* Compare without ports; @sa may be NULL. */
bool cm_addr_is_same_host(const union cm_addr *addr, const struct sockaddr *sa);

/* Convert an IPv4-mapped IPv6 address (::ffff:a.b.c.d) to IPv4. */
void cm_addr_unmap(union cm_addr *addr);

/*
 * The GID of an address or group, as in RoCE v2: IPv4 is mapped to IPv6, IPv6 is unchanged. The
 * port has one GID for 127.0.0.0/8.
 */
void cm_addr_gid(const union cm_addr *addr, union ibv_gid *gid);

#endif
