/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client that opens connections and sends no requests must not keep scrapes and probes out. So
 * the server refuses no newcomer: it shuts down the connection whose latest request is oldest. A
 * limit for each address comes first, so that a client at one address crowds out only itself.
 */
#include "apps/http/http_connections.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define IPV6_NETWORK_BYTES 8 /* a host has a whole network of this prefix */

struct http_connection {
	struct http_connection *previous, *next;
	struct MHD_Connection *of;
	unsigned char address[IPV6_NETWORK_BYTES]; /* zeroes: a Unix socket */
	bool is_shut;
};

static void link_last(struct http_connections *all, struct http_connection *c)
{
	c->next = NULL;
	c->previous = all->last;
	*(all->last ? &all->last->next : &all->first) = c;
	all->last = c;
}

static void unlink_one(struct http_connections *all, struct http_connection *c)
{
	*(c->previous ? &c->previous->next : &all->first) = c->next;
	*(c->next ? &c->next->previous : &all->last) = c->previous;
}

static void set_address(struct http_connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c->of, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *at = info ? info->client_addr : NULL;

	if (at && at->sa_family == AF_INET)
		memcpy(c->address, &((const struct sockaddr_in *)(const void *)at)->sin_addr,
		       sizeof(struct in_addr));
	else if (at && at->sa_family == AF_INET6)
		memcpy(c->address, &((const struct sockaddr_in6 *)(const void *)at)->sin6_addr,
		       sizeof(c->address));
}

/* The server's thread sees the end of the stream, and closes the connection. */
static void shut(struct http_connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c->of, MHD_CONNECTION_INFO_CONNECTION_FD);

	c->is_shut = true;
	if (info)
		shutdown(info->connect_fd, SHUT_RDWR);
}

static void make_room(struct http_connections *all, const struct http_connection *newcomer)
{
	struct http_connection *idlest = NULL, *neighbour = NULL;
	unsigned int count = 0, neighbours = 0;

	for (struct http_connection *c = all->last; c; c = c->previous) {
		if (c->is_shut)
			continue;
		idlest = c;
		count++;
		if (memcmp(c->address, newcomer->address, sizeof(c->address)))
			continue;
		neighbour = c;
		neighbours++;
	}
	if (neighbours >= HTTP_CONNECTIONS_OF_ADDRESS_MAX)
		shut(neighbour);
	else if (count >= HTTP_CONNECTIONS_MAX)
		shut(idlest);
}

/* Without memory the connection is in no list, and only its timeout ends it. */
void http_connections_notify(void *arg, struct MHD_Connection *connection, void **state,
			     enum MHD_ConnectionNotificationCode code)
{
	struct http_connections *all = arg;
	struct http_connection *c = *state;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (c)
			unlink_one(all, c);
		free(c);
		*state = NULL;
		return;
	}
	c = calloc(1, sizeof(*c));
	*state = c;
	if (!c)
		return;
	c->of = connection;
	set_address(c);
	make_room(all, c);
	link_last(all, c);
}

void http_connections_touch(struct http_connections *all, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct http_connection *c = info ? info->socket_context : NULL;

	if (!c)
		return;
	unlink_one(all, c);
	link_last(all, c);
}
