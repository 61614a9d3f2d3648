/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Serves metrics over HTTP at /metrics, in a thread of its own. Counters are read
 * when somebody asks, so a process that nobody asks pays nothing.
 */
#ifndef WEIR_APPS_METRICS_METRICS_SERVER_H
#define WEIR_APPS_METRICS_METRICS_SERVER_H

#include "apps/http/http_server.h"
#include "apps/metrics/exposition.h"

/* The options of a command that serves metrics; @member is a struct http_options. */
#define METRICS_OPTIONS(type, member) METRICS_OPTIONS_CALLED("metrics", "metrics-tls", type, member)
#define METRICS_OPTIONS_CALLED(address_option, tls_option, type, member)                 \
	{ address_option, 0, "WHERE",                                                    \
	  "serve metrics over HTTP at /metrics: [ADDR:]PORT or unix:PATH;\n"             \
	  "default ADDR 127.0.0.1; port 0: any free port",                               \
	  HTTP_ADDRESS(type, member.address) },                                          \
	{                                                                                \
		tls_option, 0, "FILE",                                                   \
			"certificate and key (PEM) for these metrics; required beyond\n" \
			"loopback",                                                      \
			HTTP_PEM(type, member.tls)                                       \
	}

struct metrics_server;

/**
 * metrics_server_open() - start to serve, and print the URL on standard error
 * @server: receives the server; NULL if @options names no address
 * @cmd: argv[0] of the command, for messages
 * @options: kept until metrics_server_close()
 * @collect: writes all metrics; runs in the server's thread, one call at a time
 * @arg: passed to @collect
 *
 * The caller owes a metrics_server_close(). The server's thread has the caller's signal mask.
 *
 * Return: 0, or an exit status after a message.
 */
int metrics_server_open(struct metrics_server **server, const char *cmd,
			const struct http_options *options,
			void (*collect)(struct exposition *x, void *arg), void *arg);

/* After the return, @collect is not called any more. @server may be NULL. */
void metrics_server_close(struct metrics_server *server);

#endif
