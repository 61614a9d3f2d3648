/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/volume/members.h"

static const struct weir_member_group *group_of(const struct weir_members *m, uint32_t extent)
{
	return &m->group[m->group_of[extent]];
}

static const struct weir_replica *replica_at(const struct weir_members *m, uint32_t extent,
					     uint8_t slot)
{
	return &m->extents->extent[extent].replica[slot];
}

static bool has_memory(const struct weir_members *m, uint32_t extent, uint8_t slot)
{
	return replica_at(m, extent, slot)->state != WEIR_REPLICA_NONE;
}

static bool is_valid(const struct weir_members *m, uint32_t extent, uint8_t slot)
{
	return replica_at(m, extent, slot)->state == WEIR_REPLICA_VALID;
}

const struct weir_member *weir_members_at(const struct weir_members *m, uint32_t extent,
					  uint8_t slot)
{
	const struct weir_member_group *group = group_of(m, extent);

	if (!has_memory(m, extent, slot))
		return NULL;
	for (uint8_t i = 0; i < group->nr; i++) {
		if (group->member[i].joined == weir_members_copy(m, extent, slot)->joined &&
		    group->member[i].donor == replica_at(m, extent, slot)->donor)
			return &group->member[i];
	}
	return NULL;
}

uint8_t weir_members_slot(const struct weir_members *m, uint32_t extent,
			  const struct weir_member *member)
{
	uint8_t slot = 0;

	while (slot < m->extents->slots && weir_members_at(m, extent, slot) != member)
		slot++;
	return slot;
}

static uint8_t find_free_slot(const struct weir_members *m, uint32_t extent)
{
	uint8_t slot = 0;

	while (slot < m->extents->slots && has_memory(m, extent, slot))
		slot++;
	return slot;
}

void weir_members_leave(struct weir_members *m, uint32_t extent)
{
	for (uint8_t slot = 0; slot < m->extents->slots; slot++) {
		if (has_memory(m, extent, slot) && !weir_members_at(m, extent, slot))
			weir_extents_leave(m->extents, extent, slot);
	}
}

static bool is_coded(const struct weir_members *m)
{
	return m->data > 1;
}

/* Whether members that serve have all data. */
static bool is_served(const struct weir_members *m, const struct weir_member_group *group)
{
	uint8_t serving = 0;

	for (uint8_t i = 0; i < group->nr; i++)
		serving += group->member[i].serves;
	return serving && serving >= m->data;
}

bool weir_members_are_wanted(const struct weir_members *m, const struct weir_member_group *group)
{
	bool any = false;

	for (uint8_t i = 0; i < group->nr; i++)
		any |= group->member[i].is_own && !group->member[i].serves;
	return !m->is_rebuild || (any && is_served(m, group));
}

/* Whether this client opens a member's copy. */
static bool takes_part(const struct weir_members *m, const struct weir_member *member)
{
	return !m->is_rebuild || member->serves || member->is_own ||
	       (is_coded(m) && member->counts);
}

/* Whether the copies are equal only when a member has all data. */
static bool is_awaited(const struct weir_members *m, const struct weir_member *member)
{
	return m->is_rebuild ? member->is_own && !member->serves : member->counts;
}

/* Return: whether there is one. */
static bool find_place(const struct weir_members *m, uint32_t extent,
		       const struct weir_member *member, struct weir_extents_placement *place,
		       bool *is_new)
{
	uint8_t slot = weir_members_slot(m, extent, member);

	*is_new = slot == m->extents->slots;
	if (*is_new)
		slot = find_free_slot(m, extent);
	*place = (struct weir_extents_placement){ extent, slot, member->donor };
	return slot < m->extents->slots &&
	       (*is_new || !weir_members_copy(m, extent, slot)->is_attached);
}

bool weir_members_next(const struct weir_members *m, uint32_t extent, uint64_t donors,
		       uint16_t *tried, struct weir_extents_placement *place,
		       struct weir_member *member, bool *is_new)
{
	const struct weir_member_group *group = group_of(m, extent);

	for (uint8_t i = 0; weir_members_are_wanted(m, group) && i < group->nr; i++) {
		*member = group->member[i];
		if ((*tried >> i & 1) || member->donor == WEIR_MEMBERS_NO_DONOR ||
		    !(donors >> member->donor & 1) || !takes_part(m, member) ||
		    !find_place(m, extent, &group->member[i], place, is_new))
			continue;
		*tried |= (uint16_t)(1u << i);
		return true;
	}
	return false;
}

void weir_members_attach(struct weir_members *m, const struct weir_extents_placement *place,
			 const struct weir_member *member, bool is_new, bool was_there)
{
	struct weir_member_copy *copy = weir_members_copy(m, place->extent, place->slot);

	m->moves++;
	copy->is_attached = true;
	if (!is_new)
		return;
	copy->joined = member->joined;
	copy->was_there = was_there;
	weir_extents_join(m->extents, place);
	m->extents->extent[place->extent].replica[place->slot].shard = member->shard;
}

void weir_members_detach(struct weir_members *m, uint8_t donor)
{
	for (uint32_t i = 0; i < m->extents->nr_extents; i++) {
		for (uint8_t slot = 0; slot < m->extents->slots; slot++) {
			if (replica_at(m, i, slot)->donor == donor)
				weir_members_copy(m, i, slot)->is_attached = false;
		}
	}
}

bool weir_members_are_used(const struct weir_members *m, uint8_t donor)
{
	bool used = false;

	for (uint32_t i = 0; !used && i < m->extents->nr_extents; i++) {
		for (uint8_t slot = 0; slot < m->extents->slots; slot++)
			used |= has_memory(m, i, slot) && replica_at(m, i, slot)->users &&
				replica_at(m, i, slot)->donor == donor;
	}
	return used;
}

/*
 * Return: whether the copy of each awaited member is attached, and that of a serving one. Of a
 * code, each that counts, too.
 */
static bool is_attached(const struct weir_members *m, uint32_t extent)
{
	const struct weir_member_group *group = group_of(m, extent);
	bool any_serves = false;

	for (uint8_t i = 0; i < group->nr; i++) {
		const struct weir_member *member = &group->member[i];
		uint8_t slot = weir_members_slot(m, extent, member);
		bool is_there = slot < m->extents->slots &&
				weir_members_copy(m, extent, slot)->is_attached;

		if ((is_awaited(m, member) || (is_coded(m) && member->counts)) && !is_there)
			return false;
		any_serves |= member->serves && is_there;
	}
	return any_serves;
}

/* A step of the resync that is under way at a copy may end after a choice, and spoil it. */
static bool has_users(const struct weir_members *m, uint32_t extent)
{
	bool any = false;

	for (uint8_t slot = 0; slot < m->extents->slots; slot++)
		any |= replica_at(m, extent, slot)->users > 0;
	return any;
}

/* Return: a bit for each copy whose member serves, or, of a code, counts. */
static uint16_t find_trusted(const struct weir_members *m, uint32_t extent)
{
	uint16_t slots = 0;

	for (uint8_t slot = 0; slot < m->extents->slots; slot++) {
		const struct weir_member *member = weir_members_at(m, extent, slot);

		if (member && (is_coded(m) ? member->counts : member->serves))
			slots |= (uint16_t)(1u << slot);
	}
	return slots;
}

/* Return: a bit for each copy whose memory was there. */
static uint16_t find_memory(const struct weir_members *m, uint32_t extent)
{
	uint16_t slots = 0;

	for (uint8_t slot = 0; slot < m->extents->slots; slot++)
		slots |= (uint16_t)(weir_members_copy(m, extent, slot)->was_there << slot);
	return slots;
}

/*
 * @found: receives the copies with memory that are trusted. Return: 0 a source must be chosen; 1
 * none need be; or as weir_members_open().
 */
static int find_sources(const struct weir_members *m, uint32_t extent, bool is_proven,
			uint16_t *found)
{
	const struct weir_member_group *group = group_of(m, extent);

	if (!weir_members_are_wanted(m, group))
		return 1;
	if (!is_served(m, group))
		return -EIO;
	if (weir_extents_count_valid(m->extents, extent))
		return 1;
	if (!is_attached(m, extent))
		return -EAGAIN;
	*found = find_trusted(m, extent) & find_memory(m, extent);
	return *found || m->is_blank || is_proven ? 0 : -ENODATA;
}

static void trust(struct weir_members *m, uint32_t extent, uint16_t slots)
{
	for (uint8_t slot = 0; slot < m->extents->slots; slot++) {
		if (slots >> slot & 1)
			weir_extents_trust(m->extents, extent, slot);
	}
}

int weir_members_open(struct weir_members *m, uint32_t extent, bool is_proven)
{
	uint16_t found = 0;
	int rc = find_sources(m, extent, is_proven, &found);

	if (!rc && has_users(m, extent))
		rc = -EAGAIN;
	if (rc)
		return rc < 0 ? rc : 0;
	if (found)
		weir_extents_found(m->extents, extent);
	if (found && !m->is_rebuild)
		found &= (uint16_t)-found; /* only one */
	trust(m, extent, found ? found : UINT16_MAX);
	return 0;
}

int weir_members_open_coded(const struct weir_members *m, uint32_t extent, bool is_proven,
			    uint16_t *counting, uint16_t *found)
{
	int rc;

	*counting = *found = 0;
	rc = find_sources(m, extent, is_proven, found);
	if (!rc)
		*counting = find_trusted(m, extent);
	return rc < 0 ? rc : 0;
}

void weir_members_trust_new(struct weir_members *m, uint32_t extent)
{
	bool has_been_open = m->equal[extent] || weir_extents_count_valid(m->extents, extent);

	if (m->extents->extent[extent].live || !has_been_open)
		return;
	for (uint8_t slot = 0; slot < m->extents->slots; slot++) {
		if (!weir_members_copy(m, extent, slot)->was_there)
			weir_extents_trust(m->extents, extent, slot);
	}
}

static bool is_valid_at(const struct weir_members *m, uint32_t extent,
			const struct weir_member *member)
{
	uint8_t slot = weir_members_slot(m, extent, member);

	return slot < m->extents->slots && is_valid(m, extent, slot);
}

bool weir_members_are_equal(struct weir_members *m, uint32_t extent)
{
	const struct weir_member_group *group = group_of(m, extent);
	bool is_wanted;

	if (m->equal[extent])
		return true;
	is_wanted = weir_members_are_wanted(m, group);
	if (is_wanted && !is_attached(m, extent))
		return false;
	for (uint8_t i = 0; is_wanted && i < group->nr; i++) {
		if (is_awaited(m, &group->member[i]) && !is_valid_at(m, extent, &group->member[i]))
			return false;
	}
	m->equal[extent] = true;
	m->nr_equal++;
	return true;
}

bool weir_members_is_ready(const struct weir_members *m, uint16_t group,
			   const struct weir_member *member)
{
	for (uint32_t i = 0; i < m->extents->nr_extents; i++) {
		if (m->group_of[i] == group && !is_valid_at(m, i, member))
			return false;
	}
	return true;
}

bool weir_members_must_wait(const struct weir_members *m, uint32_t extent)
{
	bool waits = false;

	for (uint8_t slot = 0; slot < m->extents->slots; slot++)
		waits |= is_valid(m, extent, slot) &&
			 !weir_members_copy(m, extent, slot)->is_attached;
	return waits;
}

/* Return: how many pages of a copy that lacks data were copied. */
static uint64_t count_copied(const struct weir_members *m, uint32_t extent, uint8_t slot)
{
	uint8_t number = weir_extents_copy_of(m->extents, extent);
	const struct weir_extents_resync *copy = &m->extents->copy[number];

	return number < WEIR_EXTENTS_COPIES_MAX && copy->target == slot ? copy->page : 0;
}

void weir_members_progress(const struct weir_members *m,
			   uint64_t (*filled)(const void *arg, uint32_t extent, uint8_t slot),
			   const void *arg, uint64_t *done, uint64_t *all)
{
	*done = *all = 0;
	for (uint32_t i = 0; i < m->extents->nr_extents; i++) {
		const struct weir_member_group *group = group_of(m, i);

		for (uint8_t j = 0; j < group->nr; j++) {
			const struct weir_member *member = &group->member[j];
			uint8_t slot = weir_members_slot(m, i, member);

			if (member->serves || !takes_part(m, member))
				continue;
			*all += m->extents->pages;
			if (slot == m->extents->slots)
				continue;
			if (is_valid(m, i, slot))
				*done += m->extents->pages;
			else
				*done += is_coded(m) ? filled(arg, i, slot) :
						       count_copied(m, i, slot);
		}
	}
}
