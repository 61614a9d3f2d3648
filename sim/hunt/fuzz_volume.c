/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A volume over donors that fail, come back empty, and want memory back. The hunt checks from
 * outside: a read returns the written data or an error; data is lost only with a donor; memory is
 * given back only when unused. In the end each extent that is not lost has all its replicas, all
 * equal.
 */
#include "sim/hunt/fuzz_volume.h"

#define STEPS 1500
#define CALM_STEPS 20000

static void init_run(struct fuzz_volume *v)
{
	uint8_t i, replicas = (uint8_t)(1 + hunt_volume_below(v, 3));

	for (i = 0; i < VOLUME_EXTENTS; i++)
		v->extents[i].sum = v->sums[i];
	hunt_expect(v->hunt,
		    !weir_extents_init(&v->volume, v->extents, VOLUME_EXTENTS, VOLUME_PAGES,
				       VOLUME_DONORS, replicas),
		    "there is no volume");
	v->volume.reserve = hunt_volume_below(v, 2);
	hunt_volume_init_loans(v);
	v->peril = hunt_volume_below(v, 80);
}

static struct fuzz_volume_task *unused_task(struct fuzz_volume *v)
{
	uint32_t i = 0;

	while (i < VOLUME_TASKS && v->tasks[i].kind)
		i++;
	return i < VOLUME_TASKS ? &v->tasks[i] : NULL;
}

static void discard_pages(struct fuzz_volume *v)
{
	struct fuzz_volume_task task;
	bool all = hunt_volume_below(v, 3);
	uint32_t i;

	hunt_volume_task(v, &task, VOLUME_NO_TASK, hunt_volume_below(v, VOLUME_EXTENTS));
	if (all) {
		task.page = 0;
		task.pages = VOLUME_PAGES;
	}
	if (!hunt_volume_may_write(v, &task))
		return;
	weir_extents_discard(&v->volume, task.extent, task.page, task.pages,
			     !hunt_volume_below(v, 8));
	for (i = 0; i < task.pages; i++)
		v->pages[task.extent][task.page + i] =
			(struct fuzz_volume_page){ .changed = v->clock };
}

static uint64_t draw_keep(struct fuzz_volume *v)
{
	return hunt_volume_below(v, 2) ? hunt_volume_below(v, VOLUME_ROOM) : WEIR_EXTENTS_KEEPS_ALL;
}

static void donor_reclaims(struct fuzz_volume *v)
{
	uint8_t donor = (uint8_t)hunt_volume_below(v, VOLUME_DONORS);

	if (!hunt_volume_below(v, 3))
		hunt_volume_donor_changes(v, donor);
	else if (v->is_calm)
		weir_extents_donor_keeps(&v->volume, donor, WEIR_EXTENTS_KEEPS_ALL);
	else if (!hunt_volume_below(v, 8))
		weir_extents_donor_keeps(&v->volume, donor, draw_keep(v));
	else if (!hunt_volume_below(v, 12))
		discard_pages(v);
}

static void run_step(struct fuzz_volume *v)
{
	struct fuzz_volume_task *task = unused_task(v);
	uint32_t what = hunt_volume_below(v, 16), i;

	v->clock++;
	if (task && what < 2 && !v->is_calm)
		what ? hunt_volume_write(v, task) : hunt_volume_read(v, task);
	else if (task && what < 4)
		hunt_volume_copy(v, task);
	else if (what == 4)
		hunt_volume_loan(v);
	else if (what == 5)
		donor_reclaims(v);
	else
		hunt_volume_work(v);
	for (i = 0; i < VOLUME_EXTENTS; i++)
		hunt_expect(v->hunt, v->was_lost[i] || !weir_extents_is_lost(&v->volume, i),
			    "extent %u is lost, and no donor is", i);
}

static bool is_quiet(const struct fuzz_volume *v)
{
	struct weir_extents_census census = weir_extents_census(&v->volume);
	uint32_t i;

	for (i = 0; i < VOLUME_TASKS; i++)
		if (v->tasks[i].kind)
			return false;
	for (i = 0; i < VOLUME_DONORS; i++)
		if (!v->donors[i].is_up || v->donors[i].is_silent)
			return false;
	return !census.lean && !census.leaving && census.lost == census.bare;
}

/* Pages never written may hold anything. */
static void watch_same(struct fuzz_volume *v, uint32_t extent)
{
	int first = -1;
	uint8_t slot;
	uint32_t i;

	for (slot = 0; slot < WEIR_EXTENTS_SLOTS_MAX; slot++) {
		if (v->extents[extent].replica[slot].state != WEIR_REPLICA_VALID)
			continue;
		first = first < 0 ? slot : first;
		for (i = 0; i < VOLUME_PAGES; i++)
			hunt_expect(v->hunt,
				    v->sums[extent][i] == WEIR_SUM_NOTHING ||
					    v->memory[extent][slot][i] ==
						    v->memory[extent][first][i],
				    "the replicas of extent %u differ", extent);
	}
}

void hunt_volume(struct hunt *h, uint64_t seed)
{
	struct fuzz_volume v = { .hunt = h };
	uint32_t i;

	sim_rng_init(&v.rng, seed, "volumes", 0);
	init_run(&v);
	for (i = 0; i < STEPS && !*h->why; i++)
		run_step(&v);
	v.is_calm = true;
	for (i = 0; i < CALM_STEPS && !*h->why && !is_quiet(&v); i++)
		run_step(&v);
	hunt_expect(h, is_quiet(&v), "all donors are up, and the volume is not whole");
	for (i = 0; i < VOLUME_EXTENTS; i++)
		watch_same(&v, i);
	hunt_note(h, "volume", v.written, (int64_t)v.volume.copied, v.turns);
}
