/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/http/http_server.h"

#include "apps/common/cmd.h"
#include "apps/http/http_connections.h"
#include "apps/http/http_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Beside HTTP_CONNECTIONS_MAX: those that are shut down, until the thread closes them. */
#define CONNECTIONS_CLOSING_MAX 64u
#define CONNECTION_BYTES_MAX (16u << 10)
#define TIMEOUT_S 5u /* without a byte from the client */
#define TLS_BYTES_MAX (1u << 20)

static const char plain_type[] = "text/plain; charset=utf-8";

struct http_server {
	const struct http_options *options;
	struct http_site site;
	struct MHD_Daemon *daemon;
	struct http_connections connections;
	char *tls;
	int fd;
	char name[HTTP_NAME_MAX];
};

/* Queues a response, and drops the caller's reference to it. */
static enum MHD_Result send_response(const struct http_server *server,
				     struct MHD_Connection *connection, unsigned int status,
				     const char *type, struct MHD_Response *response)
{
	enum MHD_Result result;

	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	for (const struct http_header *h = server->site.headers; h && h->name; h++)
		MHD_add_response_header(response, h->name, h->value);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result send_plain(const struct http_server *server,
				  struct MHD_Connection *connection, unsigned int status,
				  const char *text)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);

	return response ? send_response(server, connection, status, plain_type, response) : MHD_NO;
}

static enum MHD_Result send_page(const struct http_server *server,
				 struct MHD_Connection *connection, const struct http_page *page)
{
	struct http_answer answer = {
		.accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
						      MHD_HTTP_HEADER_ACCEPT),
		.type = plain_type,
	};
	struct MHD_Response *response;
	char *text = NULL;
	size_t length = 0;

	answer.out = open_memstream(&text, &length);
	if (!answer.out)
		return MHD_NO;
	page->write(&answer, server->site.arg);
	if (fclose(answer.out)) {
		free(text);
		return MHD_NO;
	}
	response = MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(text);
		return MHD_NO;
	}
	return send_response(server, connection, MHD_HTTP_OK, answer.type, response);
}

/* Whether a header Host, "NAME[:PORT]", names an address or localhost. */
static bool is_address(const char *host)
{
	char name[INET6_ADDRSTRLEN + 1];
	struct in6_addr address;
	bool has_brackets = host[0] == '[';
	size_t length = strcspn(host + has_brackets, has_brackets ? "]" : ":");

	if (length >= sizeof(name))
		return false;
	memcpy(name, host + has_brackets, length);
	name[length] = '\0';
	if (has_brackets)
		return host[1 + length] == ']' && inet_pton(AF_INET6, name, &address) == 1;
	return !strcasecmp(name, "localhost") || inet_pton(AF_INET, name, &address) == 1;
}

static bool is_misdirected(const struct http_server *server, struct MHD_Connection *connection)
{
	const char *host;

	if (server->tls || http_socket_is_unix(server->name))
		return false;
	host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
	return !host || !is_address(host);
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *length, void **state)
{
	static int seen; /* its address marks a request whose headers have been seen */
	struct http_server *server = arg;
	char other[128];

	(void)version;
	(void)data;
	http_connections_touch(&server->connections, connection);
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return send_plain(server, connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				  "GET or HEAD only\n");
	if (!*state) {
		*state = &seen;
		return MHD_YES;
	}
	*length = 0;
	if (is_misdirected(server, connection))
		return send_plain(server, connection, MHD_HTTP_FORBIDDEN,
				  "ask for an address or for localhost, not for a name\n");
	for (const struct http_page *page = server->site.pages; page->path; page++)
		if (!strcmp(url, page->path))
			return send_page(server, connection, page);
	snprintf(other, sizeof(other), "see %s\n", server->site.home);
	return send_plain(server, connection, MHD_HTTP_NOT_FOUND, other);
}

/* Reads the file whole; it may hold a key. */
static char *read_tls(const char *cmd, const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = file ? calloc(1, TLS_BYTES_MAX) : NULL;

	if (!file)
		failure(cmd, "%s: %s", path, strerror(errno));
	else if (!text)
		failure(cmd, "out of memory");
	else if (!fread(text, 1, TLS_BYTES_MAX - 1, file))
		failure(cmd, "%s: no certificate and key in it", path);
	else {
		fclose(file);
		return text;
	}
	if (file)
		fclose(file);
	free(text);
	return NULL;
}

static void free_tls(char *tls)
{
	if (tls)
		explicit_bzero(tls, strlen(tls));
	free(tls);
}

static int start(struct http_server *server, const char *cmd)
{
	unsigned int flags = MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD;
	bool is_unix = http_socket_is_unix(server->name);
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, server->tls },
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, server->tls },
		{ MHD_OPTION_END, 0, NULL },
	};

	if (!server->tls)
		tls[0].option = MHD_OPTION_END;
	else
		flags |= MHD_USE_TLS;
	server->daemon = MHD_start_daemon(flags, 0, NULL, NULL, answer, server,
					  MHD_OPTION_LISTEN_SOCKET, server->fd,
					  MHD_OPTION_CONNECTION_LIMIT,
					  HTTP_CONNECTIONS_MAX + CONNECTIONS_CLOSING_MAX,
					  MHD_OPTION_CONNECTION_MEMORY_LIMIT,
					  (size_t)CONNECTION_BYTES_MAX,
					  MHD_OPTION_NOTIFY_CONNECTION, http_connections_notify,
					  &server->connections,
					  MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_S,
					  MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
	if (!server->daemon)
		return failure(cmd, "cannot serve %s%s%s", server->site.what,
			       server->tls ? ": no valid certificate and key in " : "",
			       server->tls ? server->options->tls : "");
	cmd_say(cmd, "%s at %s%s%s", server->site.what,
		is_unix	    ? "" :
		server->tls ? "https://" :
			      "http://",
		server->name, is_unix ? "" : server->site.home);
	return EXIT_OK;
}

int http_server_open(struct http_server **opened, const char *cmd,
		     const struct http_options *options, const struct http_site *site)
{
	struct http_server *server;
	int status;

	*opened = NULL;
	if (!options->address)
		return options->tls ? usage_error(cmd, "no address to serve %s is given",
						  site->what) :
				      EXIT_OK;
	server = calloc(1, sizeof(*server));
	if (!server)
		return failure(cmd, "out of memory");
	*server = (struct http_server){ .options = options, .site = *site, .fd = -1 };
	status = EXIT_OK;
	if (options->tls) {
		server->tls = read_tls(cmd, options->tls);
		status = server->tls ? EXIT_OK : EXIT_FAILED;
	}
	if (!status)
		status = http_socket_open(cmd, site->what, options->address, server->tls,
					  &server->fd, server->name);
	if (!status) {
		status = start(server, cmd);
		if (status) {
			close(server->fd);
			http_socket_remove(server->name);
		}
	}
	if (status) {
		free_tls(server->tls);
		free(server);
		return status;
	}
	*opened = server;
	return EXIT_OK;
}

void http_server_close(struct http_server *server)
{
	if (!server)
		return;
	MHD_stop_daemon(server->daemon); /* closes the socket */
	http_socket_remove(server->name);
	free_tls(server->tls);
	free(server);
}
