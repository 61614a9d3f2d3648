/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The listening socket of a metrics server. */
#ifndef WEIR_APPS_METRICS_METRICS_SOCKET_H
#define WEIR_APPS_METRICS_METRICS_SOCKET_H

#include <limits.h>
#include <stdbool.h>

#define METRICS_NAME_MAX (PATH_MAX + 16)

/**
 * metrics_socket_open() - listen
 * @cmd: argv[0] of the command, for messages
 * @address: "[ADDR:]PORT" or "unix:PATH"; a stale socket at PATH is replaced
 * @has_tls: other addresses than loopback are allowed
 * @fd: receives the socket
 * @name: receives "ADDR:PORT" with the real port, or "unix:PATH" with an absolute path, because
 *	weir mount leaves the current folder
 *
 * The caller owes a close() and then a metrics_socket_remove().
 *
 * Return: 0, or an exit status after a message.
 */
int metrics_socket_open(const char *cmd, const char *address, bool has_tls, int *fd,
			char name[METRICS_NAME_MAX]);

/* Removes the path, if @name has one. Somebody else closes the socket. */
void metrics_socket_remove(const char *name);

bool metrics_socket_is_unix(const char *address);

#endif
