/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fills shards: one stripe after the other, by a request of the volume's own. */
#include "lib/base/clock.h"
#include "lib/volume/coded/coded.h"

void weir_volume_coded_trust(struct weir_volume *v, uint32_t extent)
{
	for (uint8_t slot = 0; slot < v->core.slots; slot++) {
		if (v->extents[extent].replica[slot].state != WEIR_REPLICA_FILLING ||
		    !weir_coded_is_enough(&v->coded->layout, &v->core, extent, UINT16_MAX) ||
		    !weir_coded_is_whole(&v->coded->layout, &v->coded->extent[extent], slot))
			continue;
		weir_extents_trust(&v->core, extent, slot);
		weir_volume_kick(v); /* which reports it */
	}
}

static struct weir_volume_request *unused_repair(const struct weir_volume_coded *coded)
{
	for (uint32_t i = 0; i < WEIR_VOLUME_REPAIRS_MAX; i++) {
		if (!coded->repair[i]->length)
			return coded->repair[i];
	}
	return NULL;
}

static bool is_under_way(const struct weir_volume_coded *coded, uint64_t page)
{
	for (uint32_t i = 0; i < WEIR_VOLUME_REPAIRS_MAX; i++) {
		if (coded->repair[i]->length && coded->repair[i]->first == page)
			return true;
	}
	return false;
}

/* Return: whether a repair has begun. */
static bool start_one(struct weir_volume *v)
{
	struct weir_volume_coded *coded = v->coded;
	struct weir_volume_request *r = unused_repair(coded);
	uint32_t pages = weir_coded_stripe_pages(&coded->layout);
	uint64_t first;

	if (!r || !weir_coded_next_repair(&coded->layout, &v->core, coded->extent,
					  &coded->at_extent, &coded->at_stripe))
		return false;
	first = weir_stripe_page(&v->stripe, coded->at_extent, coded->at_stripe * pages);
	coded->at_stripe = (coded->at_stripe + 1) % coded->layout.stripes;
	if (is_under_way(coded, first))
		return false;
	r->first = r->next = first;
	r->end = first + pages;
	r->offset = first * WEIR_VOLUME_PAGE_BYTES;
	r->length = (uint64_t)pages * WEIR_VOLUME_PAGE_BYTES;
	r->status = 0;
	weir_volume_request_admit(r);
	return true;
}

void weir_volume_coded_repair_start(struct weir_volume *v)
{
	bool may_start = !weir_volume_is_closing(v) && !v->status &&
			 weir_now_ns() >= v->coded->retry_ns;

	while (may_start && start_one(v))
		;
}

/* After a failure, the maintaining thread starts again. */
void weir_volume_coded_repair_ended(struct weir_volume_request *r)
{
	struct weir_volume *v = r->volume;
	bool is_usable = v->layout->is_equal(v, r->pieces[0].extent);

	r->length = 0;
	if (r->status)
		v->coded->retry_ns = weir_now_ns() + WEIR_VOLUME_RETRY_NS;
	else
		weir_volume_coded_repair_start(v);
	if (is_usable || r->status)
		weir_volume_pieces_resume(v, v->status); /* that may wait for the extent */
}
