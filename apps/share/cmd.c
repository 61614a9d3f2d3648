/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir share: one NIC, many tenants. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "apps/common/json.h"
#include "apps/common/notify.h"
#include "apps/sandbox/sandbox.h"
#include "apps/metrics/host_metrics.h"
#include "apps/log/log.h"
#include "apps/metrics/metrics_server.h"
#include "apps/services.h"
#include "apps/share/daemon.h"
#include "lib/base/clock.h"
#include "lib/conn/address.h"
#include "lib/conn/listener.h"


#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static const char usage[] =
	"Usage: weir share [OPTION...]\n"
	"Lets the connections of many processes share few queue pairs, fairly. The processes\n"
	"use libweir and open a mux with $WEIR_SHARE set to this daemon's socket.\n";

static const char notes[] =
	"Prints \"ready ADDR:PORT\" on standard output once listening; all else goes to\n"
	"standard error. SIGINT or SIGTERM: ends all connections and exits.\n\n"
	"The configuration consists of lines; a process's cgroup, user or default applies,\n"
	"in this order:\n"
	"  default                          weight 1 connections 64\n"
	"  user postgres                    weight 4 class 0\n"
	"  cgroup /system.slice/db.service  rate 100M memory 1G\n"
	"  user nobody                      deny\n"
	"  class 0                          tos 104\n"
	"  class 1                          segment 16K pass 4M\n";

struct share_command {
	const char *cmd, *socket, *listen, *key_path, *identity_path, *config, *wanted, *device;
	struct weir_key *key;
	struct weir_identity *identity;
	struct http_options metrics;
	enum log_format log;
	bool json, no_sandbox;
};

static const struct cmdline_option share_options[] = {
	{ "socket", 's', "PATH", "where tenants connect; default " WEIR_MUX_IPC_SOCKET,
	  CMDLINE_TEXT(struct share_command, socket) },
	{ "listen", 'l', "ADDR[:PORT]",
	  "where other hosts' daemons and muxes connect; default\n"
	  "127.0.0.1:7475; port 0: any free port",
	  CMDLINE_CHECKED(struct share_command, listen, weir_address_is_well_formed,
			  "host, host:port or [v6]:port") },
	{ "key", 'k', "FILE",
	  "the key shared with other hosts (weir key new FILE); needed\n"
	  "beyond loopback",
	  CMDLINE_TEXT(struct share_command, key_path), .is_usable = usable_key },
	{ "identity", 0, "FILE",
	  "be known to other hosts by this identity ('weir key identity\n"
	  "FILE'), which the file of their key names",
	  CMDLINE_TEXT(struct share_command, identity_path), .is_usable = usable_identity },
	{ "config", 'c', "FILE", "how tenants are treated; SIGHUP: read the file again",
	  CMDLINE_TEXT(struct share_command, config), .is_usable = usable_rules },
	{ "json", 'j', NULL, "print the ready line as JSON",
	  CMDLINE_FLAG(struct share_command, json) },
	METRICS_OPTIONS(struct share_command, metrics),
	LOG_OPTION(struct share_command, log),
	SANDBOX_OPTION(struct share_command, no_sandbox),
	DEVICE_OPTION(struct share_command, wanted),
	{ NULL },
};

static int check_together(const char *cmd, const void *options)
{
	const struct share_command *c = options;
	struct weir_error error;
	struct addrinfo *list;

	if (!c->listen)
		return EXIT_OK;
	if (weir_listener_check(c->listen, "a mux", c->key_path, &list, &error))
		return failure(cmd, "%s", error.text);
	freeaddrinfo(list);
	return EXIT_OK;
}

const struct cmdline share_line = {
	.section = "share",
	.check = check_together,
	.size = sizeof(struct share_command),
	.usage = usage,
	.options = share_options,
	.notes = notes,
};

/* Each tenant needs descriptors, and so do connections on request. */
static void raise_limits(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static void say_ready(const struct share_command *c, struct share_daemon *share)
{
	struct weir_mux_info info;
	struct json json;

	weir_mux_local_info(share->mux, &info);
	if (c->json) {
		json_begin_line(&json, stdout);
		json_boolean(&json, "ready", true);
		json_string(&json, "address", info.address);
		json_string(&json, "socket", c->socket);
		json_int(&json, "pid", getpid());
		json_end(&json);
	} else {
		printf("ready %s\n", info.address);
	}
	fflush(stdout);
}

/* On an error the old configuration stays. */
static void reload(const struct share_command *c, struct share_daemon *share)
{
	struct weir_error error;
	struct share_config config;

	notify_reloading();
	if (share_config_load(c->config, &config, &error)) {
		log_event(WEIR_LOG_ERROR, "not reloaded, the old configuration stays id=W304: %s",
			  error.text);
	} else {
		share_daemon_reload(share, &config);
		log_event(WEIR_LOG_INFO, "reloaded");
	}
	notify_ready("serves tenants at %s", c->socket);
}

/* A daemon whose lock nobody gives back is dead for its tenants. */
static void say_alive(struct share_daemon *share)
{
	pthread_mutex_lock(&share->lock);
	pthread_mutex_unlock(&share->lock);
	notify_alive();
}

/* Returns at a signal to end. */
static void wait_end(const struct share_command *c, struct share_daemon *share, const sigset_t *set)
{
	const uint64_t ns = notify_interval_ns();
	const struct timespec nap = weir_timespec(ns);
	int sig;

	do {
		if (ns)
			say_alive(share);
		sig = sigtimedwait(set, NULL, ns ? &nap : NULL);
		if (sig == SIGHUP)
			reload(c, share);
	} while (sig != SIGINT && sig != SIGTERM);
}

static int open_all(const struct share_command *c, struct share_daemon *share)
{
	struct weir_mux_options options = {
		.listen = c->listen,
		.device = c->device,
		.key = c->key,
		.identity = c->identity,
		.connections_max = UINT16_MAX,
	};
	struct weir_error error;

	if (share_config_load(c->config, &share->config, &error))
		return failure(c->cmd, "%s", error.text);
	options.classes = share->config.classes;
	options.nr_classes = share->config.nr_classes;
	options.idle_ns = share->config.idle_ns;
	if (weir_mux_local_open(&options, &share->mux, &error)) {
		share_config_fini(&share->config);
		return failure(c->cmd, "%s", error.text);
	}
	return share_daemon_open(share, c->socket, &error) ? failure(c->cmd, "%s", error.text) :
							     EXIT_OK;
}

/* Without memory or descriptors a group is missing for once. */
static void collect_metrics(struct exposition *x, void *arg)
{
	const struct share_command *c = arg;

	build_metrics_collect(x);
	(void)share_metrics_collect(x, c->socket);
	(void)softnic_metrics_collect(x, getpid());
}

static int run(struct share_command *c)
{
	struct share_daemon share = { 0 };
	struct metrics_server *metrics;
	sigset_t set;
	int status;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN); /* a tenant's end must not end the daemon */
	raise_limits();
	status = open_all(c, &share);
	if (status)
		return status;
	status = metrics_server_open(&metrics, c->cmd, &c->metrics, collect_metrics, c);
	if (status) {
		share_daemon_close(&share);
		return status;
	}
	if (!c->no_sandbox)
		sandbox_enter(c->cmd);
	say_ready(c, &share);
	notify_ready("serves tenants at %s", c->socket);
	wait_end(c, &share, &set);
	notify_stopping();
	sigprocmask(SIG_UNBLOCK, &set, NULL); /* a second signal ends it at once */
	metrics_server_close(metrics);
	share_daemon_close(&share);
	return EXIT_OK;
}

int cmd_share(int argc, char **argv)
{
	struct share_command c = { .cmd = argv[0],
				   .socket = WEIR_MUX_IPC_SOCKET,
				   .listen = "127.0.0.1:7475" };
	struct weir_error error;
	int status = cmdline_parse(&share_line, argc, argv, &c);

	if (status != CMDLINE_PARSED)
		return status;
	log_begin(argv[0], c.log);
	status = check_together(argv[0], &c);
	if (!status)
		status = device_choose(argv[0], c.wanted, &c.device);
	if (!status && c.key_path && weir_key_load(c.key_path, &c.key, &error))
		status = failure(argv[0], "%s", error.text);
	if (!status && c.identity_path &&
	    weir_identity_load(c.identity_path, &c.identity, &error))
		status = failure(argv[0], "%s", error.text);
	if (!status)
		status = run(&c);
	weir_key_free(c.key);
	weir_identity_free(c.identity);
	return status;
}
