/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names of donors, as people write them: "host", "host:port", "[v6]:port", ":port". */
#ifndef WEIR_LIB_CONN_ADDRESS_H
#define WEIR_LIB_CONN_ADDRESS_H

#include <netdb.h>
#include <stdbool.h>
#include <sys/socket.h>

#include <weir/error.h>

#define WEIR_ADDRESS_MAX 64 /* bytes of "address:port", NUL included */

/**
 * weir_address_resolve() - turn a name into socket addresses
 * @name: as above; an IPv6 address without a port may stand without brackets; one that stands for
 *	an IPv4 address (::ffff:a.b.c.d) is that
 * @default_host: what an empty host means; NULL refuses it
 * @list: receives the addresses, the best first; free it with freeaddrinfo()
 * @error: may be NULL
 *
 * Context: any thread; asks the resolver, so it may block.
 * Return: 0; -EINVAL malformed; -EHOSTUNREACH the name is not known; -ENOMEM.
 */
int weir_address_resolve(const char *name, const char *default_host, struct addrinfo **list,
			 struct weir_error *error);

/*
 * The same of an address in numbers: nobody is asked, and it does not block. -EINVAL: it is a name.
 */
int weir_address_parse_numeric(const char *name, struct addrinfo **list, struct weir_error *error);

/* Writes "address:port", or "[v6]:port". */
void weir_address_format(const struct sockaddr *address, char text[static WEIR_ADDRESS_MAX]);

bool weir_address_is_loopback(const struct sockaddr *address);

/*
 * One failed with @status: another of the same name may do better, unless the peer itself has
 * spoken.
 */
bool weir_address_should_try_next(int status);

/**
 * weir_address_explain_bind() - explain why nobody can listen at an address
 * @listen: as the user wrote it
 * @status: of the connection manager, a negative errno
 *
 * Return: the error: -EADDRINUSE, -EPERM or -ENODEV.
 */
int weir_address_explain_bind(const char *listen, int status, struct weir_error *error);

#endif
