/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/client.h"
#include "apps/common/cmd.h"
#include "apps/common/device.h"
#include "apps/common/number.h"
#include "apps/perf/exchange/exchange.h"
#include "apps/common/size.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SIZE_MAX_BYTES (64u << 20)
#define SLOTS_MAX 4096u /* valid in both modes */
#define POOL_BYTES \
	(16u << 20) /* default size of a pool, within the limits of slots */

static const char help[] =
	"Usage: weir perf exchange [OPTION...]\n"
	"Measures messages between processes on this machine: rates, and the cost per message to\n"
	"sender and receiver, confirmed by bitmaps, by immediates, and over TCP.\n\n"
	"  -m, --mode MODE[,...]  bitmap, imm, tcp; default all, one after the other\n"
	"  -p, --pattern PATTERN  one: to a single peer (the default); broadcast: to all peers;\n"
	"                         gather: from all peers\n"
	"  -n, --members N        number of peers, default 1, or 4 for broadcast and gather\n"
	"  -s, --size BYTES       message size, default 512\n"
	"      --memory MEMORY    memory of the slots at both ends: host (the default) or cuda\n"
	"      --slots N          slots per pool, default as many as fit 16 MiB, 8 to 256\n"
	"  -S, --seconds S        duration per mode, default 2\n"
	"  -N, --messages N       end after N messages per sender and receiver\n"
	"  -a, --address ADDRESS  this machine's address to connect through, default 127.0.0.1\n"
	"  -j, --json             for programs\n" CLIENT_HELP DEVICE_HELP "  -h, --help\n";

enum { OPT_SLOTS = 256, OPT_MEMORY };

static const struct option long_options[] = {
	{ "mode", required_argument, NULL, 'm' },
	{ "pattern", required_argument, NULL, 'p' },
	{ "members", required_argument, NULL, 'n' },
	{ "size", required_argument, NULL, 's' },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "slots", required_argument, NULL, OPT_SLOTS },
	{ "seconds", required_argument, NULL, 'S' },
	{ "messages", required_argument, NULL, 'N' },
	{ "address", required_argument, NULL, 'a' },
	{ "json", no_argument, NULL, 'j' },
	{ "key", required_argument, NULL, 'k' },
	{ "device", required_argument, NULL, 'd' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL },
};

const char *const carrier_names[] = { "bitmap", "imm", "tcp", NULL };
const char *const flow_names[] = { "one", "broadcast", "gather", NULL };
const char *const memory_names[] = { "host", "cuda", NULL };

/* Return: the index of @name in @names, or -1. */
static int find(const char *const *names, const char *name)
{
	int i;

	for (i = 0; names[i]; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

static int parse_modes(struct exchange_options *o)
{
	char text[64], *rest = text, *name;
	int carrier;

	o->carriers = 0;
	snprintf(text, sizeof(text), "%s", optarg);
	while ((name = strsep(&rest, ","))) {
		carrier = find(carrier_names, name);
		if (carrier < 0)
			return usage_error(o->cmd,
					   "--mode %s: expected bitmap, imm or tcp, with commas "
					   "between them",
					   optarg);
		o->carriers |= 1u << carrier;
	}
	return 0;
}

static int parse_pattern(struct exchange_options *o)
{
	int flow = find(flow_names, optarg);

	if (flow < 0)
		return usage_error(o->cmd, "--pattern %s: expected one, broadcast or gather",
				   optarg);
	o->flow = (enum flow)flow;
	return 0;
}

static int parse_memory(struct exchange_options *o)
{
	int memory = find(memory_names, optarg);

	if (memory < 0)
		return usage_error(o->cmd, "--memory %s: expected host or cuda", optarg);
	o->memory = (enum weir_exchange_memory)memory;
	return 0;
}

static int parse_number(const struct exchange_options *o, const char *name, uint64_t max,
			uint64_t *value)
{
	if (number_parse(optarg, 1, max, value))
		return 0;
	return usage_error(o->cmd, "--%s %s: expected 1 to %" PRIu64, name, optarg, max);
}

static int parse_count(const struct exchange_options *o, const char *name, unsigned int max,
		       unsigned int *value)
{
	uint64_t parsed = *value;
	int status = parse_number(o, name, max, &parsed);

	*value = (unsigned int)parsed;
	return status;
}

static int parse_size(struct exchange_options *o)
{
	if (size_parse(optarg, &o->size) || !o->size || o->size > SIZE_MAX_BYTES)
		return usage_error(o->cmd, "--size %s: expected 1 B to %s", optarg,
				   size_format(SIZE_MAX_BYTES).text);
	return 0;
}

static int parse_seconds(struct exchange_options *o)
{
	if (!number_parse_double(optarg, 0, 86400, &o->seconds) || !(o->seconds > 0))
		return usage_error(o->cmd, "--seconds %s: expected more than 0, to 86400", optarg);
	return 0;
}

static int parse_option(struct exchange_options *o, int opt)
{
	switch (opt) {
	case 'm':
		return parse_modes(o);
	case 'p':
		return parse_pattern(o);
	case 'n':
		return parse_count(o, "members", PEERS_MAX, &o->peers);
	case 's':
		return parse_size(o);
	case OPT_MEMORY:
		return parse_memory(o);
	case OPT_SLOTS:
		return parse_count(o, "slots", SLOTS_MAX, &o->slots);
	case 'S':
		return parse_seconds(o);
	case 'N':
		return parse_number(o, "messages", UINT64_MAX, &o->messages);
	case 'a':
		o->address = optarg;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case 'k':
		o->key_path = optarg;
		return 0;
	case 'd':
		o->device = optarg;
		return 0;
	default:
		return usage_error(o->cmd, NULL);
	}
}

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
	return 0;
}

int exchange_options_parse(int argc, char **argv, struct exchange_options *o, bool *go_on)
{
	int opt, status;

	*o = (struct exchange_options){
		.cmd = argv[0],
		.carriers = (1u << CARRIERS) - 1,
		.size = 512,
		.seconds = 2,
		.address = "127.0.0.1",
	};
	*go_on = true;
	while ((opt = getopt_long(argc, argv, "m:p:n:s:S:N:a:jk:d:h", long_options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			*go_on = false;
			return 0;
		}
		status = parse_option(o, opt);
		if (status)
			return status;
	}
	if (optind < argc)
		return usage_error(o->cmd, "unexpected argument '%s'",
				   argv[optind]);
	return check(o);
}
