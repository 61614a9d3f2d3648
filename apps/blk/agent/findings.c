/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The main thread: takes findings of the module to the pool. */
#include <errno.h>
#include <string.h>

#include "apps/blk/agent/internal.h"
#include "apps/common/cmd.h"
#include "apps/common/stop.h"
#include "lib/base/clock.h"

static bool was_reported(const struct blk_agent *a, uint64_t incarnation)
{
	const size_t ring = sizeof(a->reported) / sizeof(a->reported[0]);

	for (size_t i = 0; i < a->nr_reported && i < ring; i++) {
		if (a->reported[i] == incarnation)
			return true;
	}
	return false;
}

/*
 * Reports donors that failed. A client whose claim is over sees refusals, and must blame no donor:
 * so the claim is confirmed first.
 */
static void report_failed(struct blk_agent *a, const struct blk_look *look)
{
	const size_t ring = sizeof(a->reported) / sizeof(a->reported[0]);
	char id[WEIR_POOL_NAME_MAX] = "";
	uint64_t claimed;

	for (size_t i = 0; i < look->nr_failed; i++) {
		uint16_t donor;

		if (was_reported(a, look->failed[i]))
			continue;
		pthread_mutex_lock(&a->lock);
		donor = blk_pool_map_donor(a->map, look->failed[i]);
		if (donor != WEIR_POOL_NO_DONOR)
			memcpy(id, a->map->donor[donor].id, sizeof(id));
		claimed = a->kept.claim.claimed;
		pthread_mutex_unlock(&a->lock);
		if (donor == WEIR_POOL_NO_DONOR)
			continue;
		if (weir_pool_client_confirm(a->reporter, a->volume, claimed, NULL) ||
		    weir_pool_client_report_failed(a->reporter, id, look->failed[i], NULL))
			return;
		a->reported[a->nr_reported++ % ring] = look->failed[i];
	}
}

/* Proves that the map was still the latest when the module had opened @look->proof regions. */
static void give_proof(struct blk_agent *a, const struct blk_look *look)
{
	bool is_same;

	if (weir_pool_client_read(a->reporter, a->own, NULL))
		return;
	pthread_mutex_lock(&a->lock);
	is_same = blk_agent_has_volume(a, a->own);
	for (uint16_t i = a->out->first; is_same && i < a->out->first + a->out->count; i++)
		is_same = a->own->group[i].version == a->map->group[i].version;
	pthread_mutex_unlock(&a->lock);
	if (is_same)
		(void)blk_agent_send_map(a, &a->talk, WEIR_BLK_MAP_PROVEN, look->proof);
}

/* Return: 0, or -ENODEV. */
static int take_look(struct blk_agent *a)
{
	int rc = blk_agent_look(a, &a->talk, &a->look);

	if (rc)
		return rc;
	report_failed(a, &a->look);
	if (a->look.flags & WEIR_BLK_LOOK_UNPROVEN)
		give_proof(a, &a->look);
	return 0;
}

/* Return: why the volume will not open, as an exit status after a message; or EXIT_OK. */
static int find_obstacle(const struct blk_agent *a)
{
	if (a->look.flags & WEIR_BLK_LOOK_OVER)
		return failure(a->cmd, "volume %s: another client has opened it", a->name);
	if (a->look.flags & WEIR_BLK_LOOK_LOST)
		return failure(a->cmd,
			       "volume %s has lost data: a group has no donor left; see 'weir pool "
			       "status'",
			       a->name);
	return *a->look.text ? failure(a->cmd, "%s", a->look.text) : EXIT_OK;
}

/* A number that changes while the opening goes on, and how long it may stay the same. */
static uint64_t progress_of(struct blk_agent *a, uint64_t *patience_ns)
{
	uint64_t progress;

	pthread_mutex_lock(&a->lock);
	progress = a->look.proof + a->look.copied + a->map->revision;
	*patience_ns = (2 * BLK_AGENT_TIMEOUT_MS + 3ull * a->map->lease_ms) * WEIR_NS_PER_MS;
	pthread_mutex_unlock(&a->lock);
	return progress;
}

int blk_agent_start(struct blk_agent *a)
{
	uint64_t last = UINT64_MAX, until_ns = 0, patience_ns;
	int status;

	while (!stop_requested() && !blk_agent_ends(a)) {
		if (take_look(a))
			return failure(a->cmd, "weir%u has been detached", a->number);
		status = find_obstacle(a);
		if (status)
			return status;
		if (a->look.flags & WEIR_BLK_LOOK_EQUAL)
			return blk_agent_send_start(a);
		if (progress_of(a, &patience_ns) != last)
			until_ns = weir_now_ns() + patience_ns;
		last = progress_of(a, &patience_ns);
		if (weir_now_ns() > until_ns)
			return failure(
				a->cmd,
				"volume %s: not all of its donors answer: 'weir pool status' "
				"shows what is missing",
				a->name);
		blk_agent_rest(a, false);
	}
	return failure(a->cmd,
		       stop_requested() ? "interrupted" : "volume %s: another client has opened it",
		       a->name);
}

void blk_agent_run(struct blk_agent *a)
{
	while (!stop_requested() && !blk_agent_ends(a)) {
		if (take_look(a) == -ENODEV) {
			pthread_mutex_lock(&a->lock);
			a->is_gone = true;
			pthread_mutex_unlock(&a->lock);
			break;
		}
		blk_agent_rest(a, true);
	}
	blk_agent_end(a);
}
