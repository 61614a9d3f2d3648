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
#include "apps/serve/donor_metrics.h"
#include "apps/serve/serve.h"
#include "apps/serve/web/web.h"
#include "apps/services.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_MAX (256ull << 20)
#define OOM_SCORE_ADJ (-500) /* as if the donor used half of the machine's memory less */
#define RESTART_SIGNAL (SIGRTMIN + 1) /* from this process: see LEND_SIGNAL for the first */
#define PAGE_INTERVAL_NS WEIR_NS_PER_S
#define REOPEN_PAUSE_MAX_S 16
#define CHUNKS 16 /* chunks per file system, roughly: unused chunks can be lent as regions */

static uint64_t default_memory(void)
{
	uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t quarter = ram / 4 / SERVE_PAGE * SERVE_PAGE;

	return quarter ? quarter : SERVE_PAGE;
}

static uint64_t chunk_bytes(uint64_t memory)
{
	uint64_t chunk = memory / CHUNKS / SERVE_PAGE * SERVE_PAGE;

	if (chunk < SERVE_PAGE)
		return SERVE_PAGE;
	return chunk < CHUNK_MAX ? chunk : CHUNK_MAX;
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

static int open_donor(struct serve *serve)
{
	bool by_set = admission_has_rights(serve);
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

/* On a mistake the old options stay. */
static void reload(struct serve *serve, struct memory_target *target)
{
	struct serve new = { .cmd = serve->cmd, .log_level = WEIR_LOG_INFO };

	notify_reloading();
	if (cmdline_parse(&serve_line, serve->argc, serve->argv, &new) == CMDLINE_PARSED) {
		serve_change_options(serve, &new, target);
		log_event(WEIR_LOG_INFO, "reloaded limit=%" PRIu64, target->limit);
	} else {
		log_event(WEIR_LOG_ERROR, "not reloaded id=W303: the old options stay");
	}
	admission_reload(serve);
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
	int status = admission_read_list(serve, &list);

	if (status)
		return status;
	status = open_donor(serve);
	if (status) {
		key_list_free(list);
		return status;
	}
	status = admission_set_keys(serve, list);
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
 * What is missing may come back: the map of a pool, the list of keys, the port. Other signals than
 * @ends stay for wait_end(). Return: 0; the signal that ends the process.
 */
static int open_again(struct serve *serve, const sigset_t *ends)
{
	struct timespec pause = { .tv_sec = 1 };
	int sig;

	while (open_all(serve)) {
		notify_alive();
		sig = sigtimedwait(ends, NULL, &pause);
		if (sig > 0)
			return sig;
		pause.tv_sec = (time_t)lesser(2 * (uint64_t)pause.tv_sec, REOPEN_PAUSE_MAX_S);
	}
	tell_ready(serve);
	return 0;
}

/*
 * Serves until a signal ends the process. A donor whose pool has gone on without its memory starts
 * again, empty, at the same address.
 */
static int serve_incarnations(struct serve *serve, const sigset_t *ends, const sigset_t *all,
			      int *sig)
{
	int status = open_all(serve);

	if (status)
		return status;
	if (!serve->no_sandbox)
		sandbox_enter(serve->cmd);
	admission_warn_of_no_quota(serve);
	say_ready(serve);
	tell_ready(serve);
	while ((*sig = wait_end(serve, all)) == RESTART_SIGNAL) {
		close_donor(serve);
		*sig = open_again(serve, ends);
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
	status = serve_incarnations(serve, &ends, &all, &sig);
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
	status = serve_check(argv[0], &serve);
	if (status)
		return status;
	if (serve.no_encrypt && !client_parse_encrypt("off", NULL))
		return EXIT_FAILURE;
	status = device_choose(argv[0], serve.wanted, &serve.device);
	if (!status)
		status = admission_load_keys(&serve);
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
