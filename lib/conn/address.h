/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses of donors as people write them: "host", "host:port", "[v6]:port", ":port". */
#ifndef WEIR_LIB_CONN_ADDRESS_H
#define WEIR_LIB_CONN_ADDRESS_H

#include <netdb.h>
#include <stdbool.h>
#include <sys/socket.h>

#include <weir/error.h>

#define WEIR_ADDRESS_MAX 64 /* bytes of "address:port", NUL included */

/**
 * weir_address_resolve() - turn a name into socket addresses
 * @name: as above; brackets are optional for an IPv6 address without a port; ::ffff:a.b.c.d becomes
 *	the IPv4 address
 * @default_host: stands for an empty host; NULL refuses an empty host
 * @list: receives the addresses, the best first; free it with freeaddrinfo()
 * @error: may be NULL
 *
 * Context: any thread; asks the resolver, so it may block.
 * Return: 0; -EINVAL malformed; -EHOSTUNREACH the name is not known; -ENOMEM.
 */
int weir_address_resolve(const char *name, const char *default_host, struct addrinfo **list,
			 struct weir_error *error);

/*
 * Parses a numeric address without asking the resolver; never blocks. Return: also -EINVAL for a
 * name.
 */
int weir_address_parse_numeric(const char *name, struct addrinfo **list, struct weir_error *error);

/* Whether a name is written as above, with or without a host. Asks no resolver. */
bool weir_address_is_well_formed(const char *name);

/* Writes "address:port", or "[v6]:port". */
void weir_address_format(const struct sockaddr *address, char text[static WEIR_ADDRESS_MAX]);

bool weir_address_is_loopback(const struct sockaddr *address);

/*
 * After a failure with @status, another address of the name may work, unless the peer itself
 * refused.
 */
bool weir_address_should_try_next(int status);

#endif
