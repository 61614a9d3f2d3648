/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/blk/agent/agent.h"
#include "apps/blk/blk.h"
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/number.h"
#include "apps/common/size.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"Usage: weir blk COMMAND [OPTION...]\n"
	"Block devices in donors' memory, for swap and file systems. Needs the module weir_blk.\n\n"
	"  attach DONOR[,DONOR...] SIZE  create /dev/weirN\n"
	"  attach POOL/VOLUME            create /dev/weirN from a volume of a pool\n"
	"  detach DEVICE                 remove a device that is not in use\n"
	"  agent DEVICE                  tell a device on a pool of the pool's changes, if the\n"
	"                                process that 'attach' has left for this has ended\n"
	"  resize DEVICE SIZE            enlarge a device, or shrink one that is not in use\n"
	"  list                          show all devices\n"
	"  stat DEVICE                   show a device's counters\n\n"
	"  -h, --help         this help; see also 'weir blk COMMAND --help'\n\n"
	"Data is lost with the last donor that holds it: requests for it then fail with I/O\n"
	"errors.\n";

static const struct cmdline detach_line = {
	.usage = "Usage: weir blk detach DEVICE\n"
		 "Removes /dev/weirN, unless the device is mounted, in use as swap, or open.\n",
	.arguments = "DEVICE",
	.arguments_min = 1,
	.arguments_max = 1,
};

static const char resize_usage[] =
	"Usage: weir blk resize DEVICE SIZE\n"
	"Changes the size of /dev/weirN. A device can grow while in use, if donors have room. A\n"
	"device can shrink only while not in use, and loses the data beyond the new end.\n";

static const struct cmdline resize_line = {
	.usage = resize_usage,
	.arguments = "DEVICE SIZE",
	.arguments_min = 2,
	.arguments_max = 2,
};

int blk_parse_device(const char *cmd, const char *text, uint32_t *number)
{
	const char *digits = text;

	if (!strncmp(digits, "/dev/", 5))
		digits += 5;
	if (!strncmp(digits, "weir", 4))
		digits += 4;
	if (number_parse_uint(digits, 0, WEIR_BLK_NUMBER_MAX, number))
		return 0;
	return usage_error(cmd, "%s: expected a device such as /dev/weir0", text);
}

/* The claim of a device of a pool: it ends once the device is detached. */
struct blk_claim {
	uint32_t number;
	char pool[WEIR_BLK_POOL_MAX + 1];
	uint8_t agent[WEIR_BLK_AGENT_MAX];
	size_t bytes;
};

static void on_device(const struct nlattr *const *attrs, void *arg)
{
	const struct nlattr *agent = attrs[WEIR_BLK_AGENT];
	struct blk_claim *claim = arg;

	if (!attrs[WEIR_BLK_NUMBER] || mnl_attr_get_u32(attrs[WEIR_BLK_NUMBER]) != claim->number ||
	    !attrs[WEIR_BLK_POOL] || !agent ||
	    mnl_attr_get_payload_len(agent) > sizeof(claim->agent))
		return;
	snprintf(claim->pool, sizeof(claim->pool), "%s", mnl_attr_get_str(attrs[WEIR_BLK_POOL]));
	claim->bytes = mnl_attr_get_payload_len(agent);
	memcpy(claim->agent, mnl_attr_get_payload(agent), claim->bytes);
}

static int detach(const char *cmd, uint32_t number)
{
	struct blk_claim claim = { .number = number };
	struct blk_netlink talk = { 0 };
	int status = blk_netlink_open(&talk, cmd);

	if (!status)
		status = blk_netlink_request(&talk, cmd,
					     blk_netlink_message(&talk, WEIR_BLK_LIST, NLM_F_DUMP),
					     on_device, &claim);
	if (!status) {
		struct nlmsghdr *message = blk_netlink_message(&talk, WEIR_BLK_DETACH, 0);

		mnl_attr_put_u32(message, WEIR_BLK_NUMBER, number);
		status = blk_netlink_change(&talk, cmd, message, NULL);
	}
	if (!status && claim.bytes)
		blk_agent_release(claim.pool, claim.agent, claim.bytes);
	blk_netlink_close(&talk);
	return status;
}

static int blk_detach(const char *cmd, int argc, char **argv)
{
	int status = cmdline_parse(&detach_line, argc, argv, NULL);
	uint32_t number;

	if (status != CMDLINE_PARSED)
		return status;
	status = blk_parse_device(cmd, argv[optind], &number);
	return status ? status : detach(cmd, number);
}

static int resize(const char *cmd, uint32_t number, uint64_t bytes)
{
	struct blk_netlink talk = { 0 };
	int status = blk_netlink_open(&talk, cmd);

	if (!status) {
		struct nlmsghdr *message = blk_netlink_message(&talk, WEIR_BLK_RESIZE, 0);

		mnl_attr_put_u32(message, WEIR_BLK_NUMBER, number);
		mnl_attr_put_u64(message, WEIR_BLK_BYTES, bytes);
		status = blk_netlink_change(&talk, cmd, message, NULL);
	}
	blk_netlink_close(&talk);
	return status;
}

static int blk_resize(const char *cmd, int argc, char **argv)
{
	int status = cmdline_parse(&resize_line, argc, argv, NULL);
	uint32_t number;
	uint64_t bytes;

	if (status != CMDLINE_PARSED)
		return status;
	status = blk_parse_device(cmd, argv[optind], &number);
	if (status)
		return status;
	if (size_parse(argv[optind + 1], &bytes) || !bytes || bytes % 4096)
		return usage_error(cmd, "%s: expected a multiple of 4096 bytes", argv[optind + 1]);
	return resize(cmd, number, bytes);
}

static const struct subcommand commands[] = {
	{ "attach", NULL, blk_attach },
	{ "detach", NULL, blk_detach },
	{ "resize", NULL, blk_resize },
	{ "list", NULL, blk_list },
	{ "stat", NULL, blk_stat },
	{ "agent", NULL, blk_agent },
	{ NULL },
};

int cmd_blk(int argc, char **argv)
{
	return run_subcommand(commands, help, argc, argv);
}
