/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Who has what, who gives memory, and where reads and writes go. volume_copy.c fills replicas. */
#include "core/volume.h"

int weir_volume_init(struct weir_volume *v, struct weir_extent *extents, uint32_t nr_extents,
		     uint32_t pages, uint8_t nr_donors, uint8_t replicas)
{
	if (!nr_extents || !pages || !replicas || replicas > WEIR_VOLUME_REPLICAS_MAX ||
	    replicas > nr_donors || nr_donors > WEIR_VOLUME_DONORS_MAX)
		return -EINVAL;
	memset(v, 0, sizeof(*v));
	v->extent = extents;
	v->nr_extents = nr_extents;
	v->pages = pages;
	v->nr_donors = nr_donors;
	v->replicas = replicas;
	return 0;
}

void weir_volume_donor_up(struct weir_volume *v, uint8_t donor)
{
	v->donor[donor].state = WEIR_VOLUME_DONOR_UP;
}

void weir_volume_donor_room(struct weir_volume *v, uint8_t donor, uint64_t extents)
{
	v->donor[donor].free = extents;
}

void weir_volume_donor_slow(struct weir_volume *v, uint8_t donor)
{
	v->donor[donor].state = WEIR_VOLUME_DONOR_SLOW;
}

static bool is_live(const struct weir_replica *replica)
{
	return replica->state == WEIR_REPLICA_VALID || replica->state == WEIR_REPLICA_FILLING;
}

void weir_volume_donor_lost(struct weir_volume *v, uint8_t donor)
{
	v->donor[donor].state = WEIR_VOLUME_DONOR_AWAY;
	for (uint32_t i = 0; i < v->nr_extents; i++) {
		for (uint8_t slot = 0; slot < v->replicas; slot++) {
			struct weir_replica *replica = &v->extent[i].replica[slot];

			if (is_live(replica) && replica->donor == donor)
				replica->state = WEIR_REPLICA_STALE;
		}
	}
}

static bool has_donor(const struct weir_volume *v, const struct weir_extent *extent, uint8_t donor)
{
	for (uint8_t slot = 0; slot < v->replicas; slot++) {
		if (extent->replica[slot].state != WEIR_REPLICA_NONE &&
		    extent->replica[slot].donor == donor)
			return true;
	}
	return false;
}

uint32_t weir_volume_donor_extents(const struct weir_volume *v, uint8_t donor)
{
	uint32_t extents = 0;

	for (uint32_t i = 0; i < v->nr_extents; i++)
		extents += has_donor(v, &v->extent[i], donor);
	return extents;
}

static uint8_t count_valid(const struct weir_volume *v, const struct weir_extent *extent)
{
	uint8_t valid = 0;

	for (uint8_t slot = 0; slot < v->replicas; slot++)
		valid += extent->replica[slot].state == WEIR_REPLICA_VALID;
	return valid;
}

bool weir_volume_is_lost(const struct weir_volume *v, uint32_t extent)
{
	return v->extent[extent].holds && !count_valid(v, &v->extent[extent]);
}

/* Return: the donor for one more replica of @extent, or nr_donors. */
static uint8_t choose_donor(const struct weir_volume *v, const struct weir_extent *extent)
{
	uint8_t best = v->nr_donors;

	for (uint8_t donor = 0; donor < v->nr_donors; donor++) {
		if (v->donor[donor].state != WEIR_VOLUME_DONOR_UP || !v->donor[donor].free ||
		    has_donor(v, extent, donor))
			continue;
		if (best == v->nr_donors || v->donor[donor].free > v->donor[best].free)
			best = donor;
	}
	return best;
}

int weir_volume_place(const struct weir_volume *v, struct weir_volume_place *place)
{
	int rc = -ENOENT;

	for (uint32_t i = 0; i < v->nr_extents; i++) {
		if (weir_volume_is_lost(v, i))
			continue;
		for (uint8_t slot = 0; slot < v->replicas; slot++) {
			uint8_t donor;

			if (v->extent[i].replica[slot].state != WEIR_REPLICA_NONE)
				continue;
			donor = choose_donor(v, &v->extent[i]);
			if (donor < v->nr_donors) {
				*place = (struct weir_volume_place){ i, slot, donor };
				return 0;
			}
			rc = -ENOSPC;
		}
	}
	return rc;
}

static void put_memory(struct weir_volume *v, const struct weir_volume_place *place,
		       enum weir_replica_state state)
{
	struct weir_replica *replica = &v->extent[place->extent].replica[place->slot];

	replica->donor = place->donor;
	replica->state = (uint8_t)state;
	if (v->donor[place->donor].free)
		v->donor[place->donor].free--;
}

void weir_volume_granted(struct weir_volume *v, const struct weir_volume_place *place)
{
	put_memory(v, place, v->extent[place->extent].holds ? WEIR_REPLICA_FILLING :
							      WEIR_REPLICA_VALID);
}

void weir_volume_found(struct weir_volume *v, const struct weir_volume_place *place)
{
	v->extent[place->extent].holds = true;
	put_memory(v, place, WEIR_REPLICA_VALID);
}

bool weir_volume_stale(const struct weir_volume *v, struct weir_volume_place *place)
{
	for (uint32_t i = 0; i < v->nr_extents; i++) {
		for (uint8_t slot = 0; slot < v->replicas; slot++) {
			const struct weir_replica *replica = &v->extent[i].replica[slot];

			if (replica->state != WEIR_REPLICA_STALE || replica->users)
				continue;
			*place = (struct weir_volume_place){ i, slot, replica->donor };
			return true;
		}
	}
	return false;
}

void weir_volume_released(struct weir_volume *v, const struct weir_volume_place *place)
{
	if (v->copy.extent == place->extent && v->copy.target == place->slot)
		v->copy.state = WEIR_COPY_IDLE; /* what comes there next has none of it */
	v->extent[place->extent].replica[place->slot].state = WEIR_REPLICA_NONE;
	if (v->donor[place->donor].state == WEIR_VOLUME_DONOR_UP)
		v->donor[place->donor].free++;
}

int weir_volume_read(struct weir_volume *v, uint32_t extent, uint8_t tried, uint8_t *out)
{
	struct weir_extent *e = &v->extent[extent];
	uint8_t best = v->replicas;

	for (uint8_t slot = 0; slot < v->replicas; slot++) {
		if (e->replica[slot].state != WEIR_REPLICA_VALID || (tried & 1u << slot))
			continue;
		if (best == v->replicas || v->donor[e->replica[slot].donor].state >
						   v->donor[e->replica[best].donor].state)
			best = slot;
	}
	if (best == v->replicas)
		return -EIO;
	e->replica[best].users++;
	*out = best;
	return 0;
}

void weir_volume_read_end(struct weir_volume *v, uint32_t extent, uint8_t slot)
{
	v->extent[extent].replica[slot].users--;
}

/* The bits of the chunk that [page, page + pages) covers. */
static uint64_t chunk_bits(const struct weir_copy *copy, uint32_t page, uint32_t pages)
{
	uint32_t first = page > copy->page ? page - copy->page : 0, end;

	if (page >= copy->page + copy->pages || page + pages <= copy->page)
		return 0;
	end = page + pages - copy->page;
	if (end > copy->pages)
		end = copy->pages;
	return (UINT64_MAX << first) & (UINT64_MAX >> (64 - end));
}

uint8_t weir_volume_writable(const struct weir_volume *v, uint32_t extent)
{
	const struct weir_extent *e = &v->extent[extent];
	uint8_t slots = 0;

	for (uint8_t slot = 0; slot < v->replicas; slot++)
		slots |= (uint8_t)(is_live(&e->replica[slot]) << slot);
	return count_valid(v, e) ? slots : 0;
}

int weir_volume_write(struct weir_volume *v, struct weir_volume_write *w, uint32_t extent,
		      uint32_t page, uint32_t pages)
{
	struct weir_extent *e = &v->extent[extent];
	struct weir_copy *copy = &v->copy;
	uint8_t slots = weir_volume_writable(v, extent);

	if (!slots)
		return -EIO;
	*w = (struct weir_volume_write){ .extent = extent, .phase = e->phase, .slots = slots };
	for (uint8_t slot = 0; slot < v->replicas; slot++)
		e->replica[slot].users += slots >> slot & 1;
	e->holds = true;
	e->writes[e->phase]++;
	if (copy->state != WEIR_COPY_IDLE && copy->extent == extent)
		copy->overtaken |= chunk_bits(copy, page, pages);
	return 0;
}

/* Of the replicas @slots the one that stays when none of them is certain to have a write. */
static uint8_t choose_survivor(const struct weir_volume *v, const struct weir_extent *e,
			       uint8_t slots)
{
	uint8_t best = v->replicas;

	for (uint8_t slot = 0; slot < v->replicas; slot++) {
		if (!(slots & 1u << slot) || e->replica[slot].state != WEIR_REPLICA_VALID)
			continue;
		if (best == v->replicas || v->donor[e->replica[slot].donor].state >
						   v->donor[e->replica[best].donor].state)
			best = slot;
	}
	return best;
}

int weir_volume_write_end(struct weir_volume *v, const struct weir_volume_write *w, uint8_t failed)
{
	struct weir_extent *e = &v->extent[w->extent];
	uint8_t keep = w->slots & ~failed;
	bool has_it = false;

	e->writes[w->phase]--;
	for (uint8_t slot = 0; slot < v->replicas; slot++) {
		if (!(w->slots & 1u << slot))
			continue;
		e->replica[slot].users--;
		has_it |= (keep & 1u << slot) && e->replica[slot].state == WEIR_REPLICA_VALID;
	}
	if (!has_it)
		keep = (uint8_t)(1u << choose_survivor(v, e, w->slots));
	for (uint8_t slot = 0; slot < v->replicas; slot++) {
		if ((w->slots & ~keep & 1u << slot) && is_live(&e->replica[slot]))
			e->replica[slot].state = WEIR_REPLICA_STALE;
	}
	return has_it ? 0 : -EIO;
}

struct weir_volume_census weir_volume_census(const struct weir_volume *v)
{
	struct weir_volume_census census = { 0 };

	for (uint32_t i = 0; i < v->nr_extents; i++) {
		uint8_t valid = count_valid(v, &v->extent[i]);

		census.whole += valid == v->replicas;
		census.lean += valid && valid < v->replicas;
		census.bare += !valid;
		census.lost += !valid && v->extent[i].holds;
	}
	return census;
}
