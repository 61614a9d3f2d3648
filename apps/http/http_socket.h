/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The listening socket of an HTTP server. */
#ifndef WEIR_APPS_HTTP_HTTP_SOCKET_H
#define WEIR_APPS_HTTP_HTTP_SOCKET_H

#include <limits.h>
#include <stdbool.h>
#include <weir/error.h>

#define HTTP_NAME_MAX (PATH_MAX + 16)

/**
 * http_socket_open() - listen
 * @cmd: argv[0] of the command, for messages
 * @what: name of the pages for messages, such as "metrics"
 * @address: "[ADDR:]PORT" or "unix:PATH"; a stale socket at PATH is replaced
 * @has_tls: other addresses than loopback are allowed
 * @fd: receives the socket
 * @name: receives "ADDR:PORT" with the real port, or "unix:PATH" with an absolute path, because
 *	weir mount leaves the current folder
 *
 * The caller owes a close() and then a http_socket_remove().
 *
 * Return: 0, or an exit status after a message.
 */
int http_socket_open(const char *cmd, const char *what, const char *address, bool has_tls, int *fd,
		     char name[HTTP_NAME_MAX]);

/* Removes the path, if @name has one. Somebody else closes the socket. */
void http_socket_remove(const char *name);

bool http_socket_is_unix(const char *address);

/* Whether @address is "[ADDR:]PORT" or "unix:PATH". Asks no resolver. */
bool http_socket_is_well_formed(const char *address);
#define HTTP_SOCKET_EXPECTED "[ADDR:]PORT or unix:PATH"

/* Whether two servers cannot serve at these well-formed addresses at a time. Asks the resolver. */
bool http_socket_is_same(const char *one, const char *other);

/*
 * Checks a well-formed address without a socket. Return: 0; -EACCES beyond loopback and without
 * TLS; errors of weir_address_resolve().
 */
int http_socket_check(const char *address, bool has_tls, struct weir_error *error);

#endif
