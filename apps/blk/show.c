/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir blk list, weir blk stat: the module's devices and their counters. */
#include "apps/blk/blk.h"
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
#include "apps/common/number.h"
#include "apps/common/size.h"
#include "apps/common/table.h"
#include "lib/conn/address.h"


#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const states[] = {
	[WEIR_BLK_UP] = "up",
	[WEIR_BLK_RECONNECTING] = "reconnecting",
	[WEIR_BLK_LOST] = "lost",
	[WEIR_BLK_DEGRADED] = "degraded",
};

static const struct {
	const char *name, *help;
} counters[] = {
#define COUNTER(name, help) { #name, help },
	WEIR_BLK_COUNTER_LIST(COUNTER)
#undef COUNTER
};

/* A device as reported by the module. */
struct blk_device {
	uint32_t number, openers, replicas;
	uint64_t bytes;
	const char *name, *state, *cipher, *pool;
	struct weir_blk_donor donor[WEIR_BLK_POOL_DONORS_MAX];
	size_t nr_donors;
	uint64_t counters[WEIR_BLK_COUNTERS_NR];
};

static uint32_t u32_of(const struct nlattr *attr)
{
	return attr ? mnl_attr_get_u32(attr) : 0;
}

static const char *state_of(uint32_t state)
{
	return state <= WEIR_BLK_DEGRADED ? states[state] : "unknown";
}

static const char *address_of(const struct weir_blk_donor *donor, char text[WEIR_ADDRESS_MAX])
{
	struct sockaddr_storage address = { 0 };

	memcpy(&address, donor->address, sizeof(donor->address));
	weir_address_format((const struct sockaddr *)&address, text);
	return text;
}

static struct blk_device device_of(const struct nlattr *const *attrs)
{
	const struct nlattr *donors = attrs[WEIR_BLK_DONORS], *counted = attrs[WEIR_BLK_COUNTERS];
	struct blk_device device = {
		.number = u32_of(attrs[WEIR_BLK_NUMBER]),
		.openers = u32_of(attrs[WEIR_BLK_OPENERS]),
		.bytes = attrs[WEIR_BLK_BYTES] ? mnl_attr_get_u64(attrs[WEIR_BLK_BYTES]) : 0,
		.name = attrs[WEIR_BLK_NAME] ? mnl_attr_get_str(attrs[WEIR_BLK_NAME]) : "",
		.cipher = attrs[WEIR_BLK_CIPHER] ? mnl_attr_get_str(attrs[WEIR_BLK_CIPHER]) :
						   "none",
		.pool = attrs[WEIR_BLK_POOL] ? mnl_attr_get_str(attrs[WEIR_BLK_POOL]) : "",
		.replicas = u32_of(attrs[WEIR_BLK_REPLICAS]),
		.state = state_of(u32_of(attrs[WEIR_BLK_STATE])),
	};

	if (donors) {
		size_t length = lesser(mnl_attr_get_payload_len(donors), sizeof(device.donor));

		memcpy(device.donor, mnl_attr_get_payload(donors), length);
		device.nr_donors = length / sizeof(device.donor[0]);
	}
	if (counted)
		memcpy(device.counters, mnl_attr_get_payload(counted),
		       lesser(mnl_attr_get_payload_len(counted), sizeof(device.counters)));
	return device;
}

static void print_json(struct json *json, const struct blk_device *device)
{
	char text[WEIR_ADDRESS_MAX];

	snprintf(text, sizeof(text), "weir%u", device->number);
	json_string(json, "device", text);
	json_string(json, "region", device->name);
	json_string(json, "pool", device->pool);
	json_uint(json, "bytes", device->bytes);
	json_string(json, "encryption", device->cipher);
	json_string(json, "state", device->state);
	json_uint(json, "openers", device->openers);
	json_uint(json, "replicas", device->replicas);
	json_open_array(json, "donors");
	for (size_t i = 0; i < device->nr_donors; i++) {
		json_open_object(json, NULL);
		json_string(json, "address", address_of(&device->donor[i], text));
		json_string(json, "state", state_of(device->donor[i].state));
		json_uint(json, "bytes", device->donor[i].bytes);
		json_close(json);
	}
	json_close(json);
	for (size_t i = 0; i < WEIR_BLK_COUNTERS_NR; i++)
		json_uint(json, counters[i].name, device->counters[i]);
}

/* As long as the longest name of a counter. */
union blk_name {
#define COUNTER(name, help) char name[sizeof(#name)];
	WEIR_BLK_COUNTER_LIST(COUNTER)
#undef COUNTER
};

#define NAME_WIDTH ((int)sizeof(union blk_name) - 1)

static void print_text(const struct blk_device *device)
{
	char text[WEIR_ADDRESS_MAX];

	printf("/dev/weir%u: %s%s%s%s%s, %u replicas, encryption %s, %s, opened %u times\n",
	       device->number, size_format(device->bytes).text, *device->name ? ", region " : "",
	       device->name, *device->pool ? ", volume " : "", device->pool, device->replicas,
	       device->cipher, device->state, device->openers);
	for (size_t i = 0; i < device->nr_donors; i++)
		printf("%*s %12s  at donor %s: %s\n", NAME_WIDTH, "",
		       size_format(device->donor[i].bytes).text,
		       address_of(&device->donor[i], text), state_of(device->donor[i].state));
	for (size_t i = 0; i < WEIR_BLK_COUNTERS_NR; i++)
		printf("%*s %12" PRIu64 "  %s\n", NAME_WIDTH, counters[i].name, device->counters[i],
		       counters[i].help);
}

/* State of list and stat while they receive devices. */
struct blk_view {
	const char *cmd;
	bool json;
	struct json out;
	struct text_table table;
	uint32_t wanted;
	bool found;
};

/* Adds the first donor and the number of others. */
static void print_donors(struct text_table *table, const struct blk_device *device)
{
	char text[WEIR_ADDRESS_MAX] = "-";

	if (device->nr_donors)
		address_of(&device->donor[0], text);
	if (device->nr_donors > 1)
		table_add(table, "%s and %zu more", text, device->nr_donors - 1);
	else
		table_add(table, "%s", text);
}

static void on_list(const struct nlattr *const *attrs, void *arg)
{
	struct blk_device device = device_of(attrs);
	struct blk_view *view = arg;

	if (view->json) {
		json_open_object(&view->out, NULL);
		print_json(&view->out, &device);
		json_close(&view->out);
		return;
	}
	table_add(&view->table, "/dev/weir%u", device.number);
	table_add(&view->table, "%s", size_format(device.bytes).text);
	print_donors(&view->table, &device);
	table_add(&view->table, "%u", device.replicas);
	table_add(&view->table, "%s",
		  *device.pool ? device.pool :
		  *device.name ? device.name :
				 "-");
	table_add(&view->table, "%s", device.cipher);
	table_add(&view->table, "%s", device.state);
	table_add(&view->table, "%u", device.openers);
}

static void on_stat(const struct nlattr *const *attrs, void *arg)
{
	struct blk_device device = device_of(attrs);
	struct blk_view *view = arg;

	if (device.number != view->wanted)
		return;
	view->found = true;
	if (!view->json) {
		print_text(&device);
		return;
	}
	json_begin(&view->out, stdout);
	print_json(&view->out, &device);
	json_end(&view->out);
}

static int ask(struct blk_view *view, void (*heard)(const struct nlattr *const *attrs, void *arg))
{
	struct blk_netlink talk = { 0 };
	int status = blk_netlink_open(&talk, view->cmd);

	if (!status)
		status = blk_netlink_request(&talk, view->cmd,
					     blk_netlink_message(&talk, WEIR_BLK_LIST, NLM_F_DUMP),
					     heard, view);
	blk_netlink_close(&talk);
	return status;
}

static const struct cmdline_option view_options[] = {
	CMDLINE_JSON(struct blk_view, json),
	{ NULL },
};

static const struct cmdline list_line = {
	.usage = "Usage: weir blk list [--json]\n"
		 "Shows all attached devices.\n",
	.options = view_options,
};

static const struct cmdline stat_line = {
	.usage = "Usage: weir blk stat [--json] DEVICE\n"
		 "Shows a device's counters.\n",
	.options = view_options,
	.arguments = "DEVICE",
	.arguments_min = 1,
	.arguments_max = 1,
};

static void begin_table(struct text_table *table)
{
	static const char *const heads[] = {
		"device",	    "size",	  "donor", "replicas",
		"region or volume", "encryption", "state", "open",
	};

	table_init(table, sizeof(heads) / sizeof(heads[0]));
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		table_add(table, "%s", heads[i]);
}

int blk_list(const char *cmd, int argc, char **argv)
{
	struct blk_view view = { .cmd = cmd };
	int status = cmdline_parse(&list_line, argc, argv, &view);

	if (status != CMDLINE_PARSED)
		return status;
	begin_table(&view.table);
	if (view.json) {
		json_begin(&view.out, stdout);
		json_open_array(&view.out, "devices");
	}
	status = ask(&view, on_list);
	if (view.json) {
		json_close(&view.out);
		json_end(&view.out);
	} else if (!status) {
		table_print(&view.table, stdout);
	}
	table_fini(&view.table);
	return status;
}

int blk_stat(const char *cmd, int argc, char **argv)
{
	struct blk_view view = { .cmd = cmd };
	int status = cmdline_parse(&stat_line, argc, argv, &view);

	if (status != CMDLINE_PARSED)
		return status;
	status = blk_parse_device(cmd, argv[optind], &view.wanted);
	if (!status)
		status = ask(&view, on_stat);
	if (!status && !view.found)
		return failure(cmd, "no device weir%u: 'weir blk list' shows all devices",
			       view.wanted);
	return status;
}
