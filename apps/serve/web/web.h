/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The page that a donor shows of itself: read-only, and whole without any other server. */
#ifndef WEIR_APPS_SERVE_WEB_WEB_H
#define WEIR_APPS_SERVE_WEB_WEB_H

#include "apps/http/http_server.h"

struct weir_donor;

/* The options of a command that shows the page; @member is a struct http_options. */
#define WEB_OPTIONS(type, member)                                                             \
	{ "web", 0, "WHERE",                                                                  \
	  "show a page with memory, traffic, latencies and the log:\n"                        \
	  "[ADDR:]PORT or unix:PATH, as for --metrics",                                       \
	  HTTP_ADDRESS(type, member.address) },                                               \
	{                                                                                     \
		"web-tls", 0, "FILE",                                                         \
			"certificate and key (PEM) for the page; required beyond loopback",   \
			HTTP_PEM(type, member.tls)                                            \
	}

/*
 * web_open(): as http_server_open(); the site is the donor's page. The caller closes the server
 * before the donor.
 */
int web_open(struct http_server **server, const char *cmd, const struct http_options *options,
	     struct weir_donor *donor);

#endif
