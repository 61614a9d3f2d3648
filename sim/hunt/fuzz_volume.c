/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A volume over donors that fail, come back empty, and want memory back. The hunt checks from
 * outside: a read returns the written data or an error; data is lost only with a donor; memory is
 * given back only when unused. In the end each extent that is not lost has all its replicas, all
 * equal.
 */
#include "sim/hunt/fuzz_volume.h"

#define ROOM 4 /* extents of a donor */
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
	v->peril = hunt_volume_below(v, 80);
}

static struct fuzz_volume_task *unused_task(struct fuzz_volume *v)
{
	uint32_t i = 0;

	while (i < VOLUME_TASKS && v->tasks[i].kind)
		i++;
	return i < VOLUME_TASKS ? &v->tasks[i] : NULL;
}

/* Returns reclaimed memory, then grants a placement, perhaps of another extent than wanted. */
static void grant_memory(struct fuzz_volume *v)
{
	struct weir_extents_placement place;

	weir_extents_trim(&v->volume);
	while (weir_extents_reclaim(&v->volume, &place)) {
		hunt_expect(v->hunt, !hunt_volume_is_busy(v, place.extent, place.slot),
			    "memory of extent %u is given back while in use", place.extent);
		v->is_there[place.extent][place.slot] = false;
	}
	if (weir_extents_next_placement(&v->volume, &place))
		return;
	hunt_expect(v->hunt, v->is_up[place.donor],
		    "memory is requested of donor %u, which is down", place.donor);
	if (!v->is_calm && !hunt_volume_below(v, 10)) {
		weir_extents_donor_room(&v->volume, place.donor, 0);
		return;
	}
	place.extent = hunt_volume_below(v, VOLUME_EXTENTS);
	if (weir_extents_granted(&v->volume, &place))
		return;
	hunt_expect(v->hunt, !v->is_there[place.extent][place.slot],
		    "memory is granted to a replica that has memory");
	v->is_there[place.extent][place.slot] = true;
	memset(v->memory[place.extent][place.slot], 0, sizeof(v->memory[0][0]));
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

/* The only cause of loss: an extent's last replica goes with its donor. */
static void donor_lost(struct fuzz_volume *v, uint8_t donor)
{
	uint32_t i;

	v->is_up[donor] = false;
	weir_extents_donor_lost(&v->volume, donor);
	for (i = 0; i < VOLUME_EXTENTS; i++)
		v->was_lost[i] |= weir_extents_is_lost(&v->volume, i);
}

static void donor_changes(struct fuzz_volume *v, uint8_t donor)
{
	if (!v->is_up[donor] && weir_extents_donor_extents(&v->volume, donor))
		return;
	if (v->is_up[donor] && !v->is_calm && !hunt_volume_below(v, 25)) {
		donor_lost(v, donor);
		return;
	}
	if (v->is_up[donor] && hunt_volume_below(v, 2)) {
		weir_extents_donor_slow(&v->volume, donor);
		return;
	}
	v->is_up[donor] = true;
	weir_extents_donor_up(&v->volume, donor);
	weir_extents_donor_room(&v->volume, donor, ROOM);
}

static void donor_reclaims(struct fuzz_volume *v)
{
	uint8_t donor = (uint8_t)hunt_volume_below(v, VOLUME_DONORS);

	if (!hunt_volume_below(v, 3))
		donor_changes(v, donor);
	else if (v->is_calm)
		weir_extents_donor_keeps(&v->volume, donor, WEIR_EXTENTS_KEEPS_ALL);
	else if (!hunt_volume_below(v, 8))
		weir_extents_donor_keeps(&v->volume, donor,
					 hunt_volume_below(v, 2) ? hunt_volume_below(v, ROOM) :
								   WEIR_EXTENTS_KEEPS_ALL);
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
		grant_memory(v);
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
