/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir metrics: one scrape for all processes of this host. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/notify.h"
#include "apps/inspect/memfd_scan.h"
#include "apps/log/log.h"
#include "apps/metrics/host_metrics.h"
#include "apps/metrics/metrics_server.h"
#include "apps/mount/mount_metrics.h"
#include "apps/serve/donor_metrics.h"
#include "apps/services.h"
#include "lib/pool/client.h"
#include "lib/mux/proxy/ipc.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const char usage[] =
	"Usage: weir metrics [OPTION...]\n"
	"Prints the counters that weir stat and weir top show as metrics for Prometheus: those of\n"
	"softnic, of sessions and of the tenants of weir share, in all processes of yours; for\n"
	"root, sessions and tenants of all users. With --listen, serves them until stopped.\n";

static const char notes[] =
	"weir serve, mount and share have --metrics to serve their own, which are more.\n";

struct metrics_command {
	const char *socket, *pool;
	struct weir_pool_client *client; /* of the pool, or NULL */
	struct http_options serve;
	bool openmetrics, describe, containers;
	enum log_format log;
};

static const struct cmdline_option metrics_options[] = {
	METRICS_OPTIONS_CALLED("listen", "tls", struct metrics_command, serve),
	{ "openmetrics", 'o', NULL, "print in the format OpenMetrics, not in Prometheus's",
	  CMDLINE_FLAG(struct metrics_command, openmetrics) },
	LOG_OPTION(struct metrics_command, log),
	{ "describe", 0, NULL, "print a page of all metrics, in Markdown",
	  CMDLINE_FLAG(struct metrics_command, describe) },
	MEMFD_SCAN_OPTION(struct metrics_command, containers),
	{ "pool", 0, "POOL", "also those of this pool; see 'weir pool --help'",
	  CMDLINE_TEXT(struct metrics_command, pool), .is_usable = usable_pool },
	{ "socket", 's', "PATH",
	  "of weir share; default $WEIR_SHARE, or else\n" WEIR_MUX_IPC_SOCKET,
	  CMDLINE_TEXT(struct metrics_command, socket) },
	{ NULL },
};

const struct cmdline metrics_line = {
	.section = "metrics",
	.size = sizeof(struct metrics_command),
	.usage = usage,
	.options = metrics_options,
	.notes = notes,
};

static const char page_head[] =
	"<!-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only -->\n"
	"# Metrics\n\n"
	"`weir metrics --describe` prints this page. `weir serve`, `weir mount` and `weir share`\n"
	"serve their metrics with `--metrics WHERE`. `weir metrics` shows the groups *All\n"
	"commands*, *Sessions*, *Requests of a session*, *Failures of a session*, *Tenants of\n"
	"weir share*, *Classes of a tenant of weir share*, *Block devices*, *Donors of the\n"
	"host*, *Mounts of the host*, *Operations of the host's mounts*, *softnic*, *softnic of\n"
	"the host* and *Peers of softnic* for the whole host, and with `--pool` those of a pool.\n"
	"[How to watch weir](../how-to/watch.md) has a configuration of Prometheus.\n\n"
	"A counter begins at 0 when its process, session or tenant begins.\n";

static int describe(void)
{
	static const struct metric_group *const groups[] = {
		&build_metrics,	      &donor_metrics,	     &donor_identity_metrics,
		&file_server_metrics, &mount_metrics,	     &operation_metrics,
		&session_metrics,     &request_metrics,	     &failure_metrics,
		&share_metrics,	      &share_class_metrics,  &blk_metrics,
		&host_donor_metrics,  &host_mount_metrics,   &host_operation_metrics,
		&softnic_metrics,     &softnic_host_metrics, &softnic_peer_metrics,
		&pool_metrics,	      &pool_group_metrics,   &pool_donor_metrics,
		&span_metrics,
	};

	fputs(page_head, stdout);
	exposition_describe(stdout, groups, LENGTH(groups));
	return EXIT_OK;
}

static int collect(struct exposition *x, const struct metrics_command *c)
{
	int rc, first;

	build_metrics_collect(x);
	first = session_metrics_collect(x, 0);
	rc = share_metrics_collect(x, c->socket);
	first = first ? first : rc;
	rc = softnic_metrics_collect(x, 0);
	first = first ? first : rc;
	rc = host_donor_metrics_collect(x);
	first = first ? first : rc;
	rc = host_mount_metrics_collect(x);
	first = first ? first : rc;
	rc = blk_metrics_collect(x);
	first = first ? first : rc;
	rc = pool_metrics_collect(x, c->pool, c->client);
	return first ? first : rc;
}

/* A group that cannot be read now is missing for once. */
static void collect_for_server(struct exposition *x, void *arg)
{
	(void)collect(x, arg);
}

static int print_once(const char *cmd, const struct metrics_command *c)
{
	struct exposition x;
	int rc;

	exposition_begin(&x, stdout, c->openmetrics ? EXPOSITION_OPENMETRICS : EXPOSITION_TEXT);
	rc = collect(&x, c);
	exposition_end(&x);
	return rc ? failure(cmd, "cannot read all metrics: %s", weir_strerror(rc)) : EXIT_OK;
}

static int serve(const char *cmd, struct metrics_command *c)
{
	struct metrics_server *server;
	sigset_t ends;
	int status, sig;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	status = metrics_server_open(&server, cmd, &c->serve, collect_for_server, c);
	if (status)
		return status;
	notify_ready("serves metrics");
	while (sigwait(&ends, &sig))
		;
	notify_stopping();
	metrics_server_close(server);
	return EXIT_OK;
}

int cmd_metrics(int argc, char **argv)
{
	const char *socket = getenv("WEIR_SHARE");
	struct metrics_command c = { .socket = socket && *socket ? socket : WEIR_MUX_IPC_SOCKET };
	int status = cmdline_parse(&metrics_line, argc, argv, &c);
	struct weir_error error;

	if (status != CMDLINE_PARSED)
		return status;
	log_begin(argv[0], c.log);
	memfd_scan_include_containers(c.containers);
	if (c.describe)
		return describe();
	if (c.pool && weir_pool_client_open(c.pool, &c.client, &error))
		return failure(argv[0], "%s", error.text);
	status = c.serve.address || c.serve.tls ? serve(argv[0], &c) : print_once(argv[0], &c);
	weir_pool_client_close(c.client);
	return status;
}
