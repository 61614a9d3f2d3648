/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The places of stripes in a coded extent; coded.h explains why this is correct. */
#include "core/volume/coded.h"
#include "core/base/rng.h"

#define PAGE_BYTES 4096u
#define SPARE_SHARE 32u /* places more than stripes: few, because each costs k + r fragments */
#define SPARE_MIN 2u

void weir_coded_lay_out(struct weir_coded_layout *layout, uint8_t data, uint8_t spare,
			uint32_t extent_pages)
{
	uint32_t free_places;

	layout->data = data;
	layout->width = data + spare;
	layout->stripes = extent_pages / weir_coded_stripe_pages(layout);
	if (!layout->stripes)
		layout->stripes = 1;
	free_places = layout->stripes / SPARE_SHARE;
	layout->places = layout->stripes + (free_places < SPARE_MIN ? SPARE_MIN : free_places);
}

uint32_t weir_coded_record_pages(const struct weir_coded_layout *layout)
{
	return (uint32_t)((layout->places * sizeof(struct weir_coded_record) + PAGE_BYTES - 1) /
			  PAGE_BYTES);
}

uint32_t weir_coded_place_page(const struct weir_coded_layout *layout, uint32_t place)
{
	return weir_coded_record_pages(layout) + place * WEIR_CODED_FRAGMENT_PAGES;
}

uint32_t weir_coded_shard_pages(const struct weir_coded_layout *layout)
{
	return weir_coded_place_page(layout, layout->places);
}

void weir_coded_init(const struct weir_coded_layout *layout, struct weir_coded_extent *c)
{
	memset(c->place, 0, layout->places * sizeof(c->place[0]));
	memset(c->record, 0, layout->stripes * sizeof(c->record[0]));
	for (uint32_t i = 0; i < layout->stripes; i++)
		c->current[i] = WEIR_CODED_NO_PLACE;
	c->number = 0;
	c->next = 0;
	c->has_due = false;
}

static bool is_live(const struct weir_replica *replica)
{
	return replica->state == WEIR_REPLICA_VALID || replica->state == WEIR_REPLICA_FILLING;
}

static bool is_up(const struct weir_extents *v, uint32_t extent, uint8_t slot)
{
	return v->donor[v->extent[extent].replica[slot].donor].state == WEIR_EXTENTS_DONOR_UP;
}

uint16_t weir_coded_live(const struct weir_extents *v, uint32_t extent)
{
	uint16_t slots = 0;

	for (uint8_t slot = 0; slot < v->slots; slot++)
		slots |= (uint16_t)(is_live(&v->extent[extent].replica[slot]) << slot);
	return slots;
}

static uint8_t count_bits(uint16_t bits)
{
	uint8_t count = 0;

	for (; bits; bits &= bits - 1)
		count++;
	return count;
}

bool weir_coded_is_enough(const struct weir_coded_layout *layout, const struct weir_extents *v,
			  uint32_t extent, uint16_t slots)
{
	uint16_t shards = 0;

	for (uint8_t slot = 0; slot < v->slots; slot++) {
		const struct weir_replica *replica = &v->extent[extent].replica[slot];

		if (slots >> slot & 1 && replica->state == WEIR_REPLICA_VALID)
			shards |= (uint16_t)(1u << replica->shard);
	}
	return count_bits(shards) >= layout->data;
}

/* Lists for each shard a slot that has the place, at an UP donor if there is one. */
static uint16_t find_shards(const struct weir_extents *v, uint32_t extent, uint16_t slots,
			    bool must_be_up, struct weir_coded_set *set)
{
	uint16_t found = 0;

	for (uint8_t slot = 0; slot < v->slots; slot++) {
		const struct weir_replica *replica = &v->extent[extent].replica[slot];

		if (!(slots >> slot & 1) || (must_be_up && !is_up(v, extent, slot)))
			continue;
		if (found >> replica->shard & 1 && !is_up(v, extent, slot))
			continue;
		found |= (uint16_t)(1u << replica->shard);
		set->slot[replica->shard] = slot;
	}
	return found;
}

/* The first @count of the shards: those with data come before parity. */
static uint16_t first_shards(uint16_t shards, uint8_t count)
{
	uint16_t first = 0;

	for (uint8_t shard = 0; count; shard++) {
		uint16_t bit = shards & (uint16_t)(1u << shard);

		first |= bit;
		count -= bit != 0;
	}
	return first;
}

/* The live slots with a stripe. A stripe without a place is zeroes everywhere. */
static uint16_t slots_with(const struct weir_extents *v, const struct weir_coded_extent *c,
			   uint32_t extent, uint32_t stripe)
{
	uint32_t place = c->current[stripe];

	return weir_coded_live(v, extent) &
	       (place == WEIR_CODED_NO_PLACE ? UINT16_MAX : c->place[place].at);
}

static void make_due(struct weir_coded_extent *c, uint32_t stripe)
{
	c->place[c->current[stripe]].is_due = true;
	c->has_due = true;
}

int weir_coded_choose(const struct weir_coded_layout *layout, struct weir_extents *v,
		      struct weir_coded_extent *c, uint32_t extent, uint32_t stripe,
		      uint16_t tried, uint16_t wanted, struct weir_coded_set *set)
{
	uint16_t slots = slots_with(v, c, extent, stripe) & (uint16_t)~tried;
	uint16_t up = find_shards(v, extent, slots, true, set), all;

	if (weir_coded_lacking(v, c, extent, stripe))
		make_due(c, stripe);
	if (c->current[stripe] == WEIR_CODED_NO_PLACE) {
		all = up ? up : find_shards(v, extent, slots, false, set);
		wanted = first_shards(all, all != 0);
		if (!wanted)
			return -EIO;
	}
	if ((up & wanted) == wanted || count_bits(up) >= layout->data)
		all = up;
	else
		all = find_shards(v, extent, slots, false, set);
	set->is_direct = (all & wanted) == wanted;
	if (!set->is_direct && count_bits(all) < layout->data)
		return -EIO;
	set->shards = set->is_direct ? wanted : first_shards(all, layout->data);
	set->slots = 0;
	for (uint8_t shard = 0; shard < layout->width; shard++) {
		if (set->shards >> shard & 1)
			set->slots |= (uint16_t)(1u << set->slot[shard]);
	}
	weir_coded_hold(v, extent, set->slots);
	return 0;
}

void weir_coded_hold(struct weir_extents *v, uint32_t extent, uint16_t slots)
{
	for (uint8_t slot = 0; slot < v->slots; slot++)
		v->extent[extent].replica[slot].users += slots >> slot & 1;
}

void weir_coded_release(struct weir_extents *v, uint32_t extent, uint16_t slots)
{
	for (uint8_t slot = 0; slot < v->slots; slot++)
		v->extent[extent].replica[slot].users -= slots >> slot & 1;
}

static uint64_t check_of(const struct weir_coded_layout *layout, uint32_t extent, uint32_t place,
			 const struct weir_coded_record *record)
{
	uint64_t check = weir_rng_mix(layout->volume ^ ((uint64_t)extent << 32 | place));

	check = weir_rng_mix(check + record->epoch);
	check = weir_rng_mix(check + record->number);
	check = weir_rng_mix(check + record->stripe);
	for (uint8_t shard = 0; shard < WEIR_EXTENTS_WIDTH_MAX; shard++)
		check = weir_rng_mix(check + record->sum[shard]);
	return check;
}

int weir_coded_begin(const struct weir_coded_layout *layout, struct weir_coded_extent *c,
		     uint32_t extent, uint32_t stripe, uint64_t epoch, const uint32_t *sums,
		     uint16_t slots, struct weir_coded_write *w)
{
	uint32_t i, tried = 0;

	do {
		if (tried++ == layout->places)
			return -EAGAIN;
		i = c->next;
		c->next = (i + 1) % layout->places;
	} while (c->place[i].state != WEIR_CODED_FREE);
	c->place[i] = (struct weir_coded_place){ WEIR_CODED_WRITING, false, slots, stripe };
	w->place = i;
	w->record = (struct weir_coded_record){ .epoch = epoch,
						.number = ++c->number,
						.stripe = stripe };
	memcpy(w->record.sum, sums, layout->width * sizeof(*sums));
	w->record.check = check_of(layout, extent, i, &w->record);
	return 0;
}

void weir_coded_drop(struct weir_coded_extent *c, const struct weir_coded_write *w,
		     uint16_t slots)
{
	c->place[w->place].at &= (uint16_t)~slots;
}

void weir_coded_commit(struct weir_coded_extent *c, const struct weir_coded_write *w)
{
	uint32_t *current = &c->current[w->record.stripe];

	if (*current != WEIR_CODED_NO_PLACE)
		c->place[*current].state = WEIR_CODED_FREE;
	c->place[w->place].state = WEIR_CODED_CURRENT;
	*current = w->place;
	c->record[w->record.stripe] = w->record;
}

void weir_coded_cancel(struct weir_coded_extent *c, const struct weir_coded_write *w)
{
	c->place[w->place].state = WEIR_CODED_FREE;
}

void weir_coded_join(const struct weir_coded_layout *layout, struct weir_coded_extent *c,
		     uint8_t slot)
{
	for (uint32_t i = 0; i < layout->places; i++)
		c->place[i].at &= (uint16_t)~(1u << slot);
}

void weir_coded_distrust(struct weir_coded_extent *c, uint32_t stripe, uint16_t slots)
{
	c->place[c->current[stripe]].at &= (uint16_t)~slots;
	make_due(c, stripe);
}

void weir_coded_repaired(struct weir_coded_extent *c, uint32_t stripe, uint16_t slots)
{
	struct weir_coded_place *place = &c->place[c->current[stripe]];

	place->at |= slots;
	place->is_due = false;
}

bool weir_coded_is_whole(const struct weir_coded_layout *layout,
			 const struct weir_coded_extent *c, uint8_t slot)
{
	for (uint32_t i = 0; i < layout->places; i++) {
		if (c->place[i].state != WEIR_CODED_FREE && !(c->place[i].at >> slot & 1))
			return false;
	}
	return true;
}

uint32_t weir_coded_count(const struct weir_coded_layout *layout,
			  const struct weir_coded_extent *c)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < layout->stripes; i++)
		count += c->current[i] != WEIR_CODED_NO_PLACE;
	return count;
}

uint32_t weir_coded_count_at(const struct weir_coded_layout *layout,
			     const struct weir_coded_extent *c, uint8_t slot)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < layout->stripes; i++)
		count += c->current[i] != WEIR_CODED_NO_PLACE &&
			 c->place[c->current[i]].at >> slot & 1;
	return count;
}

uint16_t weir_coded_lacking(const struct weir_extents *v, const struct weir_coded_extent *c,
			    uint32_t extent, uint32_t stripe)
{
	uint32_t place = c->current[stripe];

	if (place == WEIR_CODED_NO_PLACE)
		return 0;
	return weir_coded_live(v, extent) & (uint16_t)~c->place[place].at;
}

static uint16_t find_filling(const struct weir_extents *v, uint32_t extent)
{
	uint16_t slots = 0;

	for (uint8_t slot = 0; slot < v->slots; slot++) {
		if (v->extent[extent].replica[slot].state == WEIR_REPLICA_FILLING)
			slots |= (uint16_t)(1u << slot);
	}
	return slots;
}

/* Searches an extent from @stripe on. */
static bool find_stripe(const struct weir_coded_layout *layout, const struct weir_extents *v,
			const struct weir_coded_extent *c, uint32_t extent, uint32_t *stripe)
{
	uint16_t filling = find_filling(v, extent);

	if (!weir_coded_is_enough(layout, v, extent, UINT16_MAX))
		return false;
	for (uint32_t i = 0; i < layout->stripes; i++) {
		uint32_t at = (*stripe + i) % layout->stripes;
		uint16_t lacking = weir_coded_lacking(v, c, extent, at);

		if (!lacking || (!(lacking & filling) && !c->place[c->current[at]].is_due))
			continue;
		*stripe = at;
		return true;
	}
	return false;
}

/* Searches from @extent on, all extents or those that are wanted. */
static bool find_extent(const struct weir_coded_layout *layout, struct weir_extents *v,
			struct weir_coded_extent *extents, bool wanted, uint32_t *extent,
			uint32_t *stripe)
{
	uint32_t first = *extent;

	for (uint32_t i = 0; i < v->nr_extents; i++) {
		uint32_t at = (first + i) % v->nr_extents, from = i ? 0 : *stripe;

		if (!find_filling(v, at)) {
			v->nr_wanted -= v->extent[at].is_wanted;
			v->extent[at].is_wanted = false;
			if (!extents[at].has_due)
				continue;
		}
		if (wanted && !v->extent[at].is_wanted)
			continue;
		if (!find_stripe(layout, v, &extents[at], at, &from)) {
			extents[at].has_due = false;
			continue;
		}
		*extent = at;
		*stripe = from;
		return true;
	}
	return false;
}

bool weir_coded_next_repair(const struct weir_coded_layout *layout, struct weir_extents *v,
			    struct weir_coded_extent *extents, uint32_t *extent,
			    uint32_t *stripe)
{
	return (v->nr_wanted && find_extent(layout, v, extents, true, extent, stripe)) ||
	       find_extent(layout, v, extents, false, extent, stripe);
}

static bool is_newer(const struct weir_coded_record *a, const struct weir_coded_record *b)
{
	return a->epoch != b->epoch ? a->epoch > b->epoch : a->number > b->number;
}

/* Takes the record of a place, if it is one, and the newest of its stripe so far. */
static int take_record(const struct weir_coded_layout *layout, struct weir_coded_extent *c,
		       uint32_t extent, uint32_t place, const struct weir_coded_record *record)
{
	struct weir_coded_record *best;
	uint32_t *current;

	if (!record->epoch || record->check != check_of(layout, extent, place, record))
		return 0;
	if (record->stripe >= layout->stripes)
		return -EIO;
	current = &c->current[record->stripe];
	best = &c->record[record->stripe];
	if (*current != WEIR_CODED_NO_PLACE && !is_newer(record, best))
		return is_newer(best, record) ||
				       (*current == place && !memcmp(best, record, sizeof(*best))) ?
			       0 :
			       -EIO;
	*current = place;
	*best = *record;
	return 0;
}

int weir_coded_recover(const struct weir_coded_layout *layout, struct weir_coded_extent *c,
		       uint32_t extent, const struct weir_coded_record *const *records,
		       uint16_t slots)
{
	weir_coded_init(layout, c);
	for (uint8_t slot = 0; slot < WEIR_EXTENTS_SLOTS_MAX; slot++) {
		for (uint32_t i = 0; slots >> slot & 1 && i < layout->places; i++) {
			if (take_record(layout, c, extent, i, &records[slot][i]))
				return -EIO;
		}
	}
	for (uint32_t stripe = 0; stripe < layout->stripes; stripe++) {
		uint32_t place = c->current[stripe];

		if (place == WEIR_CODED_NO_PLACE)
			continue;
		if (c->place[place].state != WEIR_CODED_FREE)
			return -EIO;
		c->place[place] =
			(struct weir_coded_place){ WEIR_CODED_CURRENT, false, slots, stripe };
	}
	for (uint32_t i = 0; i < layout->stripes * layout->width * WEIR_CODED_FRAGMENT_PAGES; i++)
		c->sum[i] = WEIR_SUM_UNKNOWN;
	return 0;
}

bool weir_coded_lacks_record(const struct weir_coded_extent *c, uint32_t stripe,
			     const struct weir_coded_record *records)
{
	uint32_t place = c->current[stripe];

	return place != WEIR_CODED_NO_PLACE &&
	       memcmp(&records[place], &c->record[stripe], sizeof(records[place]));
}
