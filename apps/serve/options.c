/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The options of weir serve. */
#include "apps/common/client.h"
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "apps/metrics/metrics_server.h"
#include "apps/sandbox/sandbox.h"
#include "apps/serve/serve.h"
#include "apps/serve/web/web.h"
#include "apps/services.h"
#include "lib/conn/address.h"
#include "lib/conn/listener.h"

#include <netdb.h>
#include <string.h>

#define KEY_CLIENTS_MAX 65536
#define KEEPALIVE_MAX (7 * 24 * 3600) /* seconds */

static const char usage[] =
	"Usage: weir serve [OPTION...]\n"
	"Lends this machine's memory until stopped by a signal: to weir mount as a file system,\n"
	"and to programs of libweir as regions. The memory is volatile: it ends with this\n"
	"process. softnic encrypts between hosts if there is a key; other devices do not.\n";

static const char notes[] =
	"Prints \"ready ADDR:PORT\" on standard output once it listens; everything else goes to\n"
	"standard error. SIGINT or SIGTERM notifies the clients and ends; a second one kills.\n"
	"SIGHUP: read environment and file again, for --log-level, --memory and --spare, and the\n"
	"list of --keys.\n"
	"'weir lend' changes how much memory is lent.\n";

static bool add_key(const char *path, void *options)
{
	struct serve *serve = options;

	if (serve->nr_keys == SERVE_KEYS_MAX)
		return false;
	serve->key_path[serve->nr_keys++] = path;
	return true;
}

static const struct cmdline_option serve_options[] = {
	{ "listen", 'l', "ADDR[:PORT]", "default 127.0.0.1:7474; port 0: any free port",
	  CMDLINE_CHECKED(struct serve, listen, weir_address_is_well_formed,
			  "host, host:port or [v6]:port") },
	{ "memory", 'm', "SIZE", "memory to lend in total, such as 4G; default: a quarter of RAM",
	  CMDLINE_SIZE(struct serve, asked, SERVE_PAGE, UINT64_MAX) },
	{ "quota", 'q', "SIZE",
	  "most memory for a client's regions, and for a key's file\n"
	  "system; default: all",
	  CMDLINE_SIZE(struct serve, quota, SERVE_PAGE, UINT64_MAX) },
	{ "key", 'k', "FILE",
	  "admit clients that have the same key ('weir key new FILE').\n"
	  "Repeatable: each key has its own file system and regions.\n"
	  "Required to listen beyond loopback",
	  CMDLINE_PARSE(add_key, "at most 64 keys"), .is_repeatable = true,
	  .is_usable = usable_key },
	{ "keys", 0, "FILE",
	  "admit the keys of this list, which 'weir key add' makes;\n"
	  "SIGHUP: read it again",
	  CMDLINE_TEXT(struct serve, keys_path), .is_usable = usable_keys },
	{ "identity", 0, "FILE", "be known to clients by this identity ('weir key identity FILE')",
	  CMDLINE_TEXT(struct serve, identity_path), .is_usable = usable_identity },
	{ "key-memory", 0, "SIZE",
	  "most memory for a key's regions, its file system included;\n"
	  "default: all",
	  CMDLINE_SIZE(struct serve, key_memory, SERVE_PAGE, UINT64_MAX) },
	{ "key-clients", 0, "N", "most clients of a key at a time; default 64",
	  CMDLINE_UINT(struct serve, key_clients, 1, KEY_CLIENTS_MAX) },
	{ "spare", 0, "SIZE",
	  "memory to keep available to this machine: if less is available,\n"
	  "lend less, and ask memory back like 'weir lend'; default 0",
	  CMDLINE_SIZE(struct serve, spare, SERVE_PAGE, UINT64_MAX) },
	{ "cpu", 0, "PERCENT", "most of a processor used to copy unloaded writes; default 50",
	  CMDLINE_UINT(struct serve, cpu_percent, 1, 100), .expected = "a percentage, 1 to 100" },
	{ "keepalive", 0, "SECONDS",
	  "silence of a client before its host is probed; a client that\n"
	  "does not answer has as long again to come back, 30 s at\n"
	  "least; default 600",
	  CMDLINE_UINT(struct serve, keepalive, 1, KEEPALIVE_MAX) },
	{ "reserve", 0, NULL,
	  "take all of --memory from the system at once, or do not start;\n"
	  "the default if --memory is given and --spare is not",
	  CMDLINE_FLAG(struct serve, reserve) },
	{ "no-reserve", 0, NULL, "take memory from the system only as clients need it",
	  CMDLINE_FLAG(struct serve, no_reserve) },
	{ "no-huge-pages", 0, NULL, "do not use the system's reserved huge pages",
	  CMDLINE_FLAG(struct serve, no_huge_pages) },
	CLIENT_ENCRYPT_OPTION,
	{ "no-encrypt", 0, NULL, "like --encrypt=off", CMDLINE_FLAG(struct serve, no_encrypt) },
	{ "log-level", 0, "LEVEL", "error, warning, info (the default) or debug",
	  CMDLINE_CHOICE(struct serve, log_level, log_level_names) },
	LOG_OPTION(struct serve, log),
	{ "json", 'j', NULL, "print the ready line as JSON", CMDLINE_FLAG(struct serve, json) },
	{ "pool", 0, "POOL",
	  "join this pool: a name, file:PATH or\n"
	  "etcd:http://HOST:2379,HOST:2379/NAME; see 'weir pool --help'",
	  CMDLINE_TEXT(struct serve, membership.pool), .is_usable = usable_pool },
	{ "domain", 0, "NAME",
	  "failure domain in the pool, such as a rack: no two copies share\n"
	  "a domain; default: this host's name",
	  CMDLINE_TEXT(struct serve, membership.domain) },
	{ "name", 0, "NAME", "this donor's name in the pool; default: its address",
	  CMDLINE_TEXT(struct serve, membership.name) },
	{ "advertise", 0, "ADDR",
	  "address of this host that the pool's other hosts connect to;\n"
	  "default: that of --listen",
	  CMDLINE_TEXT(struct serve, membership.advertise) },
	METRICS_OPTIONS(struct serve, metrics),
	WEB_OPTIONS(struct serve, web),
	SANDBOX_OPTION(struct serve, no_sandbox),
	DEVICE_OPTION(struct serve, wanted),
	{ NULL },
};

static bool can_listen(const struct serve *serve, struct weir_error *error)
{
	struct addrinfo *list;

	if (!serve->listen)
		return true;
	if (weir_listener_check(serve->listen, "a donor", serve->nr_keys || serve->keys_path, &list,
				error))
		return false;
	freeaddrinfo(list);
	return true;
}

int serve_check(const char *cmd, const void *options)
{
	const struct serve *serve = options;
	int status = membership_check(&serve->membership, cmd);
	struct weir_error error;

	if (status)
		return status;
	if (serve->keys_path && serve->nr_keys)
		return usage_error(cmd, "--key and --keys exclude each other");
	if (serve->reserve && serve->no_reserve)
		return usage_error(cmd, "--reserve and --no-reserve exclude each other");
	if (serve->metrics.address && serve->web.address &&
	    http_socket_is_same(serve->metrics.address, serve->web.address))
		return usage_error(cmd, "--metrics and --web cannot share %s", serve->web.address);
	return can_listen(serve, &error) ? EXIT_OK : failure(cmd, "%s", error.text);
}

const struct cmdline serve_line = {
	.usage = usage,
	.options = serve_options,
	.notes = notes,
	.section = "serve",
	.check = serve_check,
	.size = sizeof(struct serve),
};

void serve_change_options(struct serve *serve, const struct serve *new,
			  struct memory_target *target)
{
	for (const struct cmdline_option *option = serve_options; option->name; option++)
		if (strcmp(option->name, "log-level") && strcmp(option->name, "memory") &&
		    strcmp(option->name, "spare") && cmdline_differs(option, serve, new))
			log_event(WEIR_LOG_WARNING, "unchanged option=%s id=W302: needs a restart",
				  option->name);
	log_set_level(new->log_level);
	target->spare = new->spare;
	if (new->asked != serve->asked &&new->asked)
		memory_target_set(target, new->asked);
	else
		memory_target_update(target);
	serve->log_level = new->log_level;
	serve->spare = new->spare;
	serve->asked = new->asked;
}
