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
#include "apps/sandbox/sandbox.h"
#include "apps/serve/available_memory.h"
#include "apps/serve/donor_keys.h"
#include "apps/serve/donor_metrics.h"
#include "apps/serve/donor_page.h"
#include "apps/serve/key_set.h"
#include "apps/serve/membership.h"
#include "apps/serve/memory_target.h"
#include "apps/log/log.h"
#include "apps/serve/tenant.h"
#include "apps/serve/web/web.h"
#include "apps/services.h"
#include "lib/base/clock.h"
#include "lib/conn/address.h"
#include "lib/conn/listener.h"

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

/* @asked: of --memory, or 0; @memory: that, or its default; @is_reserved: taken at the start */
struct serve {
	int argc;
	char **argv;
	const char *cmd, *listen, *wanted, *device, *keys_path, *identity_path;
	struct weir_identity *identity;
	uint64_t asked, memory, quota, key_memory, spare;
	const char *key_path[KEYS_MAX];
	struct weir_key *key[KEYS_MAX];
	enum weir_log_level log_level;
	enum log_format log;
	unsigned int nr_keys, key_clients, cpu_percent, keepalive;
	bool reserve, is_reserved, no_reserve, no_huge_pages, no_encrypt, no_sandbox, json;
	struct http_options metrics, web;
	struct metrics_server *metrics_server;
	struct http_server *web_server;
	struct donor_keys keys; /* with @keys_path */
	struct key_set *key_set; /* the donor's keys now; NULL: none */
	struct fs_tenants tenants;
	struct weir_donor *donor;
	struct membership membership;
	char address[64]; /* the same for each incarnation in a pool */
	int page; /* for weir top; less than 0: no descriptor */
	struct donor_page_keys answer; /* for weir key */
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
	  CMDLINE_CHECKED(struct serve, listen, weir_address_is_well_formed,
			  "host, host:port or [v6]:port") },
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
	if (weir_listener_check(serve->listen, "a donor", serve->nr_keys || serve->keys_path,
				&list, error))
		return false;
	freeaddrinfo(list);
	return true;
}

static int check_together(const char *cmd, const void *options)
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
		return usage_error(cmd, "--metrics and --web cannot share %s",
				   serve->web.address);
	return can_listen(serve, &error) ? EXIT_OK : failure(cmd, "%s", error.text);
}

const struct cmdline serve_line = {
	.usage = usage,
	.options = serve_options,
	.notes = notes,
	.section = "serve",
	.check = check_together,
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

/* Clients of @key would refuse this donor. */
static bool is_of_another_donor(const struct weir_key *key, const struct weir_identity *identity)
{
	unsigned char public[32];

	if (!key->nr_donors)
		return false;
	if (identity)
		weir_identity_public(identity, public);
	for (unsigned int i = 0; identity && i < key->nr_donors; i++)
		if (!memcmp(key->donors[i], public, sizeof(public)))
			return false;
	return true;
}

static int load_keys(struct serve *serve)
{
	struct weir_error error;

	if (serve->identity_path &&
	    weir_identity_load(serve->identity_path, &serve->identity, &error))
		return failure(serve->cmd, "%s", error.text);
	for (unsigned int i = 0; i < serve->nr_keys; i++) {
		if (weir_key_load(serve->key_path[i], &serve->key[i], &error))
			return failure(serve->cmd, "%s", error.text);
		if (is_of_another_donor(serve->key[i], serve->identity))
			return failure(serve->cmd,
				       "%s names other donors, so its clients would refuse this "
				       "one: give --identity, or add the line of 'weir key "
				       "identity' to it",
				       serve->key_path[i]);
	}
	return 0;
}

/* An amount that the operator has named is a promise to clients, so it is taken now. */
static int decide_reserve(struct serve *serve)
{
	uint64_t available = available_memory("");

	serve->is_reserved = serve->reserve ||
			     (!serve->no_reserve && serve->asked && !serve->spare);
	serve->memory = serve->asked ? serve->asked : default_memory();
	if (!serve->is_reserved || serve->memory <= available)
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

/*
 * Whether the donor gets its keys only once it is open: rights are no option of a donor. A single
 * key needs none.
 */
static bool has_rights(const struct serve *serve)
{
	return serve->keys_path || (serve->membership.pool && serve->nr_keys > 1);
}

static int open_donor(struct serve *serve)
{
	bool by_set = has_rights(serve);
	struct weir_donor_options options = {
		.size = sizeof(options),
		.listen = *serve->address ? serve->address : serve->listen,
		.device = serve->device,
		.keys = by_set ? NULL : (const struct weir_key *const *)serve->key,
		.nr_keys = by_set ? 0 : serve->nr_keys,
		.tenants_max = by_set ? DONOR_TENANTS_MAX : 0,
		.memory_bytes = serve->memory,
		.quota_bytes = serve->quota,
		.key_bytes_max = serve->key_memory,
		.key_clients_max = serve->key_clients,
		/* softnic's peers cannot map huge pages */
		.no_huge_pages = serve->no_huge_pages || device_is_softnic(),
		.unload_percent_max = serve->cpu_percent,
		.keepalive_ms = serve->keepalive * 1000,
		.reserve = serve->is_reserved,
		.encryption = client_encryption(),
		.identity = serve->identity,
	};
	struct weir_error error;
	uint64_t fs_bytes = serve->quota && serve->quota < serve->memory ? serve->quota :
									   serve->memory;

	unsigned int nr_tenants = by_set ? DONOR_TENANTS_MAX : serve->nr_keys ? serve->nr_keys : 1;

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

/* Before the donor listens: without a good list it would admit nobody, so it does not start. */
static int read_list(struct serve *serve, struct key_list **list)
{
	struct weir_error error;

	if (serve->keys_path && donor_keys_read(serve->keys_path, serve->membership.pool, list,
						&serve->answer.list, &error))
		return failure(serve->cmd, "%s", error.text);
	return EXIT_OK;
}

/* The keys of --key: the first is also the one that donors of a pool prove to each other. */
static struct key_set *make_fixed_set(const struct serve *serve)
{
	struct key_set *set = key_set_new(serve->nr_keys);

	for (unsigned int i = 0; set && i < set->nr; i++) {
		set->memory[i] = *serve->key[i];
		set->key[i] = (struct weir_donor_key){
			.key = &set->memory[i],
			.tenant = i,
			.rights = WEIR_RIGHTS_ALL | (i ? 0 : WEIR_RIGHT_POOL),
		};
		set->pool = &set->memory[0];
	}
	return set;
}

static int set_fixed_keys(struct serve *serve)
{
	struct weir_error error;

	if (!serve->nr_keys)
		return EXIT_OK;
	serve->key_set = make_fixed_set(serve);
	if (!serve->key_set)
		return failure(serve->cmd, "out of memory");
	if (has_rights(serve) &&
	    weir_donor_keys_set(serve->donor, serve->key_set->key, serve->key_set->nr, &error))
		return failure(serve->cmd, "%s", error.text);
	return EXIT_OK;
}

/* @list: given, or NULL */
static int set_keys(struct serve *serve, struct key_list *list)
{
	struct weir_error error;

	if (!list)
		return set_fixed_keys(serve);
	donor_keys_fini(&serve->keys); /* of an earlier incarnation */
	if (donor_keys_set(&serve->keys, list, &serve->tenants, &serve->key_set, &error))
		return failure(serve->cmd, "%s", error.text);
	return EXIT_OK;
}

static int try_reload_list(struct serve *serve, struct weir_error *error)
{
	struct weir_error of_pool;
	struct key_set *set;
	int rc = donor_keys_reload(&serve->keys, serve->keys_path, serve->membership.pool,
				   &serve->tenants, &set, &serve->answer.list, error);

	if (!set) {
		log_event(WEIR_LOG_ERROR, "keys not reloaded, the old ones stay id=W301: %s",
			  error->text);
		return rc;
	}
	if (rc)
		log_event(WEIR_LOG_ERROR,
			  "keys not reloaded, but those not in the list are gone id=W301: %s",
			  error->text);
	key_set_put(serve->key_set);
	serve->key_set = set;
	if (!membership_set_keys(&serve->membership, set, &of_pool))
		return rc;
	log_event(WEIR_LOG_ERROR, "keys not reloaded in the pool id=W301: %s", of_pool.text);
	*error = rc ? *error : of_pool;
	return rc ? rc : -ENOMEM;
}

/* 'weir key' waits for the answer. */
static void reload_list(struct serve *serve)
{
	struct weir_error error = { "" };

	if (!serve->keys_path)
		return;
	memset(&serve->answer, 0, sizeof(serve->answer));
	serve->answer.status = try_reload_list(serve, &error);
	if (serve->answer.status)
		snprintf(serve->answer.reason, sizeof(serve->answer.reason), "%s", error.text);
	if (serve->page >= 0)
		donor_page_update(serve->page, serve->donor, &serve->answer);
}

/* Does nothing without a donor. */
static void close_donor(struct serve *serve)
{
	if (!serve->donor)
		return;
	membership_leave(&serve->membership);
	http_server_close(serve->web_server);
	serve->web_server = NULL;
	metrics_server_close(serve->metrics_server);
	serve->metrics_server = NULL;
	weir_donor_close(serve->donor);
	serve->donor = NULL;
	tenants_fini(&serve->tenants);
	key_set_put(serve->key_set);
	serve->key_set = NULL;
}

/* Without memory or descriptors a group is missing for once. */
static void collect_metrics(struct exposition *x, void *arg)
{
	struct serve *serve = arg;

	build_metrics_collect(x);
	span_metrics_collect(x);
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
		json_boolean(&json, "reserved", serve->is_reserved);
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
			log_event(WEIR_LOG_WARNING, "unchanged option=%s id=W302: needs a restart",
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
		log_event(WEIR_LOG_ERROR, "not reloaded id=W303: the old options stay");
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
	uint64_t ns =
		lesser(PAGE_INTERVAL_NS, notify_interval_ns() ? notify_interval_ns() : UINT64_MAX);

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
			donor_page_update(serve->page, serve->donor, &serve->answer);
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

static int join_pool(struct serve *serve)
{
	const struct joining_donor donor = {
		.cmd = serve->cmd,
		.device = serve->device,
		.donor = serve->donor,
		.keys = serve->key_set,
		.identity = serve->identity,
		.on_restart = ask_restart,
	};
	struct weir_donor_info info;

	/* The next incarnation listens at the same port. */
	weir_donor_info(serve->donor, &info, sizeof(info));
	snprintf(serve->address, sizeof(serve->address), "%s", info.address);
	return membership_join(&serve->membership, &donor);
}

/* Opens the donor with all that goes with it. */
static int open_all(struct serve *serve)
{
	struct key_list *list = NULL;
	int status = read_list(serve, &list);

	if (status)
		return status;
	status = open_donor(serve);
	if (status) {
		key_list_free(list);
		return status;
	}
	status = set_keys(serve, list);
	if (!status)
		status = metrics_server_open(&serve->metrics_server, serve->cmd, &serve->metrics,
					     collect_metrics, serve);
	if (!status)
		status = web_open(&serve->web_server, serve->cmd, &serve->web, serve->donor);
	if (!status)
		status = join_pool(serve);
	if (status)
		close_donor(serve);
	return status;
}

/*
 * Without a bound one tenant's clients can take all memory that the others have not taken yet. The
 * key of a pool's donors is meant to have all.
 */
static void warn_of_no_quota(const struct serve *serve)
{
	const struct key_set *set = serve->key_set;
	unsigned int without = 0;
	bool has_several = false;

	for (unsigned int i = 0; set && i < set->nr; i++) {
		has_several |= set->key[i].tenant != set->key[0].tenant;
		without += !set->key[i].bytes_max &&
			   !(serve->membership.pool && set->key[i].rights & WEIR_RIGHT_POOL);
	}
	if (without && has_several && !serve->key_memory)
		log_event(WEIR_LOG_WARNING,
			  "no quota keys=%u id=W207: each of these keys may take all free memory: "
			  "see --key-memory, and --quota of 'weir key add'",
			  without);
}

/*
 * What is missing may come back: the map of a pool, the list of keys, the port.
 * Return: 0; the signal that ends the process.
 */
static int open_again(struct serve *serve, const sigset_t *set)
{
	const struct timespec pause = { .tv_sec = 1 };
	int sig;

	while (open_all(serve)) {
		notify_alive();
		sig = sigtimedwait(set, NULL, &pause);
		if (sig == SIGINT || sig == SIGTERM)
			return sig;
	}
	tell_ready(serve);
	return 0;
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
	if (!serve->no_sandbox)
		sandbox_enter(serve->cmd);
	warn_of_no_quota(serve);
	say_ready(serve);
	tell_ready(serve);
	while ((*sig = wait_end(serve, all)) == RESTART_SIGNAL) {
		close_donor(serve);
		*sig = open_again(serve, all);
		if (*sig)
			break;
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
	log_begin(argv[0], serve.log);
	log_set_level(serve.log_level);
	status = check_together(argv[0], &serve);
	if (status)
		return status;
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
	weir_identity_free(serve.identity);
	donor_keys_fini(&serve.keys);
	return status;
}
