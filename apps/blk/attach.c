/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir blk attach: resolves addresses and loads the key; the module does the rest. */
#include "apps/blk/blk.h"
#include "apps/common/cmd.h"
#include "apps/common/number.h"
#include "apps/common/size.h"
#include "core/poll/poll.h"
#include "lib/conn/address.h"
#include "lib/conn/key.h"

#include <errno.h>
#include <getopt.h>
#include <linux/keyctl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char help[] =
	"Usage: weir blk attach [OPTION...] DONOR[,DONOR...] [SIZE]\n"
	"Creates /dev/weirN, a block device of SIZE bytes in the memory of up to 8 donors.\n\n"
	"  -r, --replicas N       copies of each piece, at different donors, 1 to 4, default 1;\n"
	"                         the pieces of a donor that dies are copied to another donor\n"
	"  -n, --name NAME        use a named region at a single donor, which outlives the\n"
	"                         device, and is created if missing; without SIZE it must\n"
	"                         exist. Default: unnamed; the memory is freed on detach\n"
	"  -k, --key FILE         the key that the donor was given\n"
	"  -c, --channels N       connections, 1 to 16, default 2\n"
	"  -t, --timeout S        for a read or write, and for a reconnect, default 10\n"
	"  -w, --window SIZE      bytes in flight on the RDMA device, default 8M; the first\n"
	"                         attached device decides\n"
	"  -R, --reserve SIZE     bytes of fully discarded pieces that keep their memory, for\n"
	"                         later writes; default an eighth of the device\n"
	"  -L, --local DEVICE     a local block device, as large, that receives all writes, too,\n"
	"                         with a delay, and is read if no donor has the data; its data\n"
	"                         is overwritten. Default: none\n"
	"  -P, --preset NAME      rdmabox, single or accelio: defaults for the next three\n"
	"                         options; default rdmabox, the first choice of each\n"
	"  -b, --batching HOW     hybrid, single, doorbell or merge\n"
	"  -m, --mr HOW           dyn: the device accesses pages in place; pre: pages are copied\n"
	"                         to registered memory\n"
	"  -p, --polling HOW      adaptive, event, event-batch or hybrid\n"
	"  -h, --help\n";

#define NOT_SAID UINT32_MAX

struct attach_choice {
	const char *name;
	uint32_t value;
};

static const struct attach_choice pollings[] = {
	{ "adaptive", WEIR_POLL_ADAPTIVE },
	{ "event", WEIR_POLL_EVENT },
	{ "event-batch", WEIR_POLL_EVENT_BATCH },
	{ "hybrid", WEIR_POLL_HYBRID },
	{ NULL },
};

static const struct attach_choice batchings[] = {
	{ "hybrid", WEIR_BLK_HYBRID },
	{ "single", WEIR_BLK_SINGLE },
	{ "doorbell", WEIR_BLK_DOORBELL },
	{ "merge", WEIR_BLK_MERGE },
	{ NULL },
};

static const struct attach_choice mrs[] = {
	{ "dyn", WEIR_BLK_MR_DYN },
	{ "pre", WEIR_BLK_MR_PRE },
	{ NULL },
};

/* The same presets as libweir's: RDMAbox, section VI-B. */
static const struct attach_preset {
	uint32_t batching, mr, polling;
} presets[] = {
	{ WEIR_BLK_HYBRID, WEIR_BLK_MR_DYN, WEIR_POLL_ADAPTIVE },
	{ WEIR_BLK_SINGLE, WEIR_BLK_MR_DYN, WEIR_POLL_ADAPTIVE },
	{ WEIR_BLK_DOORBELL, WEIR_BLK_MR_DYN, WEIR_POLL_EVENT_BATCH },
};

static const struct attach_choice preset_names[] = {
	{ "rdmabox", 0 },
	{ "single", 1 },
	{ "accelio", 2 },
	{ NULL },
};

struct attach {
	const char *cmd, *donors, *name, *key, *local;
	uint64_t bytes, window_bytes, reserve_bytes;
	uint32_t channels, timeout_ms, replicas, preset, batching, mr, polling;
	struct weir_blk_donor donor[WEIR_BLK_DONORS_MAX];
	size_t nr_donors;
};

static int parse_choice(struct attach *a, const char *option, const struct attach_choice *choices,
			uint32_t *value)
{
	char names[64] = "";

	for (const struct attach_choice *choice = choices; choice->name; choice++) {
		if (!strcmp(optarg, choice->name)) {
			*value = choice->value;
			return 0;
		}
		strcat(strcat(names, *names ? ", " : ""), choice->name);
	}
	return usage_error(a->cmd, "--%s %s: expected one of %s", option, optarg, names);
}

/* Fills in the preset's choices for options that were not given. */
static void fill_in(struct attach *a)
{
	const struct attach_preset *preset = &presets[a->preset];

	a->batching = a->batching == NOT_SAID ? preset->batching : a->batching;
	a->mr = a->mr == NOT_SAID ? preset->mr : a->mr;
	a->polling = a->polling == NOT_SAID ? preset->polling : a->polling;
}

static int parse_timeout(struct attach *a, const char *text)
{
	double seconds;

	if (!number_parse_double(text, 0.1, 600, &seconds))
		return usage_error(a->cmd, "--timeout %s: expected 0.1 to 600 seconds", text);
	a->timeout_ms = (uint32_t)(seconds * 1000);
	return 0;
}

static int parse_count(struct attach *a, const char *option, const char *text, uint32_t max,
		       uint32_t *count)
{
	if (number_parse_uint(text, 1, max, count))
		return 0;
	return usage_error(a->cmd, "--%s %s: expected 1 to %u", option, text, max);
}

/* Parses options for performance. */
static int parse_way(struct attach *a, int opt)
{
	switch (opt) {
	case 'P':
		return parse_choice(a, "preset", preset_names, &a->preset);
	case 'b':
		return parse_choice(a, "batching", batchings, &a->batching);
	case 'm':
		return parse_choice(a, "mr", mrs, &a->mr);
	case 'p':
		return parse_choice(a, "polling", pollings, &a->polling);
	default:
		return usage_error(a->cmd, NULL);
	}
}

static int parse_option(struct attach *a, int opt)
{
	switch (opt) {
	case 'n':
		a->name = optarg;
		if (!*optarg || strlen(optarg) > 63 || strchr(optarg, '/'))
			return usage_error(a->cmd, "--name %s: expected 1 to 63 bytes without '/'",
					   optarg);
		return 0;
	case 'k':
		a->key = optarg;
		return 0;
	case 'c':
		return parse_count(a, "channels", optarg, 16, &a->channels);
	case 'r':
		return parse_count(a, "replicas", optarg, WEIR_BLK_REPLICAS_MAX, &a->replicas);
	case 't':
		return parse_timeout(a, optarg);
	case 'w':
		if (size_parse(optarg, &a->window_bytes) || a->window_bytes < 65536)
			return usage_error(a->cmd, "--window %s: expected at least 64K", optarg);
		return 0;
	case 'L':
		a->local = optarg;
		if (!*optarg || strlen(optarg) > 1023)
			return usage_error(a->cmd, "--local %s: expected a block device",
					   optarg);
		return 0;
	case 'R':
		if (size_parse(optarg, &a->reserve_bytes) || !a->reserve_bytes)
			return usage_error(a->cmd, "--reserve %s: expected a size", optarg);
		return 0;
	default:
		return parse_way(a, opt);
	}
}

/*
 * Adds the key to this process's keyring, which ends with the process. The module looks there
 * during the attach. User space cannot read a logon key back.
 */
static int give_key(const struct attach *a)
{
	struct weir_error error;
	struct weir_key *key;
	long id;

	if (weir_key_load(a->key, &key, &error))
		return failure(a->cmd, "%s", error.text);
	id = syscall(SYS_add_key, "logon", WEIR_BLK_KEY, key->bytes, key->length,
		     KEY_SPEC_PROCESS_KEYRING);
	weir_key_free(key);
	return id < 0 ? failure(a->cmd, "the kernel refuses the key: %s", strerror(errno)) : 0;
}

static void write_attach(struct nlmsghdr *message, const struct attach *a)
{
	mnl_attr_put(message, WEIR_BLK_DONORS, a->nr_donors * sizeof(a->donor[0]), a->donor);
	mnl_attr_put_u32(message, WEIR_BLK_REPLICAS, a->replicas);
	mnl_attr_put_u64(message, WEIR_BLK_BYTES, a->bytes);
	if (a->name)
		mnl_attr_put_strz(message, WEIR_BLK_NAME, a->name);
	if (a->key)
		mnl_attr_put(message, WEIR_BLK_HAS_KEY, 0, NULL);
	mnl_attr_put_u32(message, WEIR_BLK_CHANNELS, a->channels);
	mnl_attr_put_u32(message, WEIR_BLK_TIMEOUT_MS, a->timeout_ms);
	mnl_attr_put_u64(message, WEIR_BLK_WINDOW_BYTES, a->window_bytes);
	mnl_attr_put_u32(message, WEIR_BLK_POLLING, a->polling);
	mnl_attr_put_u32(message, WEIR_BLK_BATCHING, a->batching);
	mnl_attr_put_u32(message, WEIR_BLK_MR, a->mr);
	mnl_attr_put_u64(message, WEIR_BLK_RESERVE, a->reserve_bytes);
	if (a->local)
		mnl_attr_put_strz(message, WEIR_BLK_LOCAL, a->local);
}

static int attach(const struct attach *a)
{
	struct blk_netlink talk = { 0 };
	struct nlmsghdr *message;
	uint32_t number;
	int status;

	status = blk_netlink_open(&talk, a->cmd);
	if (!status && a->key)
		status = give_key(a);
	if (!status) {
		message = blk_netlink_message(&talk, WEIR_BLK_ATTACH, 0);
		write_attach(message, a);
		status = blk_netlink_change(&talk, a->cmd, message, &number);
	}
	if (!status)
		printf("/dev/weir%u\n", number);
	blk_netlink_close(&talk);
	return status;
}

static int resolve(struct attach *a, const char *donor)
{
	struct weir_error error;
	struct addrinfo *list;
	size_t length;

	if (a->nr_donors == WEIR_BLK_DONORS_MAX)
		return usage_error(a->cmd, "%s: at most %d donors", a->donors, WEIR_BLK_DONORS_MAX);
	if (weir_address_resolve(donor, NULL, &list, &error))
		return failure(a->cmd, "%s", error.text);
	length = list->ai_addrlen < WEIR_BLK_ADDRESS ? list->ai_addrlen : WEIR_BLK_ADDRESS;
	memcpy(a->donor[a->nr_donors++].address, list->ai_addr, length);
	freeaddrinfo(list);
	return 0;
}

static int resolve_and_attach(struct attach *a)
{
	char *donors = strdup(a->donors), *rest = donors, *donor;
	int status = 0;

	if (!donors)
		return failure(a->cmd, "out of memory");
	while (!status && (donor = strsep(&rest, ",")))
		status = resolve(a, donor);
	free(donors);
	if (!status && a->replicas > a->nr_donors)
		return usage_error(a->cmd, "--replicas %u: too few donors: %s", a->replicas,
				   a->donors);
	if (!status && a->name && a->nr_donors > 1)
		return usage_error(a->cmd, "--name %s: a named region needs a single donor",
				   a->name);
	if (!status && a->name && a->local)
		return usage_error(a->cmd, "--name %s: a named region cannot have a --local disk",
				   a->name);
	return status ? status : attach(a);
}

static int parse_arguments(struct attach *a, int argc, char **argv)
{
	if (argc < 1 || argc > 2)
		return usage_error(a->cmd, "expected: DONOR[,DONOR...] [SIZE]");
	a->donors = argv[0];
	if (argc == 2 && (size_parse(argv[1], &a->bytes) || !a->bytes || a->bytes % 4096))
		return usage_error(a->cmd, "%s: expected a multiple of 4096 bytes", argv[1]);
	if (argc == 1 && !a->name)
		return usage_error(a->cmd, "expected a SIZE, or --name of an existing region");
	return 0;
}

int blk_attach(const char *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "replicas", required_argument, NULL, 'r' },
		{ "name", required_argument, NULL, 'n' },
		{ "key", required_argument, NULL, 'k' },
		{ "channels", required_argument, NULL, 'c' },
		{ "timeout", required_argument, NULL, 't' },
		{ "window", required_argument, NULL, 'w' },
		{ "reserve", required_argument, NULL, 'R' },
		{ "local", required_argument, NULL, 'L' },
		{ "preset", required_argument, NULL, 'P' },
		{ "batching", required_argument, NULL, 'b' },
		{ "mr", required_argument, NULL, 'm' },
		{ "polling", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL },
	};
	struct attach a = {
		.cmd = cmd, .replicas = 1, .batching = NOT_SAID, .mr = NOT_SAID, .polling = NOT_SAID
	};
	int opt, status = 0;

	while (!status &&
	       (opt = getopt_long(argc, argv, "r:n:k:c:t:w:R:L:P:b:m:p:h", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return EXIT_OK;
		}
		status = parse_option(&a, opt);
	}
	fill_in(&a);
	if (!status)
		status = parse_arguments(&a, argc - optind, argv + optind);
	return status ? status : resolve_and_attach(&a);
}
