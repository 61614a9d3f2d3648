/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir top: the tenants of weir share, and how much each gets. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"

#include "apps/share/snapshot.h"
#include "apps/common/size.h"
#include "apps/common/stop.h"
#include "apps/common/table.h"


#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const char usage[] =
	"Usage: weir top [OPTION...]\n"
	"Shows the tenants of weir share on this host: bytes sent and received, mean wait for a\n"
	"turn, and the share of all bytes sent, beside the share due by weight if all goes to\n"
	"one host. Root sees all tenants, other users see their own.\n";

struct top {
	const char *cmd, *socket;
	bool flows, once, json;
	double interval_s;
	struct share_snapshot old, new;
};

/* A tenant's rates between two snapshots. */
struct share_rates {
	double sent_s, received_s; /* bytes a second */
	double delay_us; /* mean wait for a turn */
	double share, due; /* of all bytes sent; due by weight: fractions of 1 */
};

static double per_second(const struct top *top, uint64_t old, uint64_t new)
{
	uint64_t ns = top->new.at_ns - top->old.at_ns;

	return new > old &&ns ? (double)(new - old) * 1e9 / (double)ns : 0;
}

/* Bytes sent since the last snapshot, or since the tenant came. */
static uint64_t bytes_sent_by(const struct top *top, const struct share_snapshot_tenant *tenant)
{
	const struct share_snapshot_tenant *old = share_snapshot_tenant(&top->old, tenant->is.nr);

	return tenant->is.bytes_sent - (old ? old->is.bytes_sent : 0);
}

static uint64_t sent_by_group(const struct top *top, uint64_t group)
{
	uint64_t bytes = 0;
	size_t i;

	for (i = 0; i < top->new.count; i++)
		if (top->new.tenants[i].is.group_id == group)
			bytes += bytes_sent_by(top, &top->new.tenants[i]);
	return bytes;
}

/* Whether the tenant is the first of its party, which shows the party's columns. */
static bool is_first(const struct top *top, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (top->new.tenants[i].is.group_id == top->new.tenants[nr].is.group_id)
			return false;
	return true;
}

/* The party's part of all bytes sent, and of the weights of all senders. */
static void party_shares(const struct top *top, const struct weir_mux_ipc_tenant *of,
			 struct share_rates *rates)
{
	uint64_t own = sent_by_group(top, of->group_id), bytes = 0, weights = 0, sent;
	size_t i;

	for (i = 0; i < top->new.count; i++) {
		const struct weir_mux_ipc_tenant *is = &top->new.tenants[i].is;

		if (!is_first(top, i))
			continue;
		sent = sent_by_group(top, is->group_id);
		bytes += sent;
		weights += sent ? is->weight : 0;
	}
	rates->share = bytes ? (double)own / (double)bytes : 0;
	rates->due = own ? (double)of->weight / (double)weights : 0;
}

static struct share_rates rates_of(const struct top *top,
				   const struct share_snapshot_tenant *tenant)
{
	static const struct share_snapshot_tenant nobody;
	const struct weir_mux_ipc_tenant *is = &tenant->is;
	const struct share_snapshot_tenant *found = share_snapshot_tenant(&top->old, is->nr);
	const struct weir_mux_ipc_tenant *old = found ? &found->is : &nobody.is;
	struct share_rates rates = {
		.sent_s = per_second(top, old->bytes_sent, is->bytes_sent),
		.received_s = per_second(top, old->bytes_received, is->bytes_received),
	};
	uint64_t turns = is->turns - old->turns;

	if (turns)
		rates.delay_us = (double)(is->waited_ns - old->waited_ns) / 1e3 / (double)turns;
	party_shares(top, is, &rates);
	return rates;
}

/* The cgroup, or the user's name. */
static const char *party_name(const struct weir_mux_ipc_tenant *is, char *buffer, size_t size)
{
	const struct passwd *user;

	if (is->cgroup[0])
		return is->cgroup;
	user = getpwuid(is->uid);
	snprintf(buffer, size, "%u", is->uid);
	return user ? user->pw_name : buffer;
}

static void tenant_row(const struct top *top, struct text_table *table,
		       const struct share_snapshot_tenant *tenant)
{
	struct share_rates rates = rates_of(top, tenant);
	char name[16];

	table_add(table, "%s", party_name(&tenant->is, name, sizeof(name)));
	table_add(table, "%s", tenant->is.name);
	table_add(table, "%u", tenant->is.pid);
	table_add(table, "%u", tenant->is.connections);
	table_add(table, "%s/s", size_format((uint64_t)rates.sent_s).text);
	table_add(table, "%s/s", size_format((uint64_t)rates.received_s).text);
	table_add(table, "%.1f us", rates.delay_us);
	table_add(table, "%u", tenant->is.weight);
	table_add(table, "%.1f %%", rates.share * 100);
	table_add(table, "%.1f %%", rates.due * 100);
	table_add(table, "%s", size_format(tenant->is.memory_bytes).text);
}

static void tenants_print(const struct top *top)
{
	static const char *const heads[] = { "party", "process",  "pid",   "connections",
					     "sends", "receives", "waits", "weight",
					     "share", "due",	  "memory" };
	struct text_table table;
	size_t i;

	table_init(&table, LENGTH(heads));
	for (i = 0; i < LENGTH(heads); i++)
		table_add(&table, "%s", heads[i]);
	for (i = 0; i < top->new.count; i++)
		tenant_row(top, &table, &top->new.tenants[i]);
	table_print(&table, stdout);
	table_fini(&table);
}

static void flow_row(const struct top *top, struct text_table *table,
		     const struct share_snapshot_tenant *tenant,
		     const struct weir_mux_ipc_flow *flow)
{
	static const struct weir_mux_ipc_flow nothing;
	const struct share_snapshot_tenant *before =
		share_snapshot_tenant(&top->old, tenant->is.nr);
	const struct weir_mux_ipc_flow *old = share_snapshot_flow(before, flow->nr);

	old = old ? old : &nothing;
	table_add(table, "%u", tenant->is.pid);
	table_add(table, "%u", flow->nr);
	table_add(table, "%s", flow->peer);
	table_add(table, "%u", flow->class_nr);
	table_add(table, "%u", flow->weight);
	table_add(table, "%s/s",
		  size_format((uint64_t)per_second(top, old->bytes_sent, flow->bytes_sent)).text);
	table_add(table, "%s/s",
		  size_format((uint64_t)per_second(top, old->bytes_received, flow->bytes_received))
			  .text);
	table_add(table, "%s", size_format(flow->queued_bytes).text);
}

static void flows_print(const struct top *top)
{
	static const char *const heads[] = { "pid",    "connection", "to",	 "class",
					     "weight", "sends",	     "receives", "queued" };
	struct text_table table;
	size_t i, k;

	table_init(&table, LENGTH(heads));
	for (i = 0; i < LENGTH(heads); i++)
		table_add(&table, "%s", heads[i]);
	for (i = 0; i < top->new.count; i++)
		for (k = 0; k < top->new.tenants[i].nr_flows; k++)
			flow_row(top, &table, &top->new.tenants[i], &top->new.tenants[i].flows[k]);
	putchar('\n');
	table_print(&table, stdout);
	table_fini(&table);
}

static void flows_json(struct json *json, const struct share_snapshot_tenant *tenant)
{
	size_t i;

	json_open_array(json, "flows");
	for (i = 0; i < tenant->nr_flows; i++) {
		const struct weir_mux_ipc_flow *flow = &tenant->flows[i];

		json_open_object(json, NULL);
		json_uint(json, "connection", flow->nr);
		json_string(json, "to", flow->peer);
		json_uint(json, "class", flow->class_nr);
		json_uint(json, "weight", flow->weight);
		json_uint(json, "bytes_sent", flow->bytes_sent);
		json_uint(json, "bytes_received", flow->bytes_received);
		json_uint(json, "queued_bytes", flow->queued_bytes);
		json_close(json);
	}
	json_close(json);
}

static void tenant_json(const struct top *top, struct json *json,
			const struct share_snapshot_tenant *tenant)
{
	const struct weir_mux_ipc_tenant *is = &tenant->is;
	struct share_rates rates = rates_of(top, tenant);
	char name[16];

	json_open_object(json, NULL);
	json_string(json, "party", party_name(is, name, sizeof(name)));
	json_string(json, "process", is->name);
	json_uint(json, "pid", is->pid);
	json_uint(json, "connections", is->connections);
	json_uint(json, "connections_max", is->connections_max);
	json_uint(json, "bytes_sent", is->bytes_sent);
	json_uint(json, "bytes_received", is->bytes_received);
	json_uint(json, "turns", is->turns);
	json_uint(json, "waited_ns", is->waited_ns);
	json_double(json, "sends_bytes_s", rates.sent_s);
	json_double(json, "receives_bytes_s", rates.received_s);
	json_double(json, "waits_us", rates.delay_us);
	json_uint(json, "weight", is->weight);
	json_double(json, "share", rates.share);
	json_double(json, "due", rates.due);
	json_uint(json, "memory_bytes", is->memory_bytes);
	json_uint(json, "rate_bytes_s", is->rate_bytes_s);
	if (top->flows)
		flows_json(json, tenant);
	json_close(json);
}

static void print_json(const struct top *top)
{
	struct json json;
	size_t i;

	json_begin_line(&json, stdout);
	json_double(&json, "seconds", (double)(top->new.at_ns - top->old.at_ns) / 1e9);
	json_open_array(&json, "tenants");
	for (i = 0; i < top->new.count; i++)
		tenant_json(top, &json, &top->new.tenants[i]);
	json_close(&json);
	json_end(&json);
}

static void print_table(const struct top *top)
{
	if (top->json) {
		print_json(top);
	} else {
		if (!top->once && isatty(STDOUT_FILENO))
			fputs("\033[H\033[2J", stdout);
		if (!top->new.count)
			puts("weir share has no tenants that you may see");
		else
			tenants_print(top);
		if (top->flows && top->new.count)
			flows_print(top);
	}
	fflush(stdout);
}

static int refresh_until_stopped(struct top *top)
{
	struct weir_error error;
	int rc = share_snapshot_take(&top->old, top->socket, top->flows, &error);

	stop_on_signals();
	while (!rc) {
		stop_or_sleep(top->interval_s);
		if (stop_requested() || ferror(stdout))
			break;
		rc = share_snapshot_take(&top->new, top->socket, top->flows, &error);
		if (rc)
			break;
		print_table(top);
		share_snapshot_fini(&top->old);
		top->old = top->new;
		if (top->once)
			break;
	}
	share_snapshot_fini(&top->old);
	return rc ? failure(top->cmd, "%s", error.text) : EXIT_OK;
}

static const struct cmdline_option top_options[] = {
	{ "socket", 's', "PATH",
	  "of weir share; default $WEIR_SHARE, or else\n" WEIR_MUX_IPC_SOCKET,
	  CMDLINE_TEXT(struct top, socket) },
	{ "flows", 'f', NULL, "also show each tenant's connections",
	  CMDLINE_FLAG(struct top, flows) },
	{ "interval", 'i', "SECONDS", "between updates; default 1",
	  CMDLINE_SECONDS(struct top, interval_s, 0.01, 86400) },
	{ "once", '1', NULL, "show one interval and exit", CMDLINE_FLAG(struct top, once) },
	{ "json", 'j', NULL, "print a JSON line for each interval",
	  CMDLINE_FLAG(struct top, json) },
	{ NULL },
};

static const struct cmdline top_line = { .usage = usage, .options = top_options };

int cmd_top(int argc, char **argv)
{
	const char *socket = getenv("WEIR_SHARE");
	struct top top = { .cmd = argv[0],
			   .interval_s = 1,
			   .socket = socket && *socket ? socket : WEIR_MUX_IPC_SOCKET };
	int status = cmdline_parse(&top_line, argc, argv, &top);

	return status == CMDLINE_PARSED ? refresh_until_stopped(&top) : status;
}
