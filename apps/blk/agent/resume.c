/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The next agent of a device, and the end of a claim without one. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apps/blk/agent/internal.h"
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "lib/base/error.h"

/* A device's POOL, LAYOUT and AGENT. */
struct blk_agent_device {
	struct weir_blk_layout layout;
	uint32_t number;
	bool found;
	char pool[WEIR_BLK_POOL_MAX + 1];
	struct blk_agent_kept kept;
	size_t bytes;
};

static void on_device(const struct nlattr *const *attrs, void *arg)
{
	struct blk_agent_device *device = arg;

	if (!attrs[WEIR_BLK_NUMBER] || mnl_attr_get_u32(attrs[WEIR_BLK_NUMBER]) != device->number ||
	    !attrs[WEIR_BLK_POOL])
		return;
	device->found = true;
	snprintf(device->pool, sizeof(device->pool), "%s", mnl_attr_get_str(attrs[WEIR_BLK_POOL]));
	(void)blk_agent_read_list(attrs[WEIR_BLK_LAYOUT], &device->layout, sizeof(device->layout),
				  1);
	device->bytes =
		blk_agent_read_list(attrs[WEIR_BLK_AGENT], &device->kept, sizeof(device->kept), 1);
}

static int resume(struct blk_agent *a, const struct blk_agent_device *device)
{
	struct weir_error error;

	a->kept = device->kept;
	a->layout = device->layout;
	if (device->bytes != sizeof(a->kept) ||
	    weir_pool_client_resume(a->client, a->volume, &a->kept.claim, &error))
		return failure(a->cmd, "weir%u was attached by another version of weir", a->number);
	if (weir_pool_client_read(a->reporter, a->map, &error))
		return failure(a->cmd, "%s", error.text);
	if (blk_agent_is_taken(a, a->map)) {
		a->is_over = true;
		(void)blk_agent_send_map(a, &a->talk, 0, 0);
		return failure(a->cmd, "volume %s: another client has opened it", a->name);
	}
	if (blk_pool_map_write(a->map, weir_pool_map_volume(a->map, a->volume),
			       a->kept.claim.was_blank, a->out, &error))
		return failure(a->cmd, "%s", error.text);
	if (blk_agent_send_map(a, &a->talk, 0, 0))
		return failure(a->cmd, "the module refuses the map of the pool");
	return blk_agent_watch(a);
}

/* Return: an exit status. @is_final: no later agent could do better. */
static int take_over(struct blk_agent *a, struct blk_agent_device *device, bool *is_final)
{
	int status = blk_agent_connect(a);

	if (!status)
		status = blk_netlink_request(
			&a->talk, a->cmd, blk_netlink_message(&a->talk, WEIR_BLK_LIST, NLM_F_DUMP),
			on_device, device);
	if (!status && !device->found) {
		*is_final = true;
		status = failure(a->cmd, "there is no weir%u of a pool, or you are not root",
				 a->number);
	}
	if (!status)
		status = blk_agent_guard(a);
	if (!status)
		status = blk_agent_prepare(a, device->pool);
	if (!status)
		status = resume(a, device);
	*is_final |= a->is_over;
	return status;
}

/* Return: an exit status. */
static int take_over_and_run(const char *cmd, uint32_t number, bool *is_final)
{
	struct blk_agent_device device = { .number = number };
	struct blk_agent *a = blk_agent_new(cmd);
	int status;

	if (!a)
		return failure(cmd, "out of memory");
	a->number = number;
	blk_agent_keep_memory();
	status = take_over(a, &device, is_final);
	if (!status) {
		*is_final = true;
		blk_agent_run(a);
		if (a->is_over)
			status = failure(cmd, "volume %s: another client has opened it", a->name);
	}
	blk_agent_finish(a, !a->is_gone && !a->is_over);
	return status;
}

int blk_agent_replace(const char *cmd, uint32_t number)
{
	bool is_final = false;
	int status = take_over_and_run(cmd, number, &is_final);

	return is_final ? status : BLK_AGENT_AGAIN;
}

static const struct cmdline agent_line = {
	.usage =
		"Usage: weir blk agent DEVICE\n"
		"Is the agent of a device on a pool, in the place of the processes that 'weir blk\n"
		"attach' has left, if both have ended. Ends with the device.\n",
	.arguments = "DEVICE",
	.arguments_min = 1,
	.arguments_max = 1,
};

int blk_agent(const char *cmd, int argc, char **argv)
{
	int status = cmdline_parse(&agent_line, argc, argv, NULL);
	bool is_final = false;
	uint32_t number;

	if (status != CMDLINE_PARSED)
		return status;
	status = blk_parse_device(cmd, argv[optind], &number);
	return status ? status : take_over_and_run(cmd, number, &is_final);
}

void blk_agent_release(const char *pool, const void *agent, size_t bytes)
{
	char place[WEIR_BLK_POOL_MAX + 1];
	struct weir_pool_client *client;
	struct blk_agent_kept kept;
	const char *volume;

	if (bytes != sizeof(kept) || !blk_pool_split(pool, place, &volume) ||
	    weir_pool_client_open(place, &client, NULL))
		return;
	memcpy(&kept, agent, sizeof(kept));
	(void)weir_pool_store_revoke(weir_pool_client_store(client), kept.claim.lease, NULL);
	weir_pool_client_close(client);
}
