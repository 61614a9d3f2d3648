/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Serves pages over HTTP, read-only, by libmicrohttpd, in a thread of its own. */
#ifndef WEIR_APPS_HTTP_HTTP_SERVER_H
#define WEIR_APPS_HTTP_HTTP_SERVER_H

#include "apps/config/usable.h"
#include "apps/http/http_socket.h"

#include <stdbool.h>
#include <stdio.h>

/**
 * struct http_options - where a command serves
 * @address: "[ADDR:]PORT" or "unix:PATH"; NULL: nowhere
 * @tls: a PEM file with certificate and key; NULL: plain HTTP
 */
struct http_options {
	const char *address, *tls;
};

/* The kinds of options that fill it: see CMDLINE_TEXT(). */
#define HTTP_ADDRESS(type, member) \
	CMDLINE_CHECKED(type, member, http_socket_is_well_formed, HTTP_SOCKET_EXPECTED), \
	.is_usable = usable_page_address
#define HTTP_PEM(type, member) CMDLINE_TEXT(type, member), .is_usable = usable_pem

/**
 * struct http_answer - an answer while a page is written
 * @accept: the request's header Accept, or NULL
 * @type: to be set to the answer's Content-Type, a constant
 * @out: receives the body
 */
struct http_answer {
	const char *accept, *type;
	FILE *out;
};

/* A page; @write runs in the server's thread, one call at a time. */
struct http_page {
	const char *path;
	void (*write)(struct http_answer *answer, void *arg);
};

struct http_header {
	const char *name, *value;
};

/**
 * struct http_site - the pages of a server
 * @what: name of the pages for messages, such as "metrics"
 * @home: the path that the message with the URL names
 * @pages: ends with an entry without a path
 * @headers: of each answer; ends with an entry without a name; NULL: none
 * @arg: passed to the pages
 *
 * Without TLS, requests for the name of a host other than localhost are refused. Otherwise the
 * owner of a name could point the name at this host's loopback, and a page from there could read
 * this one.
 */
struct http_site {
	const char *what, *home;
	const struct http_page *pages;
	const struct http_header *headers;
	void *arg;
};

struct http_server;

/**
 * http_server_open() - start to serve, and print the URL on standard error
 * @server: receives the server; NULL if @options names no address
 * @cmd: argv[0] of the command, for messages
 * @options: kept until http_server_close()
 * @site: copied; its pages and headers are kept
 *
 * The caller owes a http_server_close(). The server's thread has the caller's signal mask.
 *
 * Return: 0, or an exit status after a message.
 */
int http_server_open(struct http_server **server, const char *cmd,
		     const struct http_options *options, const struct http_site *site);

/* After the return, no page is written any more. @server may be NULL. */
void http_server_close(struct http_server *server);

#endif
