/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lookups in a snapshot. All lists are short and searched linearly: a map has at most a few hundred
 * keys, and a client reads it when it changes.
 */
#include "core/pool/map.h"
#include "core/base/rng.h"

const char *const weir_pool_member_states[3] = {
	[WEIR_POOL_SERVING] = "serving",
	[WEIR_POOL_SYNCING] = "syncing",
	[WEIR_POOL_OUT] = "out",
};

void weir_pool_map_init(struct weir_pool_map *map)
{
	memset(map, 0, sizeof(*map));
	map->leader = WEIR_POOL_NO_DONOR;
}

/* Reads the digit behind @text. No scheme has a number of two digits. */
static bool take_digit(const char **text, uint8_t *number)
{
	if (**text < '0' || **text > '9')
		return false;
	*number = (uint8_t)(*(*text)++ - '0');
	return **text < '0' || **text > '9';
}

static bool take_word(const char **text, const char *word)
{
	size_t length = strlen(word);

	for (size_t i = 0; i < length; i++) {
		if ((*text)[i] != word[i])
			return false;
	}
	*text += length;
	return true;
}

int weir_pool_scheme_parse(const char *text, struct weir_pool_scheme *scheme)
{
	uint8_t data = 1, spare = 0, copies = 0;

	if (take_word(&text, "copies=")) {
		if (!take_digit(&text, &copies) || *text)
			return -EINVAL;
		if (!copies || copies > WEIR_POOL_COPIES_MAX)
			return -ERANGE;
		spare = copies - 1;
	} else {
		if (!take_word(&text, "code=") || !take_digit(&text, &data) ||
		    !take_word(&text, "+") || !take_digit(&text, &spare) || *text)
			return -EINVAL;
		if (data < 2 || !spare || data + spare > (int)WEIR_POOL_WIDTH_MAX)
			return -ERANGE;
	}
	*scheme = (struct weir_pool_scheme){ .data = data, .spare = spare };
	return 0;
}

struct weir_pool_scheme_text weir_pool_scheme_format(struct weir_pool_scheme scheme)
{
	struct weir_pool_scheme_text out = { "copies=0" };

	if (scheme.data == 1) {
		out.text[7] = (char)('0' + weir_pool_width(scheme));
		return out;
	}
	memcpy(out.text, "code=0+0", sizeof("code=0+0"));
	out.text[5] = (char)('0' + scheme.data);
	out.text[7] = (char)('0' + scheme.spare);
	return out;
}

static bool is_name_char(char c)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
		return true;
	return c == '.' || c == '_' || c == '-' || c == ':' || c == '[' || c == ']';
}

bool weir_pool_map_is_name(const char *name)
{
	size_t length = strlen(name);

	if (!length || length >= WEIR_POOL_NAME_MAX)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!is_name_char(name[i]))
			return false;
	}
	return true;
}

/* Return: whether two names are equal, each shorter than WEIR_POOL_NAME_MAX. */
static bool is_same(const char *a, const char *b)
{
	size_t length = strlen(a);

	return strlen(b) == length && !memcmp(a, b, length);
}

uint16_t weir_pool_map_donor(const struct weir_pool_map *map, const char *id)
{
	for (uint16_t i = 0; i < map->nr_donors; i++) {
		if (is_same(map->donor[i].id, id))
			return i;
	}
	return WEIR_POOL_NO_DONOR;
}

uint16_t weir_pool_map_add_donor(struct weir_pool_map *map, const char *id)
{
	uint16_t donor = weir_pool_map_donor(map, id);

	if (donor != WEIR_POOL_NO_DONOR)
		return donor;
	if (map->nr_donors == WEIR_POOL_DONORS_MAX || !weir_pool_map_is_name(id))
		return WEIR_POOL_NO_DONOR;
	memset(&map->donor[map->nr_donors], 0, sizeof(map->donor[0]));
	memcpy(map->donor[map->nr_donors].id, id, strlen(id) + 1);
	return map->nr_donors++;
}

const struct weir_pool_volume *weir_pool_map_volume(const struct weir_pool_map *map,
						    const char *name)
{
	for (uint16_t i = 0; i < map->nr_volumes; i++) {
		if (is_same(map->volume[i].name, name))
			return &map->volume[i];
	}
	return NULL;
}

bool weir_pool_map_is_served(const struct weir_pool_volume *volume)
{
	return volume->is_files && volume->holder && volume->server_claim == volume->holder;
}

bool weir_pool_map_is_abandoned(const struct weir_pool_map *map,
				const struct weir_pool_volume *volume)
{
	const struct weir_pool_donor *donor;
	uint16_t index;

	if (!volume->is_files || volume->is_rebuilding || !volume->holder)
		return false;
	if (volume->suspect == volume->holder)
		return true;
	if (!weir_pool_map_is_served(volume))
		return false; /* the server is on its way */
	index = weir_pool_map_donor(map, volume->server);
	if (index == WEIR_POOL_NO_DONOR)
		return true;
	donor = &map->donor[index];
	return donor->incarnation != volume->server_incarnation ||
	       donor->failed == volume->server_incarnation;
}

const struct weir_pool_table *weir_pool_map_table(const struct weir_pool_map *map,
						  struct weir_pool_scheme scheme)
{
	for (uint16_t i = 0; i < map->nr_tables; i++) {
		if (map->table[i].scheme.data == scheme.data &&
		    map->table[i].scheme.spare == scheme.spare)
			return &map->table[i];
	}
	return NULL;
}

uint16_t weir_pool_map_groups(const struct weir_pool_map *map)
{
	uint16_t end = 0;

	for (uint16_t i = 0; i < map->nr_tables; i++) {
		if (map->table[i].first + map->table[i].count > end)
			end = (uint16_t)(map->table[i].first + map->table[i].count);
	}
	return end;
}

bool weir_pool_map_is_ready(const struct weir_pool_map *map, struct weir_pool_scheme scheme)
{
	const struct weir_pool_table *table = weir_pool_map_table(map, scheme);

	if (!table)
		return false;
	for (uint16_t i = 0; i < table->count; i++) {
		if (!map->group[table->first + i].version)
			return false;
	}
	return true;
}

uint16_t weir_pool_map_group(const struct weir_pool_map *map,
			     const struct weir_pool_volume *volume, uint64_t extent)
{
	const struct weir_pool_table *table = weir_pool_map_table(map, volume->scheme);
	uint64_t round, start;

	if (weir_bug(!table || !table->count))
		return 0;
	round = extent / table->count;
	start = weir_rng_scale(weir_rng_mix(volume->id + weir_rng_mix(round)), table->count);
	return (uint16_t)(table->first + (start + extent) % table->count);
}

bool weir_pool_map_is_present(const struct weir_pool_map *map,
			      const struct weir_pool_member *member)
{
	return member->donor < map->nr_donors && member->incarnation &&
	       map->donor[member->donor].incarnation == member->incarnation;
}

uint8_t weir_pool_group_count(const struct weir_pool_group *group,
			      enum weir_pool_member_state state)
{
	uint8_t count = 0;

	for (uint8_t i = 0; i < group->nr_members; i++)
		count += group->member[i].state == state;
	return count;
}

bool weir_pool_group_has_successor(const struct weir_pool_group *group, uint8_t index)
{
	for (uint8_t i = 0; i < group->nr_members; i++) {
		if (i != index && group->member[i].shard == group->member[index].shard &&
		    group->member[i].state == WEIR_POOL_SYNCING)
			return true;
	}
	return false;
}

bool weir_pool_group_is_whole(const struct weir_pool_group *group)
{
	return weir_pool_group_count(group, WEIR_POOL_SERVING) >= weir_pool_width(group->scheme);
}

uint16_t weir_pool_map_count_donors(const struct weir_pool_map *map)
{
	uint16_t count = 0;

	for (uint16_t i = 0; i < map->nr_donors; i++)
		count += map->donor[i].incarnation != 0;
	return count;
}

/* Return: whether an earlier registered donor stands in the domain of donor @index. */
static bool repeats_domain(const struct weir_pool_map *map, uint16_t index)
{
	for (uint16_t i = 0; i < index; i++) {
		if (map->donor[i].incarnation &&
		    is_same(map->donor[i].domain, map->donor[index].domain))
			return true;
	}
	return false;
}

uint16_t weir_pool_map_count_domains(const struct weir_pool_map *map)
{
	uint16_t count = 0;

	for (uint16_t i = 0; i < map->nr_donors; i++)
		count += map->donor[i].incarnation && !repeats_domain(map, i);
	return count;
}

bool weir_pool_group_is_lost(const struct weir_pool_group *group)
{
	return weir_pool_group_count(group, WEIR_POOL_SERVING) < group->scheme.data;
}

static bool has_member(const struct weir_pool_group *group, uint16_t donor, uint64_t incarnation,
		       enum weir_pool_member_state state)
{
	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];

		if (m->donor == donor && m->incarnation == incarnation && m->state == state)
			return true;
	}
	return false;
}

/* Return: whether the incarnation is in this state in any group. */
static bool is_anywhere(const struct weir_pool_map *map, uint16_t donor, uint64_t incarnation,
			enum weir_pool_member_state state)
{
	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++) {
		if (map->group[i].version &&
		    has_member(&map->group[i], donor, incarnation, state))
			return true;
	}
	return false;
}

static bool is_reported(const struct weir_pool_map *map, uint16_t donor, uint64_t incarnation)
{
	return donor < map->nr_donors && map->donor[donor].failed == incarnation;
}

static bool is_reported_now(const struct weir_pool_map *map, uint16_t donor)
{
	return donor < map->nr_donors && map->donor[donor].incarnation &&
	       is_reported(map, donor, map->donor[donor].incarnation);
}

bool weir_pool_map_may_lead(const struct weir_pool_map *map, uint16_t donor)
{
	return !map->leader_stored ||
	       (is_reported_now(map, map->leader) && !is_reported_now(map, donor));
}

bool weir_pool_map_is_outcast(const struct weir_pool_map *map, uint16_t donor,
			      uint64_t incarnation)
{
	return is_reported(map, donor, incarnation) ||
	       is_anywhere(map, donor, incarnation, WEIR_POOL_OUT);
}

bool weir_pool_map_is_serving(const struct weir_pool_map *map, uint16_t donor,
			      uint64_t incarnation)
{
	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++) {
		if (map->group[i].version && !weir_pool_group_is_lost(&map->group[i]) &&
		    has_member(&map->group[i], donor, incarnation, WEIR_POOL_SERVING))
			return true;
	}
	return false;
}

bool weir_pool_map_may_serve(const struct weir_pool_map *map,
			     const struct weir_pool_member *member,
			     const struct weir_pool_volume *volume, bool was_blank)
{
	if (member->state != WEIR_POOL_SYNCING)
		return member->state == WEIR_POOL_SERVING;
	return was_blank || weir_pool_member_is_synced(member, (uint16_t)(volume - map->volume));
}

bool weir_pool_map_may_restart(const struct weir_pool_map *map, uint16_t donor,
			       uint64_t incarnation)
{
	bool is_out = is_anywhere(map, donor, incarnation, WEIR_POOL_OUT) ||
		      (is_reported(map, donor, incarnation) &&
		       !is_anywhere(map, donor, incarnation, WEIR_POOL_SYNCING));

	return is_out && !weir_pool_map_is_serving(map, donor, incarnation);
}
