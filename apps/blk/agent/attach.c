/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attaches a device, and stays as its agent. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apps/blk/agent/internal.h"
#include "apps/common/cmd.h"
#include "lib/base/error.h"
#include "lib/volume/pool.h"

static int claim_volume(struct blk_agent *a)
{
	const struct weir_pool_volume *volume;
	struct weir_error error;

	if (weir_pool_client_read(a->client, a->map, &error))
		return failure(a->cmd, "%s", error.text);
	volume = weir_pool_map_volume(a->map, a->volume);
	if (volume && volume->scheme.data != 1)
		return failure(a->cmd,
			       "volume %s has the scheme %s: a block device needs copies, such as "
			       "copies=2",
			       a->volume, weir_pool_scheme_format(volume->scheme).text);
	if (volume && (volume->bytes % WEIR_VOLUME_PAGE_BYTES ||
		       volume->extent_bytes % WEIR_VOLUME_PAGE_BYTES))
		return failure(a->cmd, "volume %s: its size is no multiple of %u bytes", a->volume,
			       WEIR_VOLUME_PAGE_BYTES);
	if (weir_pool_client_open_volume(a->client, a->volume, a->map, &error))
		return failure(a->cmd, "%s", error.text);
	volume = weir_pool_map_volume(a->map, a->volume);
	a->kept.pool = a->map->id;
	a->kept.volume = volume->id;
	(void)blk_agent_note_claim(a);
	if (blk_pool_map_write(a->map, volume, a->kept.claim.was_blank, a->out, &error))
		return failure(a->cmd, "%s", error.text);
	return EXIT_OK;
}

static uint32_t choose_timeout(const struct weir_pool_map *map)
{
	uint32_t ms = map->lease_ms * 2 / 3;

	return ms < BLK_AGENT_TIMEOUT_MS ? ms : BLK_AGENT_TIMEOUT_MS;
}

static int send_attach(struct blk_agent *a, const struct blk_agent_options *options)
{
	const struct weir_pool_volume *volume = weir_pool_map_volume(a->map, a->volume);
	struct nlmsghdr *message;
	struct weir_stripe stripe;
	uint16_t groups[WEIR_BLK_EXTENTS_MAX];
	uint64_t extents;
	int status;

	weir_volume_pool_stripe(a->map, volume, &stripe);
	extents = weir_stripe_extents(&stripe, volume->bytes / WEIR_VOLUME_PAGE_BYTES);
	if (extents > WEIR_BLK_EXTENTS_MAX)
		return failure(a->cmd,
			       "volume %s has %" PRIu64
			       " extents: at most %d; give it larger ones, by "
			       "'weir pool volume create --extent'",
			       a->volume, extents, WEIR_BLK_EXTENTS_MAX);
	for (uint64_t i = 0; i < extents; i++)
		groups[i] = (uint16_t)(weir_pool_map_group(a->map, volume, i) - a->out->first);
	a->layout = (struct weir_blk_layout){ .pool = a->kept.pool,
					      .volume = a->kept.volume,
					      .epoch = a->kept.claim.epoch,
					      .unit = stripe.unit,
					      .width = stripe.width,
					      .extent_pages = stripe.extent,
					      .groups = a->out->count };
	message = blk_netlink_message(&a->talk, WEIR_BLK_ATTACH, 0);
	mnl_attr_put_strz(message, WEIR_BLK_POOL, a->name);
	mnl_attr_put(message, WEIR_BLK_LAYOUT, sizeof(a->layout), &a->layout);
	mnl_attr_put(message, WEIR_BLK_GROUPS, extents * sizeof(groups[0]), groups);
	mnl_attr_put(message, WEIR_BLK_AGENT, sizeof(a->kept), &a->kept);
	mnl_attr_put_u64(message, WEIR_BLK_BYTES, volume->bytes);
	mnl_attr_put_u32(message, WEIR_BLK_REPLICAS, weir_pool_width(volume->scheme));
	mnl_attr_put_u32(message, WEIR_BLK_TIMEOUT_MS,
			 options->timeout_ms ? options->timeout_ms : choose_timeout(a->map));
	status = options->write(message, options->arg);
	if (status)
		return status;
	return blk_netlink_change(&a->talk, a->cmd, message, &a->number);
}

static int attach(struct blk_agent *a, const struct blk_agent_options *options)
{
	int status = send_attach(a, options);

	if (status)
		return status;
	status = blk_agent_guard(a);
	if (!status && blk_agent_send_map(a, &a->talk, 0, 0))
		status = failure(a->cmd, "the module refuses the map of the pool");
	if (!status) {
		blk_agent_keep_memory();
		status = blk_agent_watch(a);
	}
	if (!status)
		status = blk_agent_start(a);
	if (status)
		blk_agent_detach(a);
	return status;
}

int blk_agent_attach_and_run(const struct blk_agent_options *options, int ready)
{
	struct blk_agent *a = blk_agent_new(options->cmd);
	int status;

	if (!a)
		return failure(options->cmd, "out of memory");
	status = blk_agent_prepare(a, options->pool);
	if (!status)
		status = blk_agent_connect(a);
	if (!status)
		status = claim_volume(a);
	if (!status)
		status = attach(a, options);
	if (!status) {
		printf("/dev/weir%u\n", a->number);
		fflush(stdout);
		blk_agent_leave_terminal();
		if (write(ready, &a->number, sizeof(a->number)) != sizeof(a->number))
			(void)0; /* the keeper has ended: the device stays all the same */
		close(ready);
		blk_agent_run(a);
	}
	blk_agent_finish(a, !status && !a->is_gone && !a->is_over);
	return status;
}
