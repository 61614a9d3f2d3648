/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Replica states, and where reads and writes go. extents_placement.c decides which donor gives
 * memory; extents_resync.c fills replicas; extents_local.c keeps the local disk.
 */
#include "core/volume/extents.h"

int weir_extents_init(struct weir_extents *v, struct weir_extent *extents, uint32_t nr_extents,
		      uint32_t pages, uint8_t nr_donors, uint8_t replicas)
{
	if (!nr_extents || !pages || !replicas || replicas > WEIR_EXTENTS_WIDTH_MAX ||
	    replicas > nr_donors || nr_donors > WEIR_EXTENTS_DONORS_MAX)
		return -EINVAL;
	memset(v, 0, sizeof(*v));
	v->extent = extents;
	v->nr_extents = nr_extents;
	v->pages = pages;
	v->nr_donors = nr_donors;
	v->replicas = replicas;
	v->slots = replicas < nr_donors ? replicas + 1 : replicas;
	for (uint8_t donor = 0; donor < nr_donors; donor++)
		v->donor[donor].keep = WEIR_EXTENTS_KEEPS_ALL;
	return 0;
}

void weir_extents_grow(struct weir_extents *v, struct weir_extent *extents, uint32_t nr_extents)
{
	v->extent = extents;
	v->nr_extents = nr_extents;
}

void weir_extents_donor_up(struct weir_extents *v, uint8_t donor)
{
	v->donor[donor].state = WEIR_EXTENTS_DONOR_UP;
}

void weir_extents_donor_room(struct weir_extents *v, uint8_t donor, uint64_t extents)
{
	v->donor[donor].free = extents;
}

void weir_extents_donor_slow(struct weir_extents *v, uint8_t donor)
{
	v->donor[donor].state = WEIR_EXTENTS_DONOR_SLOW;
}

static bool is_live(const struct weir_replica *replica)
{
	return replica->state == WEIR_REPLICA_VALID || replica->state == WEIR_REPLICA_FILLING;
}

void weir_extents_donor_lost(struct weir_extents *v, uint8_t donor)
{
	v->donor[donor].state = WEIR_EXTENTS_DONOR_DOWN;
	v->donor[donor].keep = WEIR_EXTENTS_KEEPS_ALL;
	for (uint32_t i = 0; i < v->nr_extents; i++) {
		for (uint8_t slot = 0; slot < v->slots; slot++) {
			struct weir_replica *replica = &v->extent[i].replica[slot];

			if (is_live(replica) && replica->donor == donor)
				replica->state = WEIR_REPLICA_STALE;
		}
	}
}

void weir_extents_join(struct weir_extents *v, const struct weir_extents_placement *place)
{
	struct weir_replica *replica = &v->extent[place->extent].replica[place->slot];

	replica->donor = place->donor;
	replica->state = WEIR_REPLICA_FILLING;
	replica->leaves = false;
	v->extent[place->extent].wrong &= (uint16_t)~(1u << place->slot);
}

void weir_extents_trust(struct weir_extents *v, uint32_t extent, uint8_t slot)
{
	if (v->extent[extent].replica[slot].state == WEIR_REPLICA_FILLING)
		v->extent[extent].replica[slot].state = WEIR_REPLICA_VALID;
}

void weir_extents_leave(struct weir_extents *v, uint32_t extent, uint8_t slot)
{
	if (is_live(&v->extent[extent].replica[slot]))
		v->extent[extent].replica[slot].state = WEIR_REPLICA_STALE;
}

void weir_extents_found(struct weir_extents *v, uint32_t extent)
{
	v->extent[extent].live = v->pages;
	v->extent[extent].thin = false;
	v->extent[extent].wrong = 0;
	for (uint32_t i = 0; i < v->pages; i++)
		v->extent[extent].sum[i] = WEIR_SUM_UNKNOWN;
	weir_extents_resync_restart(v, extent);
}

uint8_t weir_extents_count_valid(const struct weir_extents *v, uint32_t extent)
{
	uint8_t valid = 0;

	for (uint8_t slot = 0; slot < v->slots; slot++)
		valid += v->extent[extent].replica[slot].state == WEIR_REPLICA_VALID;
	return valid;
}

bool weir_extents_is_lost(const struct weir_extents *v, uint32_t extent)
{
	return v->extent[extent].live && !weir_extents_count_valid(v, extent) &&
	       !weir_extents_is_local(v, extent);
}

int weir_extents_read(struct weir_extents *v, uint32_t extent, uint8_t tried, uint8_t *out)
{
	struct weir_extent *e = &v->extent[extent];
	uint8_t best = v->slots;

	for (uint8_t slot = 0; slot < v->slots; slot++) {
		if (e->replica[slot].state != WEIR_REPLICA_VALID || (tried & 1u << slot))
			continue;
		if (best == v->slots ||
		    v->donor[e->replica[slot].donor].state > v->donor[e->replica[best].donor].state)
			best = slot;
	}
	if (best == v->slots)
		return -EIO;
	e->replica[best].users++;
	*out = best;
	return 0;
}

void weir_extents_read_end(struct weir_extents *v, uint32_t extent, uint8_t slot)
{
	v->extent[extent].replica[slot].users--;
}

void weir_extents_expect(const struct weir_extents *v, uint32_t extent, uint32_t page,
			 uint32_t pages, uint32_t *sums)
{
	for (uint32_t i = 0; i < pages; i++) {
		uint32_t sum = v->extent[extent].sum[page + i];

		sums[i] = sum == WEIR_SUM_UNKNOWN ? sum : sum & ~WEIR_SUM_FRESH;
	}
}

/* A repair that is under way may have passed the pages: another follows. */
static void note_wrong(struct weir_extent *e, uint8_t slot, uint32_t page, uint32_t pages)
{
	if (!e->wrong || page < e->wrong_first)
		e->wrong_first = page;
	if (!e->wrong || page + pages > e->wrong_end)
		e->wrong_end = page + pages;
	e->wrong |= (uint16_t)(1u << slot);
}

bool weir_extents_distrust(struct weir_extents *v, uint32_t extent, uint8_t slot, uint32_t page,
			   uint32_t pages)
{
	struct weir_replica *replica = &v->extent[extent].replica[slot];
	bool has_other = weir_extents_count_valid(v, extent) > 1;

	if (v->repairs && has_other)
		note_wrong(&v->extent[extent], slot, page, pages);
	if (v->is_mapped)
		return has_other;
	if (replica->state == WEIR_REPLICA_VALID && has_other)
		replica->state = WEIR_REPLICA_STALE;
	return replica->state == WEIR_REPLICA_STALE;
}

bool weir_extents_is_blank(const struct weir_extents *v, uint32_t extent, uint32_t page,
			   uint32_t pages)
{
	const struct weir_extent *e = &v->extent[extent];

	for (uint32_t i = 0; e->live && i < pages; i++) {
		if (e->sum[page + i] != WEIR_SUM_NOTHING)
			return false;
	}
	return true;
}

void weir_extents_discard(struct weir_extents *v, uint32_t extent, uint32_t page, uint32_t pages,
			  bool keep)
{
	struct weir_extent *e = &v->extent[extent];

	for (uint32_t i = page; i < page + pages; i++) {
		e->live -= e->sum[i] != WEIR_SUM_NOTHING;
		e->sum[i] = WEIR_SUM_NOTHING;
		weir_extents_local_forget(v, extent, i);
	}
	e->thin = !e->live && !keep;
}

/* The bits of the chunk for the pages in [page, page + pages). */
static uint64_t chunk_bits(const struct weir_extents_resync *copy, uint32_t page, uint32_t pages)
{
	uint32_t first = page > copy->page ? page - copy->page : 0, end;

	if (page >= copy->page + copy->pages || page + pages <= copy->page)
		return 0;
	end = page + pages - copy->page;
	if (end > copy->pages)
		end = copy->pages;
	return (UINT64_MAX << first) & (UINT64_MAX >> (64 - end));
}

uint8_t weir_extents_writable(const struct weir_extents *v, uint32_t extent)
{
	const struct weir_extent *e = &v->extent[extent];
	uint8_t slots = 0;

	for (uint8_t slot = 0; slot < v->slots; slot++)
		slots |= (uint8_t)(is_live(&e->replica[slot]) << slot);
	return weir_extents_count_valid(v, extent) ? slots : 0;
}

static void record_sums(struct weir_extents *v, const struct weir_extents_write *w)
{
	struct weir_extent *e = &v->extent[w->extent];

	for (uint32_t i = 0; i < w->pages; i++) {
		uint32_t *sum = &e->sum[w->page + i];
		bool is_fresh = *sum == WEIR_SUM_NOTHING;

		*sum = w->sums[i] | (is_fresh ? WEIR_SUM_FRESH : 0);
		e->live += is_fresh;
		weir_extents_local_forget(v, w->extent, w->page + i);
	}
	e->thin = false;
}

int weir_extents_write(struct weir_extents *v, struct weir_extents_write *w, uint32_t extent,
		       uint32_t page, uint32_t pages, const uint32_t *sums)
{
	struct weir_extent *e = &v->extent[extent];
	uint8_t slots = weir_extents_writable(v, extent), number = weir_extents_copy_of(v, extent);

	if (!slots)
		return -EIO;
	*w = (struct weir_extents_write){ .extent = extent,
					  .page = page,
					  .pages = pages,
					  .sums = sums,
					  .phase = e->phase,
					  .slots = slots };
	for (uint8_t slot = 0; slot < v->slots; slot++)
		e->replica[slot].users += slots >> slot & 1;
	record_sums(v, w);
	e->writes[e->phase]++;
	if (number < WEIR_EXTENTS_COPIES_MAX)
		v->copy[number].overtaken |= chunk_bits(&v->copy[number], page, pages);
	return 0;
}

/* The replica among @slots to keep if none certainly has a write. */
static uint8_t choose_survivor(const struct weir_extents *v, const struct weir_extent *e,
			       uint8_t slots)
{
	uint8_t best = v->slots;

	for (uint8_t slot = 0; slot < v->slots; slot++) {
		if (!(slots & 1u << slot) || e->replica[slot].state != WEIR_REPLICA_VALID)
			continue;
		if (best == v->slots ||
		    v->donor[e->replica[slot].donor].state > v->donor[e->replica[best].donor].state)
			best = slot;
	}
	return best;
}

/*
 * A write has failed. Its pages are unknown, unless written again since. A page that was zeroes
 * before the write counts as zeroes again.
 */
static void mark_unknown(struct weir_extents *v, const struct weir_extents_write *w)
{
	struct weir_extent *e = &v->extent[w->extent];

	for (uint32_t i = 0; i < w->pages; i++) {
		uint32_t *sum = &e->sum[w->page + i];
		bool is_fresh = *sum & WEIR_SUM_FRESH;

		if ((*sum & ~WEIR_SUM_FRESH) != w->sums[i])
			continue;
		*sum = is_fresh ? WEIR_SUM_NOTHING : WEIR_SUM_UNKNOWN;
		e->live -= is_fresh;
		weir_extents_local_forget(v, w->extent, w->page + i);
	}
}

int weir_extents_write_end(struct weir_extents *v, const struct weir_extents_write *w,
			   uint8_t failed)
{
	struct weir_extent *e = &v->extent[w->extent];
	uint8_t keep = w->slots & ~failed;
	bool has_it = false;

	e->writes[w->phase]--;
	for (uint8_t slot = 0; slot < v->slots; slot++) {
		if (!(w->slots & 1u << slot))
			continue;
		e->replica[slot].users--;
		has_it |= (keep & 1u << slot) && e->replica[slot].state == WEIR_REPLICA_VALID;
	}
	if (!has_it) {
		keep = (uint8_t)(1u << choose_survivor(v, e, w->slots));
		mark_unknown(v, w);
	}
	for (uint8_t slot = 0; slot < v->slots; slot++) {
		if ((w->slots & ~keep & 1u << slot) && is_live(&e->replica[slot]))
			e->replica[slot].state = WEIR_REPLICA_STALE;
	}
	return has_it ? 0 : -EIO;
}

void weir_extents_write_undo(struct weir_extents *v, const struct weir_extents_write *w,
			     uint8_t failed)
{
	struct weir_extent *e = &v->extent[w->extent];

	e->writes[w->phase]--;
	for (uint8_t slot = 0; slot < v->slots; slot++) {
		struct weir_replica *replica = &e->replica[slot];

		replica->users -= w->slots >> slot & 1;
		if ((failed >> slot & 1) && replica->state == WEIR_REPLICA_FILLING)
			replica->state = WEIR_REPLICA_STALE;
	}
	mark_unknown(v, w);
}

static bool is_leaving(const struct weir_extents *v, uint32_t extent)
{
	const struct weir_replica *replica = v->extent[extent].replica;
	bool found = false;

	for (uint8_t slot = 0; slot < v->slots; slot++)
		found |= is_live(&replica[slot]) && replica[slot].leaves;
	return found;
}

struct weir_extents_census weir_extents_census(const struct weir_extents *v)
{
	struct weir_extents_census census = { 0 };

	for (uint32_t i = 0; i < v->nr_extents; i++) {
		uint8_t valid = weir_extents_count_valid(v, i);

		census.whole += valid >= v->replicas;
		census.lean += valid && valid < v->replicas;
		census.thin += !valid && v->extent[i].thin;
		census.local += !valid && weir_extents_is_local(v, i);
		census.bare += !valid && !v->extent[i].thin && !weir_extents_is_local(v, i);
		census.lost += weir_extents_is_lost(v, i);
		census.leaving += is_leaving(v, i);
		census.behind += v->extent[i].local ? v->extent[i].live - v->extent[i].nr_local : 0;
	}
	return census;
}
