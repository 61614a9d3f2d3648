/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir stat: prints counters of softnic and of sessions on this host, or the state of a donor. */
#include "apps/common/client.h"
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "apps/common/json.h"

#include "apps/common/pid.h"
#include "apps/inspect/cache_pressure.h"
#include "apps/inspect/memfd_scan.h"
#include "apps/inspect/session_print.h"
#include "apps/inspect/softnic_list.h"
#include "apps/common/size.h"
#include "apps/common/stop.h"
#include "apps/common/table.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/session.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const char usage[] =
	"Usage: weir stat [OPTION...]          counters of softnic and of sessions, for each\n"
	"                                      process of yours\n"
	"       weir stat [OPTION...] PID      all counters of a process's sessions\n"
	"       weir stat [OPTION...] DONOR    a donor's memory, clients and regions\n";

struct stat_options {
	const char *cmd, *donor, *device, *key;
	pid_t pid; /* or 0 */
	bool json, containers;
	double watch_s; /* 0: once */
	uint64_t entries; /* size of a NIC's translation cache; 0: as the session was configured */
};

static void print_processes(const struct softnic_list *softnic)
{
	static const char *const heads[] = { "process",	 "pid",	     "QPs",	  "MRs",
					     "send WRs", "recv WRs", "doorbells", "completions",
					     "events",	 "written",  "read",	  "sent" };
	struct text_table table;

	if (!softnic->count)
		return;
	table_init(&table, LENGTH(heads));
	for (size_t i = 0; i < LENGTH(heads); i++)
		table_add(&table, "%s", heads[i]);
	for (size_t i = 0; i < softnic->count; i++) {
		const struct softnic_counters *c = &softnic->process[i].counters;
		const uint64_t plain[] = { c->qps,	 c->mrs,	 c->send_wrs, c->recv_wrs,
					   c->doorbells, c->completions, c->cq_events };
		const uint64_t bytes[] = { c->write_bytes, c->read_bytes, c->send_bytes };

		table_add(&table, "%s", softnic->process[i].comm);
		table_add(&table, "%d", softnic->process[i].pid);
		for (size_t k = 0; k < LENGTH(plain); k++)
			table_add(&table, "%" PRIu64, plain[k]);
		for (size_t k = 0; k < LENGTH(bytes); k++)
			table_add(&table, "%s", size_format(bytes[k]).text);
	}
	table_print(&table, stdout);
	table_fini(&table);
}

static void add_peer(struct text_table *table, const struct softnic_process *process,
		     const struct softnic_peer *peer)
{
	const struct softnic_peer_counters *c = &peer->counters;
	const uint64_t plain[] = { c->packets_out,   c->packets_in,
				   c->retransmitted, c->duplicates,
				   c->gaps,	     c->timeouts,
				   c->naks_in,	     c->naks_out,
				   c->rnr_in,	     c->rnr_out };

	table_add(table, "%s", softnic_list_peer(peer).text);
	table_add(table, "%d", process->pid);
	table_add(table, "%s", size_format(c->bytes_out).text);
	table_add(table, "%s", size_format(c->bytes_in).text);
	for (size_t k = 0; k < LENGTH(plain); k++)
		table_add(table, "%" PRIu64, plain[k]);
}

static void print_peers(const struct softnic_list *softnic)
{
	static const char *const heads[] = { "peer",	"pid",	    "sent",	    "received",
					     "packets", "accepted", "sent again",   "duplicates",
					     "gaps",	"timeouts", "NAKs",	    "NAKs sent",
					     "RNR",	"RNR sent" };
	struct text_table table;
	size_t nr_peers = 0;

	for (size_t i = 0; i < softnic->count; i++)
		nr_peers += softnic->process[i].nr_peers;
	if (!nr_peers)
		return;
	putchar('\n');
	table_init(&table, LENGTH(heads));
	for (size_t i = 0; i < LENGTH(heads); i++)
		table_add(&table, "%s", heads[i]);
	for (size_t i = 0; i < softnic->count; i++)
		for (size_t k = 0; k < softnic->process[i].nr_peers; k++)
			add_peer(&table, &softnic->process[i], &softnic->process[i].peers[k]);
	table_print(&table, stdout);
	table_fini(&table);
}

static void print_peers_json(struct json *json, const struct softnic_process *process)
{
	json_open_array(json, "peers");
	for (size_t k = 0; k < process->nr_peers; k++) {
		const struct softnic_peer *peer = &process->peers[k];

		json_open_object(json, NULL);
		json_string(json, "peer", softnic_list_peer(peer).text);
#define PRINT_COUNTER(name, help) json_uint(json, #name, peer->counters.name);
		SOFTNIC_PEER_COUNTERS(PRINT_COUNTER)
#undef PRINT_COUNTER
		json_close(json);
	}
	json_close(json);
}

static void print_all(const struct softnic_list *softnic, const struct session_list *find)
{
	if (!softnic->count && !softnic->silent && !find->count)
		puts("no process of yours has softnic or a session open");
	print_processes(softnic);
	if (softnic->silent)
		printf("%zu more with softnic open: stopped, or without an answer\n",
		       softnic->silent);
	print_peers(softnic);
	if (softnic->count && find->count)
		putchar('\n');
	session_print_table(find);
}

static void print_all_json(const struct softnic_list *softnic, const struct session_list *find,
			   uint64_t entries)
{
	struct json json;

	json_begin(&json, stdout);
	json_string(&json, "device", "softnic0");
	json_uint(&json, "silent_processes", softnic->silent);
	json_open_array(&json, "processes");
	for (size_t i = 0; i < softnic->count; i++) {
		const struct softnic_process *process = &softnic->process[i];

		json_open_object(&json, NULL);
		json_uint(&json, "pid", (uint64_t)process->pid);
		json_string(&json, "process", process->comm);
#define PRINT_COUNTER(name, help) json_uint(&json, #name, process->counters.name);
		SOFTNIC_COUNTERS(PRINT_COUNTER)
#undef PRINT_COUNTER
		print_peers_json(&json, process);
		json_close(&json);
	}
	json_close(&json);
	session_print_json(find, entries, &json);
	json_end(&json);
}

static int stat_host(const struct stat_options *options)
{
	struct softnic_list softnic;
	struct session_list find = { 0 };
	int rc = softnic_list_take(&softnic);

	if (!rc)
		rc = session_list_add_all(&find);
	if (!rc && options->json)
		print_all_json(&softnic, &find, options->entries);
	else if (!rc)
		print_all(&softnic, &find);
	softnic_list_free(&softnic);
	session_list_free(&find);
	return rc ? failure(options->cmd, "cannot query the processes of this host: %s",
			    strerror(-rc)) :
		    EXIT_OK;
}

static int print_sessions(const struct stat_options *options, const struct session_list *find)
{
	struct json json;

	if (!find->count)
		return session_list_empty_failure(find, options->cmd, options->pid);
	if (!options->json) {
		session_print_detail(find, options->entries);
		return EXIT_OK;
	}
	json_begin(&json, stdout);
	session_print_json(find, options->entries, &json);
	json_end(&json);
	return EXIT_OK;
}

static int stat_process(const struct stat_options *options)
{
	struct session_list find = { 0 };
	int status, rc = session_list_add_process(&find, options->pid);

	status = rc ? session_list_failure(options->cmd, options->pid, rc) :
		      print_sessions(options, &find);
	session_list_free(&find);
	return status;
}

static void print_donor(const struct weir_session_info *session,
			const struct weir_donor_state *state)
{
	printf("donor        %s\n", session->peer);
	printf("device       %s\n", session->device);
	if (*session->encryption)
		printf("encryption   %s\n", session->encryption);
	printf("incarnation  %016" PRIx64 "\n", state->incarnation);
	printf("memory       %s of %s lent\n", size_format(state->lent_bytes).text,
	       size_format(state->memory_bytes).text);
	printf("quota        %s per client\n", size_format(state->quota_bytes).text);
	printf("clients      %u, this one included\n", state->clients);
	printf("regions      %u\n", state->regions);
}

static void print_donor_json(const struct weir_session_info *session,
			     const struct weir_donor_state *state)
{
	char incarnation[17];
	struct json json;

	/* Not a number: many readers of JSON round integers beyond 2^53. */
	snprintf(incarnation, sizeof(incarnation), "%016" PRIx64, state->incarnation);
	json_begin(&json, stdout);
	json_string(&json, "donor", session->peer);
	json_string(&json, "device", session->device);
	json_string(&json, "encryption", session->encryption);
	json_string(&json, "incarnation", incarnation);
	json_uint(&json, "memory_bytes", state->memory_bytes);
	json_uint(&json, "lent_bytes", state->lent_bytes);
	json_uint(&json, "quota_bytes", state->quota_bytes);
	json_uint(&json, "clients", state->clients);
	json_uint(&json, "regions", state->regions);
	json_end(&json);
}

static int stat_donor(const struct stat_options *options, struct weir_session *session)
{
	struct weir_session_info info;
	struct weir_donor_state state;
	int rc = weir_session_donor_state(session, &state, sizeof(state));

	if (rc)
		return failure(options->cmd, "%s: %s", options->donor, weir_strerror(rc));
	weir_session_info(session, &info, sizeof(info));
	if (options->json)
		print_donor_json(&info, &state);
	else
		print_donor(&info, &state);
	return EXIT_OK;
}

/* Prints once or repeatedly, until a failure, a stop request, or an error on standard output. */
static int repeat(const struct stat_options *options, struct cmd_client *client)
{
	bool clear = options->watch_s > 0 && !options->json && isatty(STDOUT_FILENO);
	int status;

	do {
		if (clear)
			fputs("\033[H\033[2J", stdout);
		status = client	      ? stat_donor(options, client->session) :
			 options->pid ? stat_process(options) :
					stat_host(options);
		fflush(stdout);
		if (status || options->watch_s <= 0)
			return status;
		stop_or_sleep(options->watch_s);
	} while (!stop_requested() && !ferror(stdout));
	return EXIT_OK;
}

static int visit_donor(struct stat_options *options)
{
	const char *device;
	struct cmd_client client;
	int status = device_choose(options->cmd, options->device, &device);

	if (!status)
		status = client_open(&client, options->cmd, options->donor, device, options->key);
	if (status)
		return status;
	if (options->watch_s > 0)
		stop_on_signals();
	status = repeat(options, &client);
	client_close(&client);
	return status;
}

static bool parse_nic(const char *text, void *options)
{
	return !cache_pressure_entries(text, &((struct stat_options *)options)->entries);
}

static const struct cmdline_option stat_options[] = {
	CMDLINE_JSON(struct stat_options, json),
	{ "watch", 'w', "[=SECONDS]", "repeat; default every second",
	  CMDLINE_SECONDS(struct stat_options, watch_s, 0.1, 3600), .fallback = "1" },
	{ "nic", 'n', "NIC",
	  "the donor's NIC, for estimates of its cache: a profile of weir\n"
	  "lab (connectx-3, connectx-5), or the cache's size in pages;\n"
	  "default: as the session was configured",
	  CMDLINE_PARSE(parse_nic,
			"a profile of weir lab, such as connectx-5, or a number of pages") },
	MEMFD_SCAN_OPTION(struct stat_options, containers),
	CLIENT_KEY_OPTION(struct stat_options, key),
	CLIENT_ENCRYPT_OPTION,
	DEVICE_OPTION(struct stat_options, device),
	{ NULL },
};

static const struct cmdline stat_line = {
	.usage = usage,
	.options = stat_options,
	.arguments = "at most one PID or DONOR",
	.arguments_max = 1,
};

int cmd_stat(int argc, char **argv)
{
	struct stat_options options = { .cmd = argv[0] };
	int status = cmdline_parse(&stat_line, argc, argv, &options);

	if (status != CMDLINE_PARSED)
		return status;
	memfd_scan_include_containers(options.containers);
	options.donor = argv[optind];
	if (options.donor && !pid_parse(options.donor, &options.pid))
		return visit_donor(&options);
	if (options.watch_s > 0)
		stop_on_signals();
	return repeat(&options, NULL);
}
