/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/metrics/metrics_server.h"

#include "apps/common/cmd.h"
#include "apps/metrics/metrics_socket.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS_MAX 16u
#define TIMEOUT_S 10u
#define TLS_BYTES_MAX (1u << 20)

static const char text_type[] = "text/plain; version=0.0.4; charset=utf-8";
static const char openmetrics_type[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";

struct metrics_server {
	const struct metrics_options *options;
	void (*collect)(struct exposition *x, void *arg);
	void *arg;
	struct MHD_Daemon *daemon;
	char *tls;
	int fd;
	char name[METRICS_NAME_MAX];
};

static enum MHD_Result send_plain(struct MHD_Connection *connection, unsigned int status,
				  const char *text)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
				"text/plain; charset=utf-8");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result send_metrics(const struct metrics_server *server,
				    struct MHD_Connection *connection)
{
	const char *accept =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	bool is_openmetrics = accept && strstr(accept, "application/openmetrics-text");
	struct MHD_Response *response;
	enum MHD_Result result;
	struct exposition x;
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return MHD_NO;
	exposition_begin(&x, out, is_openmetrics);
	server->collect(&x, server->arg);
	exposition_end(&x);
	if (fclose(out)) {
		free(text);
		return MHD_NO;
	}
	response = MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
				is_openmetrics ? openmetrics_type : text_type);
	result = MHD_queue_response(connection, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *length, void **state)
{
	static int seen; /* its address marks a request whose headers have been seen */

	(void)version;
	(void)data;
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return send_plain(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET or HEAD only\n");
	if (!*state) {
		*state = &seen;
		return MHD_YES;
	}
	*length = 0;
	if (!strcmp(url, "/metrics"))
		return send_metrics(arg, connection);
	return send_plain(connection, MHD_HTTP_NOT_FOUND, "see /metrics\n");
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

static int start(struct metrics_server *server, const char *cmd)
{
	unsigned int flags = MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD;
	bool is_unix = metrics_socket_is_unix(server->name);
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
					  MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
					  MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_S,
					  MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
	if (!server->daemon)
		return failure(cmd, "cannot serve metrics%s%s",
			       server->tls ? ": no valid certificate and key in " : "",
			       server->tls ? server->options->tls : "");
	fprintf(stderr, "%s: metrics at %s%s%s\n", cmd,
		is_unix	    ? "" :
		server->tls ? "https://" :
			      "http://",
		server->name, is_unix ? "" : "/metrics");
	return EXIT_OK;
}

int metrics_server_open(struct metrics_server **opened, const char *cmd,
			const struct metrics_options *options,
			void (*collect)(struct exposition *x, void *arg), void *arg)
{
	struct metrics_server *server;
	int status;

	*opened = NULL;
	if (!options->address)
		return options->tls ? usage_error(cmd, "no address to serve metrics is given") :
				      EXIT_OK;
	server = calloc(1, sizeof(*server));
	if (!server)
		return failure(cmd, "out of memory");
	*server = (struct metrics_server){ options, collect, arg, .fd = -1 };
	status = EXIT_OK;
	if (options->tls) {
		server->tls = read_tls(cmd, options->tls);
		status = server->tls ? EXIT_OK : EXIT_FAILED;
	}
	if (!status)
		status = metrics_socket_open(cmd, options->address, server->tls, &server->fd,
					     server->name);
	if (!status) {
		status = start(server, cmd);
		if (status) {
			close(server->fd);
			metrics_socket_remove(server->name);
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

void metrics_server_close(struct metrics_server *server)
{
	if (!server)
		return;
	MHD_stop_daemon(server->daemon); /* closes the socket */
	metrics_socket_remove(server->name);
	free_tls(server->tls);
	free(server);
}
