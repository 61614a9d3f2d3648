/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "core/link/call_table.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/client/memory/region.h"
#include "lib/volume/memory.h"
#include "lib/volume/request.h"
#include "lib/volume/target.h"

#define EXTENT_BYTES_MAX (1u << 30)

/* A volume that is smaller than a set of extents is striped over fewer extents. */
static void choose_stripe(struct weir_volume *v)
{
	uint64_t bytes = weir_extents_choose_bytes(v->bytes, EXTENT_BYTES_MAX);
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
	for (uint32_t i = 0; !v->coded && i < count; i++) {
		v->extents[i].sum = calloc(v->core.pages, sizeof(uint32_t));
		if (!v->extents[i].sum)
			return -ENOMEM;
	}
	v->core.reserve = weir_extents_choose_reserve(v->core.nr_extents);
	weir_borrow_init(&v->borrow, &v->core, weir_volume_extent_bytes(v), v->options.timeout_ns);
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

int weir_volume_memory_query_room(struct weir_volume *v, uint8_t donor)
{
	struct weir_donor_state state = { 0 };
	uint64_t bytes, quota_bytes;
	int rc = weir_session_donor_state(v->targets[donor].session, &state, sizeof(state));

	bytes = state.memory_bytes - state.lent_bytes;
	quota_bytes = state.quota_bytes - state.held_bytes;
	if (quota_bytes < bytes)
		bytes = quota_bytes;
	weir_volume_lock(v);
	weir_borrow_room(&v->borrow, donor, rc, bytes, weir_now_ns());
	weir_volume_unlock(v);
	return rc;
}

static void ask_memory(struct weir_volume *v, struct weir_extents_placement *place,
		       struct weir_error *error)
{
	struct weir_region *region = NULL;
	int rc = weir_region_create(v->targets[place->donor].session, NULL,
				    weir_volume_extent_bytes(v), WEIR_REGION_EXCLUSIVE, &region,
				    error);
	bool is_placed;

	weir_volume_lock(v);
	is_placed = weir_borrow_taken(&v->borrow, place, rc, weir_now_ns());
	if (is_placed) {
		*weir_volume_region(v, place->extent, place->slot) = region;
		weir_volume_pieces_resume(v, false);
	}
	weir_volume_unlock(v);
	if (rc || is_placed)
		return;
	rc = weir_region_try_close(region);
	if (weir_call_is_unanswered(rc))
		weir_region_forget(region); /* the donor frees it when the session ends */
	weir_volume_lock(v);
	weir_borrow_answered(&v->borrow, place->donor, rc, weir_now_ns());
	weir_volume_unlock(v);
}

static void give_back(struct weir_volume *v, const struct weir_borrow_step *step)
{
	struct weir_region *region;
	int rc = 0;

	weir_volume_lock(v);
	region = *weir_volume_region(v, step->place.extent, step->place.slot);
	weir_volume_unlock(v);
	if (step->op == WEIR_BORROW_GIVE_BACK)
		rc = weir_region_try_close(region);
	else
		weir_region_forget(region);
	weir_volume_lock(v);
	weir_borrow_returned(&v->borrow, step, rc, weir_now_ns());
	weir_volume_unlock(v);
}

static void reconnect(struct weir_volume_target *target)
{
	if (target->session)
		weir_volume_target_drop(target);
	weir_volume_target_reconnect(target);
}

static void take_step(struct weir_volume *v, struct weir_borrow_step *step,
		      struct weir_error *error)
{
	switch ((enum weir_borrow_op)step->op) {
	case WEIR_BORROW_ASK_MEMORY:
		ask_memory(v, &step->place, error);
		break;
	case WEIR_BORROW_ASK_ROOM:
		weir_volume_memory_query_room(v, step->place.donor);
		break;
	case WEIR_BORROW_GIVE_BACK:
	case WEIR_BORROW_DROP:
		give_back(v, step);
		break;
	case WEIR_BORROW_RECONNECT:
		reconnect(&v->targets[step->place.donor]);
		break;
	case WEIR_BORROW_END:
		break;
	}
}

void weir_volume_memory_round(struct weir_volume *v, enum weir_borrow_phase first,
			      enum weir_borrow_phase last, struct weir_error *error)
{
	struct weir_borrow_step step;

	weir_borrow_begin(&v->borrow, first, last);
	do {
		weir_volume_lock(v);
		weir_borrow_next(&v->borrow, &step, weir_now_ns());
		weir_volume_unlock(v);
		take_step(v, &step, error);
	} while (step.op != WEIR_BORROW_END && !weir_volume_is_closing(v));
	if (v->borrow.is_wanted)
		weir_volume_kick(v);
}
