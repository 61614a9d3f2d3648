/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* From keys to a map. Groups name donors, and reports name members: so the keys have an order. */
#include "lib/pool/codec.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/pool/codec_value.h"

/**
 * struct codec - a listing on its way to a map
 * @map: the map
 * @listing: the keys
 * @error: for the caller
 */
struct codec {
	struct weir_pool_map *map;
	const struct weir_pool_listing *listing;
	struct weir_error *error;
};

static int damaged(const struct codec *c, const char *key)
{
	return weir_error_set(c->error, -EPROTO,
			      "pool %s: the key '%s' is damaged, or of another version of weir",
			      c->map->name, key);
}

static int full(const struct codec *c, const char *what)
{
	return weir_error_set(c->error, -EPROTO, "pool %s: too many %s for this version of weir",
			      c->map->name, what);
}

typedef int codec_fn(struct codec *c, const struct weir_pool_key *key, const char *name,
		     struct json_object *value);

static int read_pool(struct codec *c, const struct weir_pool_key *key, const char *name,
		     struct json_object *value)
{
	struct weir_pool_map *map = c->map;
	uint64_t lease_ms = weir_pool_value_uint(value, "lease_ms");
	uint64_t replace_ms = weir_pool_value_uint(value, "replace_ms");
	uint64_t groups = weir_pool_value_uint(value, "groups");

	if (*name)
		return 0;
	if (weir_pool_value_uint(value, "format") != WEIR_POOL_FORMAT)
		return weir_error_set(c->error, -EPROTONOSUPPORT,
				      "pool %s: its map is of another version of weir", map->name);
	if (!lease_ms || lease_ms > UINT32_MAX || replace_ms > UINT32_MAX || !groups ||
	    groups > WEIR_POOL_GROUPS_MAX)
		return damaged(c, key->key);
	map->stored = key->version;
	map->id = weir_pool_value_hex(value, "id");
	map->lease_ms = (uint32_t)lease_ms;
	map->replace_ms = (uint32_t)replace_ms;
	map->table_groups = (uint16_t)groups;
	return 0;
}

static int read_donor(struct codec *c, const struct weir_pool_key *key, const char *name,
		      struct json_object *value)
{
	uint16_t index = weir_pool_map_add_donor(c->map, name);
	struct weir_pool_donor *donor;

	if (index == WEIR_POOL_NO_DONOR)
		return full(c, "donors");
	donor = &c->map->donor[index];
	donor->stored = key->version;
	donor->bytes = weir_pool_value_uint(value, "bytes");
	donor->incarnation = weir_pool_value_hex(value, "incarnation");
	if (!donor->incarnation || !weir_pool_value_name(value, "address", donor->address) ||
	    !weir_pool_value_name(value, "domain", donor->domain) ||
	    !weir_pool_value_identity(value, "identity", donor->identity, &donor->has_identity))
		return damaged(c, key->key);
	return 0;
}

static int read_drain(struct codec *c, const struct weir_pool_key *key, const char *name,
		      struct json_object *value)
{
	uint16_t index = weir_pool_map_add_donor(c->map, name);

	(void)key;
	(void)value;
	if (index == WEIR_POOL_NO_DONOR)
		return full(c, "donors");
	c->map->donor[index].is_draining = true;
	return 0;
}

static int read_failed(struct codec *c, const struct weir_pool_key *key, const char *name,
		       struct json_object *value)
{
	uint16_t index = weir_pool_map_add_donor(c->map, name);

	if (index == WEIR_POOL_NO_DONOR)
		return full(c, "donors");
	c->map->donor[index].failed = weir_pool_value_hex(value, "incarnation");
	c->map->donor[index].failed_stored = key->version;
	return 0;
}

static int read_wrong(struct codec *c, const struct weir_pool_key *key, const char *name,
		      struct json_object *value)
{
	uint16_t index = weir_pool_map_donor(c->map, name);

	(void)key;
	if (index != WEIR_POOL_NO_DONOR &&
	    c->map->donor[index].incarnation == weir_pool_value_hex(value, "incarnation"))
		c->map->donor[index].wrong_reads = weir_pool_value_uint(value, "reads");
	return 0;
}

static int read_table(struct codec *c, const struct weir_pool_key *key, const char *name,
		      struct json_object *value)
{
	uint64_t first = weir_pool_value_uint(value, "first");
	uint64_t count = weir_pool_value_uint(value, "count");
	struct weir_pool_table *table = &c->map->table[c->map->nr_tables];

	if (c->map->nr_tables == WEIR_POOL_TABLES_MAX)
		return full(c, "schemes");
	if (!count || count > WEIR_POOL_GROUPS_MAX || first > WEIR_POOL_GROUPS_MAX - count ||
	    weir_pool_scheme_parse(name, &table->scheme))
		return damaged(c, key->key);
	table->first = (uint16_t)first;
	table->count = (uint16_t)count;
	c->map->nr_tables++;
	return 0;
}

static int read_member(struct codec *c, struct json_object *value, struct weir_pool_member *member)
{
	char donor[WEIR_POOL_NAME_MAX], state[WEIR_POOL_NAME_MAX];

	if (!json_object_is_type(value, json_type_object) ||
	    !weir_pool_value_name(value, "donor", donor) ||
	    !weir_pool_value_name(value, "state", state))
		return -EPROTO;
	member->donor = weir_pool_map_add_donor(c->map, donor);
	member->incarnation = weir_pool_value_hex(value, "incarnation");
	member->joined = weir_pool_value_uint(value, "joined");
	member->shard = (uint8_t)weir_pool_value_uint(value, "shard");
	for (member->state = 0; member->state < 3; member->state++) {
		if (!strcmp(state, weir_pool_member_states[member->state]))
			break;
	}
	return member->donor != WEIR_POOL_NO_DONOR && member->shard < WEIR_POOL_WIDTH_MAX &&
			       member->state < 3 ?
		       0 :
		       -EPROTO;
}

static int read_group(struct codec *c, const struct weir_pool_key *key, const char *name,
		      struct json_object *value)
{
	char *end, scheme[WEIR_POOL_NAME_MAX];
	unsigned long number = strtoul(name, &end, 10);
	struct weir_pool_group *group = &c->map->group[number % WEIR_POOL_GROUPS_MAX];
	struct json_object *members;
	size_t count;

	if (*end || number >= WEIR_POOL_GROUPS_MAX ||
	    !weir_pool_value_text(value, "scheme", scheme) ||
	    weir_pool_scheme_parse(scheme, &group->scheme) ||
	    !json_object_object_get_ex(value, "members", &members) ||
	    !json_object_is_type(members, json_type_array))
		return damaged(c, key->key);
	count = json_object_array_length(members);
	group->version = weir_pool_value_uint(value, "version");
	group->lean_ms = weir_pool_value_uint(value, "lean_ms");
	group->stored = key->version;
	if (!group->version || count > WEIR_POOL_MEMBERS_MAX)
		return damaged(c, key->key);
	for (size_t i = 0; i < count; i++) {
		if (read_member(c, json_object_array_get_idx(members, i), &group->member[i]))
			return damaged(c, key->key);
	}
	group->nr_members = (uint8_t)count;
	return 0;
}

static int read_volume(struct codec *c, const struct weir_pool_key *key, const char *name,
		       struct json_object *value)
{
	struct weir_pool_volume *volume = &c->map->volume[c->map->nr_volumes];
	char scheme[WEIR_POOL_NAME_MAX];
	struct json_object *blank, *files;

	if (c->map->nr_volumes == WEIR_POOL_VOLUMES_MAX)
		return full(c, "volumes");
	if (!weir_pool_map_is_name(name) || !weir_pool_value_text(value, "scheme", scheme) ||
	    weir_pool_scheme_parse(scheme, &volume->scheme))
		return damaged(c, key->key);
	memcpy(volume->name, name, strlen(name) + 1);
	volume->id = weir_pool_value_hex(value, "id");
	volume->bytes = weir_pool_value_uint(value, "bytes");
	volume->extent_bytes = weir_pool_value_uint(value, "extent_bytes");
	volume->stored = key->version;
	volume->filled = WEIR_POOL_NO_DONOR;
	volume->is_blank = json_object_object_get_ex(value, "blank", &blank) &&
			   json_object_get_boolean(blank);
	volume->is_files = json_object_object_get_ex(value, "files", &files) &&
			   json_object_get_boolean(files);
	if (!volume->bytes || !volume->extent_bytes)
		return damaged(c, key->key);
	c->map->nr_volumes++;
	return 0;
}

static struct weir_pool_volume *volume_of(struct codec *c, const char *name)
{
	return (struct weir_pool_volume *)weir_pool_map_volume(c->map, name);
}

static int read_holder(struct codec *c, const struct weir_pool_key *key, const char *name,
		       struct json_object *value)
{
	struct weir_pool_volume *volume = volume_of(c, name);

	struct json_object *rebuilds;

	if (!volume)
		return 0;
	volume->holder = key->version;
	volume->is_rebuilding = json_object_object_get_ex(value, "rebuilds", &rebuilds) &&
				json_object_get_boolean(rebuilds);
	return 0;
}

static int read_progress(struct codec *c, const struct weir_pool_key *key, const char *name,
			 struct json_object *value)
{
	struct weir_pool_volume *volume = volume_of(c, name);
	uint64_t percent = weir_pool_value_uint(value, "percent");
	char donor[WEIR_POOL_NAME_MAX];

	if (percent > 100)
		return damaged(c, key->key);
	if (!volume)
		return 0;
	volume->progress = (uint8_t)percent;
	if (weir_pool_value_name(value, "donor", donor))
		volume->filled = weir_pool_map_add_donor(c->map, donor);
	return 0;
}

static int read_server(struct codec *c, const struct weir_pool_key *key, const char *name,
		       struct json_object *value)
{
	struct weir_pool_volume *volume = volume_of(c, name);
	struct json_object *mounted;

	if (!volume)
		return 0;
	volume->server_incarnation = weir_pool_value_hex(value, "incarnation");
	volume->server_claim = weir_pool_value_uint(value, "claim");
	volume->server_stored = key->version;
	volume->is_mounted = json_object_object_get_ex(value, "mounted", &mounted) &&
			     json_object_get_boolean(mounted);
	if (!weir_pool_value_name(value, "donor", volume->server) ||
	    !weir_pool_value_name(value, "address", volume->address))
		return damaged(c, key->key);
	return 0;
}

static int read_suspect(struct codec *c, const struct weir_pool_key *key, const char *name,
			struct json_object *value)
{
	struct weir_pool_volume *volume = volume_of(c, name);

	(void)key;
	if (volume)
		volume->suspect = weir_pool_value_uint(value, "claim");
	return 0;
}

/* Notes a volume's report at the member that it names, if the member is there still. */
static void note_synced(struct codec *c, struct json_object *value,
			 const struct weir_pool_volume *volume)
{
	uint64_t number = weir_pool_value_uint(value, "group");
	uint64_t joined = weir_pool_value_uint(value, "joined");
	char donor[WEIR_POOL_NAME_MAX];
	struct weir_pool_group *group;

	if (number >= WEIR_POOL_GROUPS_MAX || !weir_pool_value_name(value, "donor", donor))
		return;
	group = &c->map->group[number];
	if (!group->version || group->scheme.data != volume->scheme.data ||
	    group->scheme.spare != volume->scheme.spare)
		return;
	for (uint8_t i = 0; i < group->nr_members; i++) {
		struct weir_pool_member *m = &group->member[i];

		if (m->joined == joined && !strcmp(c->map->donor[m->donor].id, donor))
			weir_pool_member_set_synced(m, (uint16_t)(volume - c->map->volume));
	}
}

static int read_synced(struct codec *c, const struct weir_pool_key *key, const char *name,
		       struct json_object *value)
{
	const struct weir_pool_volume *volume = volume_of(c, name);
	struct json_object *members;

	if (!json_object_object_get_ex(value, "members", &members) ||
	    !json_object_is_type(members, json_type_array))
		return damaged(c, key->key);
	for (size_t i = 0; volume && !volume->is_blank && i < json_object_array_length(members);
	     i++)
		note_synced(c, json_object_array_get_idx(members, i), volume);
	return 0;
}

static int read_leader(struct codec *c, const struct weir_pool_key *key, const char *name,
		       struct json_object *value)
{
	char donor[WEIR_POOL_NAME_MAX];

	if (*name || !weir_pool_value_name(value, "donor", donor))
		return 0;
	c->map->leader = weir_pool_map_add_donor(c->map, donor);
	c->map->leader_stored = key->version;
	return 0;
}

/* In this order: a line may use what the lines above have read. */
static const struct {
	const char *prefix;
	codec_fn *read;
} kinds[] = {
	{ "pool", read_pool },	     { "donor/", read_donor },	 { "drain/", read_drain },
	{ "failed/", read_failed },  { "table/", read_table },	 { "group/", read_group },
	{ "volume/", read_volume },  { "holder/", read_holder }, { "synced/", read_synced },
	{ "leader", read_leader },   { "progress/", read_progress },
	{ "server/", read_server },  { "suspect/", read_suspect }, { "wrong/", read_wrong },
};

static int read_kind(struct codec *c, const char *prefix, codec_fn *read)
{
	size_t length = strlen(prefix);
	int rc = 0;

	for (size_t i = 0; i < c->listing->count && !rc; i++) {
		const struct weir_pool_key *key = &c->listing->keys[i];
		struct json_object *value;

		if (strncmp(key->key, prefix, length))
			continue;
		value = json_tokener_parse(key->value);
		rc = json_object_is_type(value, json_type_object) ?
			     read(c, key, key->key + length, value) :
			     damaged(c, key->key);
		json_object_put(value);
	}
	return rc;
}

int weir_pool_codec_read(const struct weir_pool_listing *listing, const char *name,
			 struct weir_pool_map *map, struct weir_error *error)
{
	struct codec c = { map, listing, error };
	int rc = 0;

	weir_pool_map_init(map);
	if (weir_pool_map_is_name(name))
		memcpy(map->name, name, strlen(name) + 1);
	map->revision = listing->revision;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !rc; i++)
		rc = read_kind(&c, kinds[i].prefix, kinds[i].read);
	if (!rc && !map->stored)
		rc = weir_error_set(error, -ENOENT,
				    "there is no pool %s: make it with 'weir pool create'", name);
	return rc;
}
