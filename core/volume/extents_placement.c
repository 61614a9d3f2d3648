/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Matches extents that want memory with donors.
 *
 * All memory is alike. Granted memory goes to any extent that wants memory by then. A write to an
 * extent without memory takes that of an idle extent, so no write waits for a donor.
 */
#include "core/volume/extents.h"

#define EXTENTS_MIN 64u
#define EXTENT_BYTES_MIN (1u << 20)
#define RESERVE_SHARE 8u

uint64_t weir_extents_choose_bytes(uint64_t volume_bytes, uint64_t bytes_max)
{
	uint64_t bytes = EXTENT_BYTES_MIN;

	while (bytes < bytes_max && bytes * 2 * EXTENTS_MIN < volume_bytes)
		bytes *= 2;
	return bytes;
}

uint32_t weir_extents_choose_reserve(uint32_t nr_extents)
{
	uint32_t reserve = nr_extents / RESERVE_SHARE;

	return reserve < WEIR_EXTENTS_RESERVE_MIN ? WEIR_EXTENTS_RESERVE_MIN : reserve;
}

static bool has_donor(const struct weir_extents *v, const struct weir_extent *extent, uint8_t donor)
{
	for (uint8_t slot = 0; slot < v->slots; slot++) {
		if (extent->replica[slot].state != WEIR_REPLICA_NONE &&
		    extent->replica[slot].donor == donor)
			return true;
	}
	return false;
}

static bool may_hold(const struct weir_extent *extent, uint8_t donor)
{
	return !extent->donors || (extent->donors >> donor & 1);
}

uint32_t weir_extents_donor_extents(const struct weir_extents *v, uint8_t donor)
{
	uint32_t extents = 0;

	for (uint32_t i = 0; i < v->nr_extents; i++)
		extents += has_donor(v, &v->extent[i], donor);
	return extents;
}

/* Whether the donor would want back any further extent. */
static bool has_enough(const struct weir_extents *v, uint8_t donor)
{
	uint64_t keep = v->donor[donor].keep;

	return keep != WEIR_EXTENTS_KEEPS_ALL && weir_extents_donor_extents(v, donor) >= keep;
}

/* Return: the donor for one more replica of @extent, or nr_donors. */
static uint8_t choose_donor(const struct weir_extents *v, const struct weir_extent *extent)
{
	uint8_t best = v->nr_donors;

	for (uint8_t donor = 0; donor < v->nr_donors; donor++) {
		if (v->donor[donor].state != WEIR_EXTENTS_DONOR_UP || !v->donor[donor].free ||
		    has_donor(v, extent, donor) || has_enough(v, donor) || !may_hold(extent, donor))
			continue;
		if (best == v->nr_donors || v->donor[donor].free > v->donor[best].free)
			best = donor;
	}
	return best;
}

/* Return: a slot of @extent without memory, or slots if all have memory. */
static uint8_t find_free_slot(const struct weir_extents *v, const struct weir_extent *extent)
{
	uint8_t slot = 0;

	while (slot < v->slots && extent->replica[slot].state != WEIR_REPLICA_NONE)
		slot++;
	return slot;
}

static bool is_live(const struct weir_replica *replica)
{
	return replica->state == WEIR_REPLICA_VALID || replica->state == WEIR_REPLICA_FILLING;
}

/* The number of replicas that are VALID or will be. */
static uint8_t count_live(const struct weir_extents *v, const struct weir_extent *extent)
{
	uint8_t live = 0;

	for (uint8_t slot = 0; slot < v->slots; slot++)
		live += is_live(&extent->replica[slot]);
	return live;
}

/* The number of live replicas that are not leaving. */
static uint8_t count_staying(const struct weir_extents *v, const struct weir_extent *extent)
{
	uint8_t staying = 0;

	for (uint8_t slot = 0; slot < v->slots; slot++)
		staying += is_live(&extent->replica[slot]) && !extent->replica[slot].leaves;
	return staying;
}

/* Whether the extent should get memory. @reserve: thin extents still needed for the reserve. */
static bool wants_memory(const struct weir_extents *v, uint32_t extent, uint32_t reserve)
{
	if (weir_extents_is_lost(v, extent) || find_free_slot(v, &v->extent[extent]) == v->slots ||
	    count_staying(v, &v->extent[extent]) >= v->replicas)
		return false;
	return !v->extent[extent].thin || weir_extents_count_valid(v, extent) || reserve;
}

/* The number of thin extents that need memory to complete the reserve. */
static uint32_t missing_reserve(const struct weir_extents *v)
{
	uint32_t reserve = v->reserve;

	for (uint32_t i = 0; reserve && i < v->nr_extents; i++)
		reserve -= v->extent[i].thin && weir_extents_count_valid(v, i);
	return reserve;
}

int weir_extents_next_placement(const struct weir_extents *v, struct weir_extents_placement *place)
{
	uint32_t reserve = missing_reserve(v);
	int rc = -ENOENT;

	for (uint32_t i = 0; i < v->nr_extents; i++) {
		uint8_t donor;

		if (!wants_memory(v, i, reserve))
			continue;
		donor = choose_donor(v, &v->extent[i]);
		if (donor < v->nr_donors) {
			*place = (struct weir_extents_placement){ i,
								  find_free_slot(v, &v->extent[i]),
								  donor };
			return 0;
		}
		if (count_live(v, &v->extent[i]) < v->replicas)
			rc = -ENOSPC;
	}
	return rc;
}

static void attach_memory(struct weir_extents *v, const struct weir_extents_placement *place)
{
	struct weir_extent *extent = &v->extent[place->extent];
	struct weir_replica *replica = &extent->replica[place->slot];

	replica->donor = place->donor;
	replica->leaves = false;
	replica->state = extent->live ? WEIR_REPLICA_FILLING : WEIR_REPLICA_VALID;
	if (v->donor[place->donor].free)
		v->donor[place->donor].free--;
}

int weir_extents_granted(struct weir_extents *v, struct weir_extents_placement *place)
{
	uint32_t reserve = missing_reserve(v);

	for (uint32_t i = 0; i < v->nr_extents; i++) {
		uint32_t extent = (place->extent + i) % v->nr_extents;

		if (!wants_memory(v, extent, reserve) ||
		    !may_hold(&v->extent[extent], place->donor) ||
		    has_donor(v, &v->extent[extent], place->donor))
			continue;
		place->extent = extent;
		place->slot = find_free_slot(v, &v->extent[extent]);
		attach_memory(v, place);
		return 0;
	}
	return -ENOENT;
}

void weir_extents_adopt(struct weir_extents *v, uint32_t *sum, uint32_t pages)
{
	v->pages = pages;
	v->extent[0].sum = sum;
	v->extent[0].live = pages;
	v->extent[0].replica[0].state = WEIR_REPLICA_VALID;
	for (uint32_t i = 0; i < pages; i++)
		sum[i] = WEIR_SUM_UNKNOWN;
}

/* Whether no operation uses the extent, so that its memory can move. */
static bool extent_is_unused(const struct weir_extents *v, uint32_t extent)
{
	if (weir_extents_copy_of(v, extent) < WEIR_EXTENTS_COPIES_MAX)
		return false;
	for (uint8_t slot = 0; slot < v->slots; slot++) {
		if (v->extent[extent].replica[slot].users)
			return false;
	}
	return true;
}

/*
 * Marks replicas as leaving, all but @stay of the donor's extents with data (@holds) or without.
 * Return: how many more may stay.
 */
static uint64_t keep_replicas(struct weir_extents *v, uint8_t donor, bool holds, uint64_t stay)
{
	for (uint32_t i = 0; i < v->nr_extents; i++) {
		struct weir_extent *extent = &v->extent[i];

		for (uint8_t slot = 0; slot < v->slots; slot++) {
			struct weir_replica *replica = &extent->replica[slot];

			if (!is_live(replica) || replica->donor != donor || !extent->live == holds)
				continue;
			replica->leaves = !stay;
			stay -= stay != 0;
		}
	}
	return stay;
}

void weir_extents_donor_keeps(struct weir_extents *v, uint8_t donor, uint64_t extents)
{
	v->donor[donor].keep = extents;
	keep_replicas(v, donor, false, keep_replicas(v, donor, true, extents));
}

/* The replica of @extent to give up first: a leaving one, or else the last. */
static struct weir_replica *choose_spare(struct weir_extents *v, struct weir_extent *extent)
{
	struct weir_replica *spare = NULL;

	for (uint8_t slot = 0; slot < v->slots; slot++) {
		struct weir_replica *replica = &extent->replica[slot];

		if (replica->state == WEIR_REPLICA_VALID && (!spare || !spare->leaves))
			spare = replica;
	}
	return spare;
}

/* Retires FILLING replicas that leave or have no source, and one VALID replica in excess. */
static void retire_replicas(struct weir_extents *v, uint32_t number)
{
	struct weir_extent *extent = &v->extent[number];
	uint8_t valid = weir_extents_count_valid(v, number);

	if (!valid && weir_extents_is_local(v, number))
		return; /* the local disk is the source */
	for (uint8_t slot = 0; slot < v->slots; slot++) {
		struct weir_replica *replica = &extent->replica[slot];

		if (replica->state == WEIR_REPLICA_FILLING && (replica->leaves || !valid))
			replica->state = WEIR_REPLICA_STALE;
	}
	if (valid > v->replicas)
		choose_spare(v, extent)->state = WEIR_REPLICA_STALE;
}

/* Data at a slow donor can be rewritten, but its memory cannot be given back now. */
static bool has_slow_donor(const struct weir_extents *v, const struct weir_extent *extent)
{
	bool found = false;

	for (uint8_t slot = 0; slot < v->slots; slot++)
		found |= extent->replica[slot].state == WEIR_REPLICA_VALID &&
			 v->donor[extent->replica[slot].donor].state == WEIR_EXTENTS_DONOR_SLOW;
	return found;
}

void weir_extents_trim(struct weir_extents *v)
{
	uint32_t reserve = 0;

	for (uint32_t i = 0; i < v->nr_extents; i++)
		retire_replicas(v, i);
	for (uint32_t i = 0; i < v->nr_extents; i++) {
		struct weir_extent *extent = &v->extent[i];

		if (!extent->thin || !weir_extents_count_valid(v, i) || reserve++ < v->reserve ||
		    !extent_is_unused(v, i) || has_slow_donor(v, extent))
			continue;
		for (uint8_t slot = 0; slot < v->slots; slot++) {
			if (extent->replica[slot].state != WEIR_REPLICA_NONE)
				extent->replica[slot].state = WEIR_REPLICA_STALE;
		}
	}
}

static void detach_memory(struct weir_extents *v, const struct weir_extents_placement *place)
{
	uint8_t number = weir_extents_copy_of(v, place->extent);

	/* The next memory in this slot holds no part of the copy. */
	if (number < WEIR_EXTENTS_COPIES_MAX && v->copy[number].target == place->slot)
		v->copy[number].state = WEIR_RESYNC_IDLE;
	v->extent[place->extent].replica[place->slot].state = WEIR_REPLICA_NONE;
	if (v->donor[place->donor].state == WEIR_EXTENTS_DONOR_UP)
		v->donor[place->donor].free++;
}

bool weir_extents_next_return(struct weir_extents *v, uint64_t donors,
			      struct weir_extents_placement *place)
{
	for (uint32_t i = 0; i < v->nr_extents; i++) {
		for (uint8_t slot = 0; slot < v->slots; slot++) {
			struct weir_replica *replica = &v->extent[i].replica[slot];

			if (replica->state != WEIR_REPLICA_STALE || replica->users ||
			    !(donors >> replica->donor & 1))
				continue;
			*place = (struct weir_extents_placement){ i, slot, replica->donor };
			replica->users++; /* it stays in its place meanwhile */
			return true;
		}
	}
	return false;
}

void weir_extents_returned(struct weir_extents *v, const struct weir_extents_placement *place,
			   bool is_returned)
{
	v->extent[place->extent].replica[place->slot].users--;
	if (is_returned)
		detach_memory(v, place);
}

bool weir_extents_reclaim(struct weir_extents *v, struct weir_extents_placement *place)
{
	bool any = weir_extents_next_return(v, UINT64_MAX, place);

	if (any)
		weir_extents_returned(v, place, true);
	return any;
}

/*
 * Return: the idle extent with the most VALID replicas whose memory @extent may hold, or nr_extents
 * if none has any.
 */
static uint32_t find_idle_extent(const struct weir_extents *v, uint32_t extent)
{
	uint32_t best = v->nr_extents;
	uint8_t most = 0;

	for (uint32_t i = 0; most < v->replicas && i < v->nr_extents; i++) {
		uint8_t valid = v->extent[i].live ? 0 : weir_extents_count_valid(v, i);

		if (v->extent[i].donors != v->extent[extent].donors)
			continue;
		if (valid <= most || !extent_is_unused(v, i))
			continue;
		best = i;
		most = valid;
	}
	return best;
}

/* Whether a donor that does not answer now may have memory later. */
static bool any_donor_is_slow(const struct weir_extents *v)
{
	bool found = false;

	for (uint8_t donor = 0; donor < v->nr_donors; donor++)
		found |= v->donor[donor].state == WEIR_EXTENTS_DONOR_SLOW;
	return found;
}

int weir_extents_provide(struct weir_extents *v, uint32_t extent, uint32_t *from)
{
	struct weir_extents_placement place;
	uint32_t idle;

	*from = extent;
	if (weir_extents_count_valid(v, extent))
		return 0;
	if (v->extent[extent].live)
		return weir_extents_is_local(v, extent) ? -EAGAIN : -EIO;
	idle = find_idle_extent(v, extent);
	if (idle == v->nr_extents)
		return weir_extents_next_placement(v, &place) == -ENOSPC && !any_donor_is_slow(v) ?
			       -ENOSPC :
			       -EAGAIN;
	if (!extent_is_unused(v, extent))
		return -EAGAIN;
	for (uint8_t slot = 0; slot < v->slots; slot++) {
		struct weir_replica replica = v->extent[extent].replica[slot];

		v->extent[extent].replica[slot] = v->extent[idle].replica[slot];
		v->extent[idle].replica[slot] = replica;
	}
	*from = idle;
	return 0;
}
