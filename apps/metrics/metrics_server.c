/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/metrics/metrics_server.h"

#include "apps/common/cmd.h"
#include "apps/metrics/negotiate.h"

#include <stdlib.h>

struct metrics_server {
	void (*collect)(struct exposition *x, void *arg);
	void *arg;
	struct http_server *http;
};

static void write_metrics(struct http_answer *answer, void *arg)
{
	const struct metrics_server *server = arg;
	enum exposition_format format = metrics_negotiate(answer->accept);
	struct exposition x;

	answer->type = exposition_types[format];
	exposition_begin(&x, answer->out, format);
	server->collect(&x, server->arg);
	exposition_end(&x);
}

/* For probes of Kubernetes and containers: cheap, and true while the server's thread runs. */
static void write_health(struct http_answer *answer, void *arg)
{
	(void)arg;
	fputs("ok\n", answer->out);
}

int metrics_server_open(struct metrics_server **opened, const char *cmd,
			const struct http_options *options,
			void (*collect)(struct exposition *x, void *arg), void *arg)
{
	static const struct http_page pages[] = {
		{ "/metrics", write_metrics },
		{ "/healthz", write_health },
		{ NULL },
	};
	struct metrics_server *server = calloc(1, sizeof(*server));
	const struct http_site site = {
		.what = "metrics", .home = "/metrics", .pages = pages, .arg = server
	};
	int status;

	*opened = NULL;
	if (!server)
		return failure(cmd, "out of memory");
	server->collect = collect;
	server->arg = arg;
	status = http_server_open(&server->http, cmd, options, &site);
	if (status || !server->http) {
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
	http_server_close(server->http);
	free(server);
}
