/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir blk attach: resolves addresses and loads the key; the module does the rest. A volume of a
 * pool needs an agent, too.
 */
#include "apps/blk/agent/agent.h"
#include "apps/blk/agent/pool_map.h"
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/size.h"
#include "core/poll/poll.h"
#include "lib/conn/address.h"
#include "lib/conn/key.h"

#include <errno.h>

#include <linux/keyctl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOT_SAID UINT32_MAX
#define WINDOW_MIN_BYTES 65536

static const char usage[] =
	"Usage: weir blk attach [OPTION...] DONOR[,DONOR...] [SIZE]\n"
	"       weir blk attach [OPTION...] POOL/VOLUME\n"
	"Creates /dev/weirN, a block device of SIZE bytes in the memory of up to 8 donors, or\n"
	"of a volume of a pool: pool:NAME/VOLUME, etcd:http://HOST:2379/NAME/VOLUME or\n"
	"file:PATH/VOLUME.\n";

static const char *const polling_names[] = {
	[WEIR_POLL_ADAPTIVE] = "adaptive",
	[WEIR_POLL_EVENT] = "event",
	[WEIR_POLL_EVENT_BATCH] = "event-batch",
	[WEIR_POLL_HYBRID] = "hybrid",
};

static const char *const batching_names[] = {
	[WEIR_BLK_HYBRID] = "hybrid",
	[WEIR_BLK_SINGLE] = "single",
	[WEIR_BLK_DOORBELL] = "doorbell",
	[WEIR_BLK_MERGE] = "merge",
};

static const char *const mr_names[] = {
	[WEIR_BLK_MR_DYN] = "dyn",
	[WEIR_BLK_MR_PRE] = "pre",
};

/* The same presets as libweir's: RDMAbox, section VI-B. */
static const struct attach_preset {
	uint32_t batching, mr, polling;
} presets[] = {
	{ WEIR_BLK_HYBRID, WEIR_BLK_MR_DYN, WEIR_POLL_ADAPTIVE },
	{ WEIR_BLK_SINGLE, WEIR_BLK_MR_DYN, WEIR_POLL_ADAPTIVE },
	{ WEIR_BLK_DOORBELL, WEIR_BLK_MR_DYN, WEIR_POLL_EVENT_BATCH },
};

static const char *const preset_names[] = { "rdmabox", "single", "accelio" };

struct attach {
	const char *cmd, *donors, *name, *key, *local;
	uint64_t bytes, window_bytes, reserve_bytes;
	uint32_t channels, replicas, preset, batching, mr, polling;
	double timeout_s;
	bool encrypt;
	struct weir_blk_donor donor[WEIR_BLK_DONORS_MAX];
	size_t nr_donors;
};

static bool parse_name(const char *text, void *options)
{
	((struct attach *)options)->name = text;
	return *text && strlen(text) < 64 && !strchr(text, '/');
}

static bool parse_local(const char *text, void *options)
{
	((struct attach *)options)->local = text;
	return *text && strlen(text) < 1024;
}

static const struct cmdline_option attach_options[] = {
	{ "replicas", 'r', "N",
	  "copies of each piece, at different donors, 1 to 4, default 1;\n"
	  "the pieces of a donor that dies are copied to another donor",
	  CMDLINE_UINT(struct attach, replicas, 1, WEIR_BLK_REPLICAS_MAX) },
	{ "name", 'n', "NAME",
	  "use a named region at a single donor, which outlives the\n"
	  "device, and is created if missing; without SIZE it must\n"
	  "exist. Default: unnamed; the memory is freed on detach",
	  CMDLINE_PARSE(parse_name, "1 to 63 bytes without '/'") },
	{ "key", 'k', "FILE", "the key that the donor was given",
	  CMDLINE_TEXT(struct attach, key) },
	{ "encrypt", 'e', NULL,
	  "donors and the local disk hold ciphertext only; not with --name",
	  CMDLINE_FLAG(struct attach, encrypt) },
	{ "channels", 'c', "N", "connections, 1 to 16, default 2",
	  CMDLINE_UINT(struct attach, channels, 1, 16) },
	{ "timeout", 't', "S", "for a read or write, and for a reconnect, default 10",
	  CMDLINE_SECONDS(struct attach, timeout_s, 0.1, 600) },
	{ "window", 'w', "SIZE",
	  "bytes in flight on the RDMA device, default 8M; the first\n"
	  "attached device decides",
	  CMDLINE_SIZE(struct attach, window_bytes, WINDOW_MIN_BYTES, UINT64_MAX) },
	{ "reserve", 'R', "SIZE",
	  "bytes of fully discarded pieces that keep their memory, for\n"
	  "later writes; default an eighth of the device",
	  CMDLINE_SIZE(struct attach, reserve_bytes, 1, UINT64_MAX) },
	{ "local", 'L', "DEVICE",
	  "a local block device, as large, that receives all writes, too,\n"
	  "with a delay, and is read if no donor has the data; its data\n"
	  "is overwritten. Default: none",
	  CMDLINE_PARSE(parse_local, "a block device") },
	{ "preset", 'P', "NAME",
	  "rdmabox, single or accelio: defaults for the next three\n"
	  "options; default rdmabox, the first choice of each",
	  CMDLINE_CHOICE(struct attach, preset, preset_names) },
	{ "batching", 'b', "HOW", "hybrid, single, doorbell or merge",
	  CMDLINE_CHOICE(struct attach, batching, batching_names) },
	{ "mr", 'm', "HOW",
	  "dyn: the device accesses pages in place; pre: pages are copied\n"
	  "to registered memory",
	  CMDLINE_CHOICE(struct attach, mr, mr_names) },
	{ "polling", 'p', "HOW", "adaptive, event, event-batch or hybrid",
	  CMDLINE_CHOICE(struct attach, polling, polling_names) },
	{ NULL },
};

static const struct cmdline attach_line = {
	.usage = usage,
	.options = attach_options,
	.arguments = "DONOR[,DONOR...] [SIZE], or POOL/VOLUME",
	.arguments_min = 1,
	.arguments_max = 2,
};

/* Fills in the preset's choices for options that were not given. */
static void fill_in(struct attach *a)
{
	const struct attach_preset *preset = &presets[a->preset];

	a->batching = a->batching == NOT_SAID ? preset->batching : a->batching;
	a->mr = a->mr == NOT_SAID ? preset->mr : a->mr;
	a->polling = a->polling == NOT_SAID ? preset->polling : a->polling;
}

/*
 * Adds the key to this process's keyring, which ends with the process. The module looks there
 * during the attach. User space cannot read a logon key back.
 */
static int give_key(const struct attach *a)
{
	struct weir_error error;
	uint8_t bytes[WEIR_KEY_FILE_MAX];
	struct weir_key *key;
	long id;

	if (weir_key_load(a->key, &key, &error))
		return failure(a->cmd, "%s", error.text);
	id = syscall(SYS_add_key, "logon", WEIR_BLK_KEY, bytes, weir_key_format(key, bytes),
		     KEY_SPEC_PROCESS_KEYRING);
	weir_key_free(key);
	explicit_bzero(bytes, sizeof(bytes));
	return id < 0 ? failure(a->cmd, "the kernel refuses the key: %s", strerror(errno)) : 0;
}

static void write_sessions(struct nlmsghdr *message, const struct attach *a)
{
	if (a->key)
		mnl_attr_put(message, WEIR_BLK_HAS_KEY, 0, NULL);
	mnl_attr_put_u32(message, WEIR_BLK_CHANNELS, a->channels);
	mnl_attr_put_u64(message, WEIR_BLK_WINDOW_BYTES, a->window_bytes);
	mnl_attr_put_u32(message, WEIR_BLK_POLLING, a->polling);
	mnl_attr_put_u32(message, WEIR_BLK_BATCHING, a->batching);
	mnl_attr_put_u32(message, WEIR_BLK_MR, a->mr);
}

static void write_attach(struct nlmsghdr *message, const struct attach *a)
{
	mnl_attr_put(message, WEIR_BLK_DONORS, a->nr_donors * sizeof(a->donor[0]), a->donor);
	mnl_attr_put_u32(message, WEIR_BLK_REPLICAS, a->replicas);
	mnl_attr_put_u64(message, WEIR_BLK_BYTES, a->bytes);
	if (a->name)
		mnl_attr_put_strz(message, WEIR_BLK_NAME, a->name);
	mnl_attr_put_u32(message, WEIR_BLK_TIMEOUT_MS, (uint32_t)(a->timeout_s * 1000));
	write_sessions(message, a);
	mnl_attr_put_u64(message, WEIR_BLK_RESERVE, a->reserve_bytes);
	if (a->local)
		mnl_attr_put_strz(message, WEIR_BLK_LOCAL, a->local);
	if (a->encrypt)
		mnl_attr_put(message, WEIR_BLK_ENCRYPT, 0, NULL);
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

/* In the agent: a process's keyring does not pass to its children. */
static int write_options(struct nlmsghdr *message, void *arg)
{
	const struct attach *a = arg;
	int status = a->key ? give_key(a) : EXIT_OK;

	write_sessions(message, a);
	return status;
}

static int attach_pool(struct attach *a, int argc)
{
	const struct blk_agent_options options = {
		.cmd = a->cmd,
		.pool = a->donors,
		.write = write_options,
		.arg = a,
		.timeout_ms = (uint32_t)(a->timeout_s * 1000),
	};

	if (argc == 2)
		return usage_error(a->cmd, "%s: a pool's volume has its own size", a->donors);
	if (a->replicas || a->name || a->local || a->encrypt || a->reserve_bytes)
		return usage_error(a->cmd,
				   "%s: --replicas, --name, --encrypt, --reserve and --local are "
				   "for donors: the pool says where its volume is",
				   a->donors);
	return blk_agent_attach(&options);
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
	if (!status && a->name && a->encrypt)
		return usage_error(a->cmd,
				   "--name %s: a named region outlives the key of --encrypt",
				   a->name);
	return status ? status : attach(a);
}

static int parse_arguments(struct attach *a, int argc, char **argv)
{

	a->donors = argv[0];
	if (argc == 2 && (size_parse(argv[1], &a->bytes) || !a->bytes || a->bytes % 4096))
		return usage_error(a->cmd, "%s: expected a multiple of 4096 bytes", argv[1]);
	if (argc == 1 && !a->name)
		return usage_error(a->cmd, "expected a SIZE, or --name of an existing region");
	return 0;
}

int blk_attach(const char *cmd, int argc, char **argv)
{
	struct attach a = { .cmd = cmd, .batching = NOT_SAID, .mr = NOT_SAID, .polling = NOT_SAID };
	int status = cmdline_parse(&attach_line, argc, argv, &a);

	if (status != CMDLINE_PARSED)
		return status;
	fill_in(&a);
	a.donors = argv[optind];
	if (blk_pool_is_name(a.donors))
		return attach_pool(&a, argc - optind);
	if (!a.replicas)
		a.replicas = 1;
	status = parse_arguments(&a, argc - optind, argv + optind);
	return status ? status : resolve_and_attach(&a);
}
