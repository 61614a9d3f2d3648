/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/client.h"
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "apps/perf/exchange/exchange.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#define SIZE_MAX_BYTES (64u << 20)
#define SLOTS_MAX 4096u /* valid in both modes */
#define POOL_BYTES \
	(16u << 20) /* default size of a pool, within the limits of slots */

static const char usage[] =
	"Usage: weir perf exchange [OPTION...]\n"
	"Measures messages between processes on this machine: rates, and the cost per message to\n"
	"sender and receiver, confirmed by bitmaps, by immediates, and over TCP.\n";

const char *const carrier_names[] = { "bitmap", "imm", "tcp", NULL };
const char *const flow_names[] = { "one", "broadcast", "gather", NULL };
const char *const memory_names[] = { "host", "cuda", NULL };

static int find_carrier(const char *name)
{
	int i = 0;

	while (i < CARRIERS && strcmp(carrier_names[i], name))
		i++;
	return i;
}

static bool parse_modes(const char *list, void *options)
{
	struct exchange_options *o = options;
	char text[64], *rest = text, *name;

	o->carriers = 0;
	snprintf(text, sizeof(text), "%s", list);
	while ((name = strsep(&rest, ",")))
		o->carriers |= 1u << find_carrier(name);
	return o->carriers < 1u << CARRIERS;
}

static const struct cmdline_option exchange_options[] = {
	{ "mode", 'm', "MODE[,...]", "bitmap, imm, tcp; default all, one after the other",
	  CMDLINE_PARSE(parse_modes, "bitmap, imm or tcp, with commas between them") },
	{ "pattern", 'p', "PATTERN",
	  "one: to a single peer (the default); broadcast: to all peers;\n"
	  "gather: from all peers",
	  CMDLINE_CHOICE(struct exchange_options, flow, flow_names) },
	{ "members", 'n', "N", "number of peers, default 1, or 4 for broadcast and gather",
	  CMDLINE_UINT(struct exchange_options, peers, 1, PEERS_MAX) },
	{ "size", 's', "BYTES", "message size, default 512",
	  CMDLINE_SIZE(struct exchange_options, size, 1, SIZE_MAX_BYTES) },
	{ "memory", 0, "MEMORY", "memory of the slots at both ends: host (the default) or cuda",
	  CMDLINE_CHOICE(struct exchange_options, memory, memory_names) },
	{ "slots", 0, "N", "slots per pool, default as many as fit 16 MiB, 8 to 256",
	  CMDLINE_UINT(struct exchange_options, slots, 1, SLOTS_MAX) },
	{ "seconds", 'S', "S", "duration per mode, default 2",
	  CMDLINE_SECONDS(struct exchange_options, seconds, DBL_MIN, 86400),
	  .expected = "more than 0, to 86400" },
	{ "messages", 'N', "N", "end after N messages per sender and receiver",
	  CMDLINE_U64(struct exchange_options, messages, 1, UINT64_MAX) },
	{ "address", 'a', "ADDRESS",
	  "this machine's address to connect through, default 127.0.0.1",
	  CMDLINE_TEXT(struct exchange_options, address) },
	CMDLINE_JSON(struct exchange_options, json),
	CLIENT_KEY_OPTION(struct exchange_options, key_path),
	DEVICE_OPTION(struct exchange_options, device),
	{ NULL },
};

static const struct cmdline exchange_line = { .usage = usage, .options = exchange_options };

/* Checks consistency and fills in defaults. */
static int check(struct exchange_options *o)
{
	uint64_t fit = POOL_BYTES / o->size;

	if (o->flow == FLOW_ONE && o->peers > 1)
		return usage_error(
			o->cmd,
			"--members %u: pattern one has a single peer; broadcast and gather "
			"have more",
			o->peers);
	if (!o->peers)
		o->peers = o->flow == FLOW_ONE ? 1 : 4;
	if (!o->slots)
		o->slots = fit < 8 ? 8 : fit > 256 ? 256 : (unsigned int)fit;
	return CMDLINE_PARSED;
}

int exchange_options_parse(int argc, char **argv, struct exchange_options *o)
{
	int status;

	*o = (struct exchange_options){
		.cmd = argv[0],
		.carriers = (1u << CARRIERS) - 1,
		.size = 512,
		.seconds = 2,
		.address = "127.0.0.1",
	};
	status = cmdline_parse(&exchange_line, argc, argv, o);
	return status == CMDLINE_PARSED ? check(o) : status;
}
