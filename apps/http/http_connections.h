/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The open connections of an HTTP server: a newcomer takes the place of the idlest. */
#ifndef WEIR_APPS_HTTP_HTTP_CONNECTIONS_H
#define WEIR_APPS_HTTP_HTTP_CONNECTIONS_H

#include <microhttpd.h>

#define HTTP_CONNECTIONS_MAX 256u
#define HTTP_CONNECTIONS_OF_ADDRESS_MAX 128u

struct http_connection;

/**
 * struct http_connections - the connections of a server, by their latest requests
 *
 * Serialised by the thread of the server: libmicrohttpd calls from that thread only.
 */
struct http_connections {
	struct http_connection *first, *last;
};

/*
 * For MHD_OPTION_NOTIFY_CONNECTION; @arg is the struct http_connections. If the address of a new
 * connection has HTTP_CONNECTIONS_OF_ADDRESS_MAX others, or the server HTTP_CONNECTIONS_MAX, the
 * idlest of these is shut down.
 */
void http_connections_notify(void *arg, struct MHD_Connection *connection, void **state,
			     enum MHD_ConnectionNotificationCode code);

/* Makes the connection the busiest: it has sent a whole request. */
void http_connections_touch(struct http_connections *all, struct MHD_Connection *connection);

#endif
