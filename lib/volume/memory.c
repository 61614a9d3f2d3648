/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/client/memory/region.h"
#include "lib/volume/memory.h"
#include "lib/volume/request.h"

#define EXTENTS 64u /* at least; each donor gets a share */
#define EXTENT_BYTES_MIN (1u << 20)
#define EXTENT_BYTES_MAX (1u << 30)
#define RESERVE_SHARE 8u /* share of the extents that keeps memory after a discard */

static uint64_t round_up_to_power(uint64_t bytes)
{
	uint64_t power = EXTENT_BYTES_MIN;

	while (power < bytes && power < EXTENT_BYTES_MAX)
		power *= 2;
	return power;
}

/* A volume that is smaller than a set of extents is striped over fewer extents. */
static void choose_stripe(struct weir_volume *v)
{
	uint64_t bytes = round_up_to_power(v->bytes / (2 * EXTENTS));
	uint64_t extents = (v->bytes + bytes - 1) / bytes;

	v->stripe = (struct weir_stripe){
		.unit = WEIR_VOLUME_UNIT_PAGES,
		.width = extents < v->nr_targets ? (uint32_t)extents : v->nr_targets,
		.extent = (uint32_t)(bytes / WEIR_VOLUME_PAGE_BYTES),
	};
}

int weir_volume_memory_init(struct weir_volume *v)
{
	choose_stripe(v);
	return weir_volume_memory_lay_out(v);
}

int weir_volume_memory_lay_out(struct weir_volume *v)
{
	uint64_t pages = (v->bytes + WEIR_VOLUME_PAGE_BYTES - 1) / WEIR_VOLUME_PAGE_BYTES, count;
	int rc;

	count = weir_stripe_extents(&v->stripe, pages);
	if (count >= UINT32_MAX)
		return -EINVAL;
	v->extents = calloc(count, sizeof(*v->extents));
	if (!v->extents)
		return -ENOMEM;
	rc = weir_extents_init(&v->core, v->extents, (uint32_t)count, v->stripe.extent,
			       (uint8_t)v->nr_targets, (uint8_t)v->options.copies);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < count; i++) {
		v->extents[i].sum = calloc(v->core.pages, sizeof(uint32_t));
		if (!v->extents[i].sum)
			return -ENOMEM;
	}
	/* At least two extents: one to use while another is being borrowed. */
	v->core.reserve = v->core.nr_extents / RESERVE_SHARE;
	if (v->core.reserve < 2)
		v->core.reserve = 2;
	v->regions = calloc(count * v->core.slots, sizeof(struct weir_region *));
	return v->regions ? 0 : -ENOMEM;
}

void weir_volume_memory_fini(struct weir_volume *v)
{
	for (uint32_t i = 0; v->extents && i < v->core.nr_extents; i++)
		free(v->extents[i].sum);
	free(v->extents);
	free(v->regions); /* the sessions free the regions themselves */
}

static bool is_no_answer(int rc)
{
	return rc == -ETIMEDOUT || rc == -ECONNRESET || rc == -ENOTCONN;
}

/*
 * A stopped donor still serves reads and writes without its process, but each request for memory
 * would wait for the timeout. So the volume prefers others, and asks a silent donor once in a
 * while.
 */
static void note_answer(struct weir_volume *v, uint8_t donor, int rc)
{
	struct weir_volume_target *target = &v->targets[donor];

	target->is_silent = is_no_answer(rc);
	if (!target->is_silent)
		return;
	target->ask_again_ns = weir_after_ns(weir_now_ns(), v->options.timeout_ns);
	weir_volume_lock(v);
	if (v->core.donor[donor].state == WEIR_EXTENTS_DONOR_UP)
		weir_extents_donor_slow(&v->core, donor);
	weir_volume_unlock(v);
}

int weir_volume_memory_query_room(struct weir_volume *v, uint8_t donor)
{
	struct weir_donor_state state = { 0 };
	uint64_t free_bytes, quota_bytes;
	int rc = weir_session_donor_state(v->targets[donor].session, &state, sizeof(state));

	note_answer(v, donor, rc);
	if (rc)
		return rc;
	free_bytes = state.memory_bytes - state.lent_bytes;
	quota_bytes = state.quota_bytes - state.held_bytes;
	if (quota_bytes < free_bytes)
		free_bytes = quota_bytes;
	weir_volume_lock(v);
	weir_extents_donor_room(&v->core, donor, free_bytes / weir_volume_extent_bytes(v));
	weir_volume_unlock(v);
	return 0;
}

void weir_volume_memory_retry_silent(struct weir_volume *v)
{
	struct weir_volume_target *first = NULL;
	uint64_t now_ns = weir_now_ns();

	for (unsigned int i = 0; i < v->nr_targets; i++) {
		struct weir_volume_target *target = &v->targets[i];

		if (!target->is_silent || !target->session || target->ask_again_ns > now_ns)
			continue;
		if (!first || target->ask_again_ns < first->ask_again_ns)
			first = target;
	}
	if (first && !weir_volume_memory_query_room(v, (uint8_t)(first - v->targets)))
		weir_volume_kick(v);
}

/* Borrows memory from a donor for @place. */
static void request_memory(struct weir_volume *v, struct weir_extents_placement *place,
			   struct weir_error *error)
{
	struct weir_region *region = NULL;
	int rc, wanted = 0;

	rc = weir_region_create(v->targets[place->donor].session, NULL, weir_volume_extent_bytes(v),
				WEIR_REGION_EXCLUSIVE, &region, error);
	note_answer(v, place->donor, rc);
	weir_volume_lock(v);
	if (rc && !is_no_answer(rc))
		weir_extents_donor_room(&v->core, place->donor, 0);
	else if (!rc)
		wanted = weir_extents_granted(&v->core, place);
	if (!rc && !wanted) {
		*weir_volume_region(v, place->extent, place->slot) = region;
		weir_volume_pieces_resume(v, false);
	}
	weir_volume_unlock(v);
	if (wanted)
		weir_region_close(region);
}

int weir_volume_memory_fetch(struct weir_volume *v, struct weir_error *error)
{
	struct weir_extents_placement place;
	int rc;

	while (!weir_volume_is_closing(v)) {
		weir_volume_lock(v);
		rc = weir_extents_next_placement(&v->core, &place);
		weir_volume_unlock(v);
		if (rc)
			return rc == -ENOENT ? 0 : rc;
		request_memory(v, &place, error);
	}
	return 0;
}

/* Donors that can be told now, if @tell, and donors that need not be told. With the lock held. */
static uint64_t choose_donors(const struct weir_volume *v, bool tell)
{
	uint64_t donors = 0;

	for (unsigned int i = 0; i < v->nr_targets; i++) {
		uint8_t state = v->core.donor[i].state;

		if (state == WEIR_EXTENTS_DONOR_DOWN || (tell && state == WEIR_EXTENTS_DONOR_UP))
			donors |= 1ull << i;
	}
	return donors;
}

/* Gives a region back. Return: true if it is gone; false: the donor does not answer. */
static bool return_region(struct weir_volume *v, const struct weir_extents_placement *place,
			  struct weir_region *region, bool is_there)
{
	int rc = 0;

	if (is_there)
		rc = weir_region_try_close(region);
	else
		weir_region_forget(region);
	if (is_there)
		note_answer(v, place->donor, rc);
	return !is_no_answer(rc);
}

bool weir_volume_memory_return(struct weir_volume *v, bool tell)
{
	struct weir_extents_placement place;
	bool any_returned = false;

	for (;;) {
		bool any, is_there = false, is_returned;
		struct weir_region **region = NULL;

		weir_volume_lock(v);
		weir_extents_trim(&v->core);
		any = weir_extents_next_return(&v->core, choose_donors(v, tell), &place);
		if (any) {
			region = weir_volume_region(v, place.extent, place.slot);
			is_there = v->core.donor[place.donor].state != WEIR_EXTENTS_DONOR_DOWN;
		}
		weir_volume_unlock(v);
		if (!any)
			return any_returned;
		is_returned = return_region(v, &place, *region, is_there);
		any_returned |= is_returned && is_there;
		weir_volume_lock(v);
		weir_extents_returned(&v->core, &place, is_returned);
		weir_volume_unlock(v);
	}
}
