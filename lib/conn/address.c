/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/session.h>
#include "lib/conn/address.h"
#include "lib/base/error.h"

struct host_and_port {
	char host[256];
	char port[6];
};

/* A port is 0 to 65535 in decimal digits only. */
static bool is_port(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits && digits <= 5 && !text[digits] && atoi(text) <= 65535;
}

/* Whether a host of digits and dots is no IPv4 address. No resolver knows such a name. */
static bool is_bad_ipv4(const char *host)
{
	struct in_addr ignored;

	return *host && host[strspn(host, "0123456789.")] == '\0' && !inet_aton(host, &ignored);
}

/* Finds the end of the host and the start of the port; NULL: there is no port. */
static int split_host_and_port(const char *name, const char **host, size_t *host_length,
			       const char **port)
{
	const char *colon = strchr(name, ':');

	*host = name;
	*port = NULL;
	if (name[0] == '[') {
		const char *end = strchr(name, ']');

		if (!end || (end[1] && end[1] != ':'))
			return -EINVAL;
		*host = name + 1;
		*host_length = (size_t)(end - *host);
		if (end[1])
			*port = end + 2;
		return 0;
	}
	if (!colon || strchr(colon + 1, ':')) { /* two colons: a bare IPv6 address */
		*host_length = strlen(name);
		return 0;
	}
	*host_length = (size_t)(colon - name);
	*port = colon + 1;
	return 0;
}

static int parse_host_and_port(const char *name, const char *default_host,
			       struct host_and_port *host_and_port)
{
	const char *host, *port;
	size_t length;

	if (split_host_and_port(name, &host, &length, &port) ||
	    length >= sizeof(host_and_port->host))
		return -EINVAL;
	if (port && !is_port(port))
		return -EINVAL;
	if (!length && !default_host)
		return -EINVAL;
	if (length)
		snprintf(host_and_port->host, sizeof(host_and_port->host), "%.*s", (int)length,
			 host);
	else
		snprintf(host_and_port->host, sizeof(host_and_port->host), "%s", default_host);
	if (is_bad_ipv4(host_and_port->host))
		return -EINVAL;
	snprintf(host_and_port->port, sizeof(host_and_port->port), "%d",
		 port ? atoi(port) : WEIR_PORT_DEFAULT);
	return 0;
}

bool weir_address_is_well_formed(const char *name)
{
	struct host_and_port ignored;

	return !parse_host_and_port(name, "", &ignored);
}

/* Gives each host one address, whichever way it was written. */
static void unmap_ipv4(struct addrinfo *info)
{
	const struct sockaddr_in6 v6 = *(const struct sockaddr_in6 *)(const void *)info->ai_addr;
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = v6.sin6_port };

	if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
		return;
	memcpy(&v4.sin_addr, &v6.sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
	memcpy(info->ai_addr, &v4, sizeof(v4));
	info->ai_addrlen = sizeof(v4);
	info->ai_family = AF_INET;
}

static int look_up(const char *name, const char *default_host, int flags, struct addrinfo **list,
		   struct weir_error *error)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | flags,
	};
	struct host_and_port host_and_port;
	struct addrinfo *at;
	int rc;

	if (parse_host_and_port(name, default_host, &host_and_port))
		return weir_error_set(error, -EINVAL,
				      "'%s' is not an address: write host, host:port or [v6]:port",
				      name);
	rc = getaddrinfo(host_and_port.host, host_and_port.port, &hints, list);
	if (rc == EAI_MEMORY)
		return weir_error_set(error, -ENOMEM, "cannot look up '%s': out of memory",
				      host_and_port.host);
	if (rc && flags & AI_NUMERICHOST)
		return weir_error_set(error, -EINVAL,
				      "'%s' is a name: an address in numbers is needed",
				      host_and_port.host);
	if (rc)
		return weir_error_set(error, -EHOSTUNREACH, "cannot look up '%s': %s",
				      host_and_port.host, gai_strerror(rc));
	for (at = *list; at; at = at->ai_next)
		if (at->ai_family == AF_INET6)
			unmap_ipv4(at);
	return 0;
}

int weir_address_resolve(const char *name, const char *default_host, struct addrinfo **list,
			 struct weir_error *error)
{
	return look_up(name, default_host, 0, list, error);
}

int weir_address_parse_numeric(const char *name, struct addrinfo **list, struct weir_error *error)
{
	return look_up(name, NULL, AI_NUMERICHOST, list, error);
}

void weir_address_format(const struct sockaddr *address, char text[static WEIR_ADDRESS_MAX])
{
	const struct sockaddr_in6 *v6 = (const void *)address;
	const struct sockaddr_in *v4 = (const void *)address;
	char host[INET6_ADDRSTRLEN];

	if (address->sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
		snprintf(text, WEIR_ADDRESS_MAX, "[%s]:%u", host, ntohs(v6->sin6_port));
	} else if (address->sa_family == AF_INET) {
		inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
		snprintf(text, WEIR_ADDRESS_MAX, "%s:%u", host, ntohs(v4->sin_port));
	} else {
		snprintf(text, WEIR_ADDRESS_MAX, "(unknown)");
	}
}

bool weir_address_is_loopback(const struct sockaddr *address)
{
	const struct sockaddr_in6 *v6 = (const void *)address;
	const struct sockaddr_in *v4 = (const void *)address;

	if (address->sa_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

bool weir_address_should_try_next(int status)
{
	return status == -ECONNREFUSED || status == -EHOSTUNREACH || status == -ENODEV;
}
