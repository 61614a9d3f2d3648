/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/json.h"
#include "apps/perf/exchange/exchange.h"
#include "apps/common/size.h"
#include "apps/common/table.h"

#include <stdio.h>

static double each(const struct outcome *outcome, uint64_t count)
{
	return (double)count / (double)outcome->received.messages;
}

/* The maximum of all times, from connection until everything is taken. */
static double seconds_of(const struct outcome *outcome)
{
	uint64_t ns = outcome->sent.wall_ns;

	return (double)(ns > outcome->received.wall_ns ? ns : outcome->received.wall_ns) / 1e9;
}

static double rate(const struct outcome *outcome)
{
	return (double)outcome->received.messages / seconds_of(outcome);
}

static void add_rows(struct text_table *table, const char *side, const struct outcome *outcomes,
		     unsigned int count, size_t at)
{
	static const struct {
		const char *name;
		size_t offset;
	} rows[] = {
		{ "work requests", offsetof(struct exchange_tally, wrs) },
		{ "receives posted", offsetof(struct exchange_tally, recvs) },
		{ "doorbells", offsetof(struct exchange_tally, doorbells) },
		{ "completions", offsetof(struct exchange_tally, completions) },
		{ "events", offsetof(struct exchange_tally, events) },
	};
	unsigned int row, i;

	for (row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		table_add(table, "%s's %s", side, rows[row].name);
		for (i = 0; i < count; i++) {
			const char *tally = (const char *)&outcomes[i] + at;

			if (outcomes[i].carrier == CARRIER_TCP)
				table_add(table, "-");
			else
				table_add(table, "%.4f",
					  each(&outcomes[i],
					       *(const uint64_t *)(tally + rows[row].offset)));
		}
	}
}

static void add_confirms(struct text_table *table, const struct outcome *outcomes,
			 unsigned int count)
{
	unsigned int i;

	table_add(table, "both: without data");
	for (i = 0; i < count; i++) {
		const struct outcome *o = &outcomes[i];

		if (o->carrier == CARRIER_TCP)
			table_add(table, "-");
		else
			table_add(table, "%.4f", each(o, o->sent.confirms + o->received.confirms));
	}
}

static void add_speed(struct text_table *table, const struct exchange_options *o,
		      const struct outcome *outcomes, unsigned int count)
{
	unsigned int i;

	table_add(table, "messages a second");
	for (i = 0; i < count; i++)
		table_add(table, "%.0f", rate(&outcomes[i]));
	table_add(table, "bytes a second");
	for (i = 0; i < count; i++)
		table_add(table, "%s",
			  size_format((uint64_t)(rate(&outcomes[i]) * (double)o->size)).text);
	table_add(table, "sender's CPU, us");
	for (i = 0; i < count; i++)
		table_add(table, "%.2f", each(&outcomes[i], outcomes[i].sent.cpu_ns) / 1e3);
	table_add(table, "receiver's CPU, us");
	for (i = 0; i < count; i++)
		table_add(table, "%.2f", each(&outcomes[i], outcomes[i].received.cpu_ns) / 1e3);
}

void exchange_report_text(const struct exchange_options *o, const struct outcome *outcomes,
			  unsigned int count)
{
	struct text_table table;
	unsigned int i;

	printf("%s, %u other%s, messages of %s, %u slots", flow_names[o->flow], o->peers,
	       o->peers == 1 ? "" : "s", size_format(o->size).text, o->slots);
	if (outcomes[0].carrier != CARRIER_TCP)
		printf(", over %s", outcomes[0].device);
	if (o->memory == WEIR_EXCHANGE_CUDA)
		printf(outcomes[0].is_staged ? ", slots in a GPU, copied through host memory" :
					       ", slots in a GPU");
	printf("\n\n");
	table_init(&table, count + 1);
	table_add(&table, "of each message");
	for (i = 0; i < count; i++)
		table_add(&table, "%s", carrier_names[outcomes[i].carrier]);
	add_rows(&table, "sender", outcomes, count, offsetof(struct outcome, sent));
	add_rows(&table, "receiver", outcomes, count, offsetof(struct outcome, received));
	add_confirms(&table, outcomes, count);
	add_speed(&table, o, outcomes, count);
	table_print(&table, stdout);
	table_fini(&table);
}

static void json_tally(struct json *json, const char *side, const struct outcome *outcome,
		       const struct exchange_tally *tally)
{
	json_open_object(json, side);
	if (outcome->carrier != CARRIER_TCP) {
		json_uint(json, "work_requests", tally->wrs);
		json_uint(json, "receives", tally->recvs);
		json_uint(json, "doorbells", tally->doorbells);
		json_uint(json, "completions", tally->completions);
		json_uint(json, "events", tally->events);
		json_uint(json, "without_data", tally->confirms);
	}
	json_double(json, "cpu_seconds", (double)tally->cpu_ns / 1e9);
	json_close(json);
}

void exchange_report_json(const struct exchange_options *o, const struct outcome *outcomes,
			  unsigned int count)
{
	struct json json;
	unsigned int i;

	json_begin(&json, stdout);
	json_string(&json, "pattern", flow_names[o->flow]);
	json_uint(&json, "members", o->peers);
	json_uint(&json, "size_bytes", o->size);
	json_uint(&json, "slots", o->slots);
	json_string(&json, "memory", memory_names[o->memory]);
	json_open_object(&json, "modes");
	for (i = 0; i < count; i++) {
		const struct outcome *outcome = &outcomes[i];

		json_open_object(&json, carrier_names[outcome->carrier]);
		if (outcome->carrier != CARRIER_TCP)
			json_string(&json, "device", outcome->device);
		if (o->memory == WEIR_EXCHANGE_CUDA && outcome->carrier != CARRIER_TCP)
			json_boolean(&json, "staged", outcome->is_staged);
		json_uint(&json, "messages", outcome->received.messages);
		json_double(&json, "seconds", seconds_of(outcome));
		json_tally(&json, "sender", outcome, &outcome->sent);
		json_tally(&json, "receiver", outcome, &outcome->received);
		json_close(&json);
	}
	json_close(&json);
	json_end(&json);
}
