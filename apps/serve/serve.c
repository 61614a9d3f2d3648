/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir serve: lends this machine's memory to clients of libweir and as a file system. */
#include "apps/common/client.h"
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "apps/common/json.h"
#include "apps/common/notify.h"
#include "apps/common/number.h"
#include "apps/common/size.h"

#include "apps/lend.h"
#include "apps/metrics/host_metrics.h"
#include "apps/metrics/metrics_server.h"
#include "apps/serve/available_memory.h"
#include "apps/serve/donor_keys.h"
#include "apps/serve/donor_metrics.h"
#include "apps/serve/donor_page.h"
#include "apps/serve/files/file_servers.h"
#include "apps/serve/memory_target.h"
#include "apps/serve/log.h"
#include "apps/serve/tenant.h"
#include "lib/base/clock.h"
#include "lib/base/rate_limit.h"
#include "lib/pool/agent.h"
#include "lib/volume/rebuild.h"
#include "apps/services.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEYS_MAX 64
#define KEY_CLIENTS_MAX 65536
#define PAGE (2ull << 20) /* the smallest unit of lending */
#define CHUNK_MAX (256ull << 20)
#define OOM_SCORE_ADJ (-500) /* as if the donor used half of the machine's memory less */
#define KEEPALIVE_MAX (7 * 24 * 3600) /* seconds */
#define RESTART_SIGNAL (SIGRTMIN + 1) /* from this process: see LEND_SIGNAL for the first */
#define PAGE_INTERVAL_NS WEIR_NS_PER_S
#define CHUNKS 16 /* chunks per file system, roughly: unused chunks can be lent as regions */

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

/* @asked: the value of --memory, or 0; @memory: that, or its default */
struct serve {
	int argc;
	char **argv;
	const char *cmd, *listen, *wanted, *device, *keys_path;
	uint64_t asked, memory, quota, key_memory, spare;
	const char *key_path[KEYS_MAX];
	struct weir_key *key[KEYS_MAX];
	enum weir_log_level log_level;
	unsigned int nr_keys, key_clients, cpu_percent, keepalive;
	bool reserve, no_reserve, no_huge_pages, no_encrypt, json;
	struct metrics_options metrics;
	struct metrics_server *metrics_server;
	struct donor_keys keys; /* with @keys_path */
	struct fs_tenants tenants;
	struct weir_donor *donor;
	const char *pool, *domain, *name, *advertise;
	char address[64]; /* the same for each incarnation */
	char pool_address[WEIR_POOL_NAME_MAX + 8]; /* as the pool's map has it */
	struct weir_pool_agent *agent;
	struct weir_volume_rebuilder *rebuilder;
	int page; /* for weir top; less than 0: no descriptor */
	struct file_server_options file_options;
	struct file_servers *file_servers;
	char pool_name[WEIR_POOL_NAME_MAX]; /* the donor's */
};

static bool add_key(const char *path, void *options)
{
	struct serve *serve = options;

	if (serve->nr_keys == KEYS_MAX)
		return false;
	serve->key_path[serve->nr_keys++] = path;
	return true;
}

static const struct cmdline_option serve_options[] = {
	{ "listen", 'l', "ADDR[:PORT]", "default 127.0.0.1:7474; port 0: any free port",
	  CMDLINE_TEXT(struct serve, listen) },
	{ "memory", 'm', "SIZE", "memory to lend in total, such as 4G; default: a quarter of RAM",
	  CMDLINE_SIZE(struct serve, asked, PAGE, UINT64_MAX) },
	{ "quota", 'q', "SIZE",
	  "most memory for a client's regions, and for a key's file\n"
	  "system; default: all",
	  CMDLINE_SIZE(struct serve, quota, PAGE, UINT64_MAX) },
	{ "key", 'k', "FILE",
	  "admit clients that have the same key ('weir key new FILE').\n"
	  "Repeatable: each key has its own file system and regions.\n"
	  "Required to listen beyond loopback",
	  CMDLINE_PARSE(add_key, "at most 64 keys") },
	{ "keys", 0, "FILE",
	  "admit the keys of this list, which 'weir key add' makes;\n"
	  "SIGHUP: read it again",
	  CMDLINE_TEXT(struct serve, keys_path) },
	{ "key-memory", 0, "SIZE",
	  "most memory for a key's regions, its file system included;\n"
	  "default: all",
	  CMDLINE_SIZE(struct serve, key_memory, PAGE, UINT64_MAX) },
	{ "key-clients", 0, "N", "most clients of a key at a time; default 64",
	  CMDLINE_UINT(struct serve, key_clients, 1, KEY_CLIENTS_MAX) },
	{ "spare", 0, "SIZE",
	  "memory to keep available to this machine: if less is available,\n"
	  "lend less, and ask memory back like 'weir lend'; default 0",
	  CMDLINE_SIZE(struct serve, spare, PAGE, UINT64_MAX) },
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
	{ "json", 'j', NULL, "print the ready line as JSON", CMDLINE_FLAG(struct serve, json) },
	{ "pool", 0, "POOL",
	  "join this pool: a name, file:PATH or\n"
	  "etcd:http://HOST:2379,HOST:2379/NAME; see 'weir pool --help'",
	  CMDLINE_TEXT(struct serve, pool) },
	{ "domain", 0, "NAME",
	  "failure domain in the pool, such as a rack: no two copies share\n"
	  "a domain; default: this host's name",
	  CMDLINE_TEXT(struct serve, domain) },
	{ "name", 0, "NAME", "this donor's name in the pool; default: its address",
	  CMDLINE_TEXT(struct serve, name) },
	{ "advertise", 0, "ADDR",
	  "address of this host that the pool's other hosts connect to;\n"
	  "default: that of --listen",
	  CMDLINE_TEXT(struct serve, advertise) },
	METRICS_OPTIONS(struct serve, metrics),
	DEVICE_OPTION(struct serve, wanted),
	{ NULL },
};

const struct cmdline serve_line = {
	.usage = usage,
	.options = serve_options,
	.notes = notes,
	.section = "serve",
	.size = sizeof(struct serve),
};

static uint64_t default_memory(void)
{
	uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t quarter = ram / 4 / PAGE * PAGE;

	return quarter ? quarter : PAGE;
}

static uint64_t chunk_bytes(uint64_t memory)
{
	uint64_t chunk = memory / CHUNKS / PAGE * PAGE;

	if (chunk < PAGE)
		return PAGE;
	return chunk < CHUNK_MAX ? chunk : CHUNK_MAX;
}

static int load_keys(struct serve *serve)
{
	struct weir_error error;

	for (unsigned int i = 0; i < serve->nr_keys; i++) {
		if (weir_key_load(serve->key_path[i], &serve->key[i], &error))
			return failure(serve->cmd, "%s", error.text);
	}
	return 0;
}

/* An amount that the operator has named is a promise to clients, so it is taken now. */
static int decide_reserve(struct serve *serve)
{
	uint64_t available = available_memory("");

	if (serve->reserve && serve->no_reserve)
		return failure(serve->cmd, "--reserve and --no-reserve exclude each other");
	if (!serve->no_reserve && serve->asked && !serve->spare)
		serve->reserve = true;
	serve->memory = serve->asked ? serve->asked : default_memory();
	if (!serve->reserve || serve->memory <= available)
		return EXIT_OK;
	return failure(serve->cmd,
		       "cannot reserve %s: this machine and the control group allow %s: use "
		       "--no-reserve, or less --memory",
		       size_format(serve->memory).text, size_format(available).text);
}

/*
 * The end of a donor costs its clients their data: if memory is short, the kernel should kill
 * another process. A lower value takes CAP_SYS_RESOURCE; without that the value stays.
 */
static void avoid_oom_kill(void)
{
	FILE *file = fopen("/proc/self/oom_score_adj", "we");

	if (!file)
		return;
	fprintf(file, "%d\n", OOM_SCORE_ADJ);
	fclose(file);
}

static int open_donor(struct serve *serve)
{
	struct weir_donor_options options = {
		.size = sizeof(options),
		.listen = *serve->address ? serve->address : serve->listen,
		.device = serve->device,
		.keys = (const struct weir_key *const *)serve->key,
		.nr_keys = serve->nr_keys,
		.tenants_max = serve->keys_path ? DONOR_TENANTS_MAX : 0,
		.memory_bytes = serve->memory,
		.quota_bytes = serve->quota,
		.key_bytes_max = serve->key_memory,
		.key_clients_max = serve->key_clients,
		/* softnic's peers cannot map huge pages */
		.no_huge_pages = serve->no_huge_pages || device_is_softnic(),
		.unload_percent_max = serve->cpu_percent,
		.keepalive_ms = serve->keepalive * 1000,
		.reserve = serve->reserve,
		.encryption = client_encryption(),
	};
	struct weir_error error;
	uint64_t fs_bytes = serve->quota && serve->quota < serve->memory ? serve->quota :
									   serve->memory;

	unsigned int nr_tenants = serve->keys_path ? DONOR_TENANTS_MAX :
				  serve->nr_keys   ? serve->nr_keys :
						     1;

	if (tenants_init(&serve->tenants, nr_tenants, fs_bytes, chunk_bytes(fs_bytes)))
		return failure(serve->cmd, "out of memory");
	tenants_bind(&serve->tenants, &options);
	if (weir_donor_open(&options, &serve->donor, &error)) {
		tenants_start(&serve->tenants, NULL);
		tenants_fini(&serve->tenants);
		return failure(serve->cmd, "%s", error.text);
	}
	tenants_start(&serve->tenants, serve->donor);
	return 0;
}

/* Without a list that can be read, nobody would be admitted: so the donor does not start. */
static int load_list(struct serve *serve)
{
	struct weir_error error;

	if (!serve->keys_path)
		return EXIT_OK;
	memset(&serve->keys, 0, sizeof(serve->keys)); /* of an earlier incarnation */
	if (donor_keys_load(&serve->keys, serve->keys_path, &serve->tenants, &error))
		return failure(serve->cmd, "%s", error.text);
	return EXIT_OK;
}

static void reload_list(struct serve *serve)
{
	struct weir_error error;

	if (serve->keys_path &&
	    donor_keys_load(&serve->keys, serve->keys_path, &serve->tenants, &error))
		log_event(WEIR_LOG_ERROR, "keys not reloaded, the old ones stay: %s", error.text);
}

static void close_donor(struct serve *serve)
{
	weir_volume_rebuilder_cancel(serve->rebuilder);
	file_servers_cancel(serve->file_servers);
	file_servers_finish(serve->file_servers);
	/* A change of the map, which wakes both. */
	weir_pool_agent_stop(serve->agent);
	serve->agent = NULL;
	file_servers_close(serve->file_servers);
	serve->file_servers = NULL;
	weir_volume_rebuilder_close(serve->rebuilder);
	serve->rebuilder = NULL;
	metrics_server_close(serve->metrics_server);
	serve->metrics_server = NULL;
	weir_donor_close(serve->donor);
	tenants_fini(&serve->tenants);
}

/* Without memory or descriptors a group is missing for once. */
static void collect_metrics(struct exposition *x, void *arg)
{
	struct serve *serve = arg;

	build_metrics_collect(x);
	(void)donor_metrics_collect(x, &serve->tenants);
	(void)softnic_metrics_collect(x, getpid());
}

static void say_ready(const struct serve *serve)
{
	struct weir_donor_info info;
	struct json json;

	weir_donor_info(serve->donor, &info, sizeof(info));
	if (serve->json) {
		json_begin_line(&json, stdout);
		json_boolean(&json, "ready", true);
		json_string(&json, "address", info.address);
		json_string(&json, "device", info.device);
		json_uint(&json, "memory_bytes", info.memory_bytes);
		json_boolean(&json, "huge_pages", info.huge_pages);
		json_boolean(&json, "reserved", serve->reserve);
		json_int(&json, "pid", getpid());
		json_end(&json);
	} else {
		printf("ready %s\n", info.address);
		fflush(stdout);
	}
}

/* Blocks the signals of this process in all threads, so that wait_end() can wait for them. */
static void hold_signals(sigset_t *ends, sigset_t *all)
{
	sigemptyset(ends);
	sigaddset(ends, SIGINT);
	sigaddset(ends, SIGTERM);
	*all = *ends;
	sigaddset(all, LEND_SIGNAL);
	sigaddset(all, SIGHUP);
	sigaddset(all, RESTART_SIGNAL);
	sigprocmask(SIG_BLOCK, all, NULL);
}

static void tell_ready(const struct serve *serve)
{
	struct weir_donor_info info;

	weir_donor_info(serve->donor, &info, sizeof(info));
	notify_ready("lends %s at %s", size_format(info.limit_bytes).text, info.address);
}

/* Applies the options that may change, and names the others that did. */
static void change_options(struct serve *serve, const struct serve *new,
			   struct memory_target *target)
{
	for (const struct cmdline_option *option = serve_options; option->name; option++)
		if (strcmp(option->name, "log-level") && strcmp(option->name, "memory") &&
		    strcmp(option->name, "spare") && cmdline_differs(option, serve, new))
			log_event(WEIR_LOG_WARNING, "unchanged option=%s: needs a restart",
				  option->name);
	log_set_level(new->log_level);
	target->spare = new->spare;
	if (new->asked != serve->asked && new->asked)
		memory_target_set(target, new->asked);
	else
		memory_target_update(target);
	serve->log_level = new->log_level;
	serve->spare = new->spare;
	serve->asked = new->asked;
}

/* On a mistake the old options stay. */
static void reload(struct serve *serve, struct memory_target *target)
{
	struct serve new = { .cmd = serve->cmd, .log_level = WEIR_LOG_INFO };

	notify_reloading();
	if (cmdline_parse(&serve_line, serve->argc, serve->argv, &new) == CMDLINE_PARSED) {
		change_options(serve, &new, target);
		log_event(WEIR_LOG_INFO, "reloaded limit=%" PRIu64, target->limit);
	} else {
		log_event(WEIR_LOG_ERROR, "not reloaded: the old options stay");
	}
	reload_list(serve);
	tell_ready(serve);
}

static void say_alive(void *arg)
{
	(void)arg;
	notify_alive();
}

/* How long to sleep at most: until the page is written, or a sign of life is due. */
static struct timespec nap(void)
{
	uint64_t ns = lesser(PAGE_INTERVAL_NS,
			     notify_interval_ns() ? notify_interval_ns() : UINT64_MAX);

	return weir_timespec(ns);
}

/* Waits for a signal to end or restart; handles 'weir lend' and SIGHUP. Return: the signal. */
static int wait_end(struct serve *serve, const sigset_t *set)
{
	struct memory_target target;
	struct timespec until;
	siginfo_t said;
	int sig;

	memory_target_init(&target, serve->donor, serve->memory, serve->spare);
	for (;;) {
		/* The donor's thread says so itself: the manager watches that thread. */
		if (notify_interval_ns())
			(void)weir_donor_after(serve->donor, 0, say_alive, NULL);
		if (serve->page >= 0)
			donor_page_update(serve->page, serve->donor);
		until = nap();
		sig = sigtimedwait(set, &said, &until);
		if (sig == SIGINT || sig == SIGTERM || sig == RESTART_SIGNAL)
			return sig;
		if (sig == LEND_SIGNAL && said.si_code == SI_QUEUE)
			memory_target_set(&target, (uintptr_t)said.si_value.sival_ptr);
		else if (sig == SIGHUP)
			reload(serve, &target);
		else if (serve->spare)
			memory_target_update(&target);
	}
}

static void ask_restart(void *arg)
{
	(void)arg;
	kill(getpid(), RESTART_SIGNAL);
}

/* Of all threads that work for the pool: the agent's, the rebuilder's and the file servers'. */
static void log_agent(void *arg, enum weir_log_level level, const char *line)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct weir_rate_limit limit;
	uint32_t dropped = 0;
	bool passes;

	(void)arg;
	pthread_mutex_lock(&lock);
	passes = level >= WEIR_LOG_DEBUG || weir_rate_limit_pass(&limit, weir_now_ns(), &dropped);
	pthread_mutex_unlock(&lock);
	if (dropped)
		log_event(WEIR_LOG_WARNING, "suppressed lines=%" PRIu32 " of=pool", dropped);
	if (passes)
		log_line(level, line);
}

static int start_rebuilder(struct serve *serve, const struct weir_pool_agent_options *agent)
{
	const struct weir_volume_rebuilder_options options = {
		.pool = agent->pool,
		.donor = agent->name,
		.incarnation = agent->incarnation,
		.device = serve->device,
		.key = serve->nr_keys ? serve->key[0] : NULL,
		.encryption = client_encryption(),
		.on_log = log_agent,
	};
	struct weir_error error;

	if (weir_volume_rebuilder_start(&options, &serve->rebuilder, &error))
		return failure(serve->cmd, "%s", error.text);
	return EXIT_OK;
}

static int start_files(struct serve *serve, const struct weir_pool_agent_options *agent)
{
	struct weir_error error;

	snprintf(serve->pool_name, sizeof(serve->pool_name), "%s", agent->name);
	serve->file_options = (struct file_server_options){
		.pool = agent->pool,
		.donor = serve->pool_name,
		.listen = serve->pool_address,
		.device = serve->device,
		.incarnation = agent->incarnation,
		.keys = (const struct weir_key *const *)serve->key,
		.nr_keys = serve->nr_keys,
		.on_log = log_agent,
	};
	if (file_servers_start(&serve->file_options, &serve->file_servers, &error))
		return failure(serve->cmd, "%s", error.text);
	return EXIT_OK;
}

/* The address that other hosts connect to. A wildcard would lead each of them to itself. */
static int choose_pool_address(struct serve *serve, const char *bound)
{
	const char *port = strrchr(bound, ':');

	if (serve->advertise) {
		snprintf(serve->pool_address, sizeof(serve->pool_address), "%s%s", serve->advertise,
			 port);
		return EXIT_OK;
	}
	snprintf(serve->pool_address, sizeof(serve->pool_address), "%s", bound);
	if (!strncmp(bound, "0.0.0.0:", 8) || !strncmp(bound, "[::]:", 5))
		return failure(serve->cmd,
			       "--pool: other hosts cannot connect to %s: --listen at an address "
			       "of this host, or name one by --advertise",
			       bound);
	return EXIT_OK;
}

static int join_pool(struct serve *serve)
{
	char host[64] = "";
	int status;
	struct weir_donor_info info;
	struct weir_error error;
	struct weir_pool_agent_options options = {
		.pool = serve->pool,
		.domain = serve->domain ? serve->domain : host,
		.on_restart = ask_restart,
		.on_log = log_agent,
	};

	if (!serve->pool)
		return EXIT_OK;
	(void)gethostname(host, sizeof(host) - 1);
	weir_donor_info(serve->donor, &info, sizeof(info));
	status = choose_pool_address(serve, info.address);
	if (status)
		return status;
	options.address = serve->pool_address;
	options.name = serve->name ? serve->name : serve->pool_address;
	options.bytes = info.memory_bytes;
	options.incarnation = info.incarnation;
	if (weir_pool_agent_start(&options, &serve->agent, &error))
		return failure(serve->cmd, "%s", error.text);
	/* The next incarnation listens at the same port. */
	snprintf(serve->address, sizeof(serve->address), "%s", info.address);
	status = start_rebuilder(serve, &options);
	return status ? status : start_files(serve, &options);
}

/* Opens the donor with all that goes with it. */
static int open_all(struct serve *serve)
{
	int status = open_donor(serve);

	if (status)
		return status;
	status = load_list(serve);
	if (!status)
		status = metrics_server_open(&serve->metrics_server, serve->cmd, &serve->metrics,
					     collect_metrics, serve);
	if (!status)
		status = join_pool(serve);
	if (status)
		close_donor(serve);
	return status;
}

/*
 * Serves until a signal ends the process. A donor whose pool has gone on without its memory starts
 * again, empty, at the same address.
 */
static int serve_incarnations(struct serve *serve, const sigset_t *all, int *sig)
{
	int status = open_all(serve);

	if (status)
		return status;
	say_ready(serve);
	tell_ready(serve);
	while ((*sig = wait_end(serve, all)) == RESTART_SIGNAL) {
		close_donor(serve);
		status = open_all(serve);
		if (status)
			return status;
		tell_ready(serve);
	}
	return EXIT_OK;
}

static int run_until_signal(struct serve *serve)
{
	sigset_t ends, all;
	int sig, status;

	hold_signals(&ends, &all);
	avoid_oom_kill();
	serve->page = donor_page_create();
	status = serve_incarnations(serve, &all, &sig);
	if (status)
		return status;
	notify_stopping();
	/* A second signal kills. LEND_SIGNAL stays blocked. */
	sigprocmask(SIG_UNBLOCK, &ends, NULL);
	log_event(WEIR_LOG_INFO, "stopping signal=%d", sig);
	close_donor(serve);
	return EXIT_OK;
}

static int check_pool_options(const struct serve *serve)
{
	if (!serve->pool && (serve->domain || serve->name || serve->advertise))
		return usage_error(serve->cmd, "--domain, --name and --advertise need --pool");
	if (serve->pool && serve->keys_path)
		return usage_error(serve->cmd,
				   "--pool needs --key: this donor proves the key to the pool's "
				   "other donors, and --keys does not say which one");
	if (serve->advertise && strchr(serve->advertise, ':'))
		return usage_error(serve->cmd,
				   "--advertise %s: expected an IPv4 address or a host's name; the "
				   "port is that of --listen",
				   serve->advertise);
	return EXIT_OK;
}

int cmd_serve(int argc, char **argv)
{
	struct serve serve = {
		.argc = argc,
		.argv = argv,
		.cmd = argv[0],
		.log_level = WEIR_LOG_INFO,
	};
	int status = cmdline_parse(&serve_line, argc, argv, &serve);

	if (status != CMDLINE_PARSED)
		return status;
	status = check_pool_options(&serve);
	if (status)
		return status;
	if (serve.keys_path && serve.nr_keys)
		return usage_error(argv[0], "--key and --keys exclude each other");
	log_set_level(serve.log_level);
	if (serve.no_encrypt && !client_parse_encrypt("off", NULL))
		return EXIT_FAILURE;
	status = device_choose(argv[0], serve.wanted, &serve.device);
	if (!status)
		status = load_keys(&serve);
	if (!status)
		status = decide_reserve(&serve);
	if (!status)
		status = run_until_signal(&serve);
	for (unsigned int i = 0; i < serve.nr_keys; i++)
		weir_key_free(serve.key[i]);
	key_list_wipe(&serve.keys.list);
	return status;
}
