/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/pool/codec_value.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/pool/codec.h"

uint64_t weir_pool_value_uint(struct json_object *value, const char *name)
{
	struct json_object *member;

	return json_object_object_get_ex(value, name, &member) ? json_object_get_uint64(member) :
								 0;
}

uint64_t weir_pool_value_hex(struct json_object *value, const char *name)
{
	struct json_object *member;

	if (!json_object_object_get_ex(value, name, &member))
		return 0;
	return strtoull(json_object_get_string(member), NULL, 16);
}

bool weir_pool_value_text(struct json_object *value, const char *name,
			  char text[static WEIR_POOL_NAME_MAX])
{
	struct json_object *member;
	const char *found;

	if (!json_object_object_get_ex(value, name, &member))
		return false;
	found = json_object_get_string(member);
	if (strlen(found) >= WEIR_POOL_NAME_MAX)
		return false;
	memcpy(text, found, strlen(found) + 1);
	return true;
}

bool weir_pool_value_name(struct json_object *value, const char *name,
			  char text[static WEIR_POOL_NAME_MAX])
{
	return weir_pool_value_text(value, name, text) && weir_pool_map_is_name(text);
}

bool weir_pool_value_identity(struct json_object *value, const char *name,
			      uint8_t identity[static WEIR_POOL_IDENTITY], bool *has)
{
	struct json_object *member;
	const char *found, *end;
	size_t length;

	*has = json_object_object_get_ex(value, name, &member);
	if (!*has)
		return true;
	found = json_object_is_type(member, json_type_string) ? json_object_get_string(member) : "";
	return !sodium_hex2bin(identity, WEIR_POOL_IDENTITY, found, strlen(found), NULL, &length,
			       &end) &&
	       length == WEIR_POOL_IDENTITY && !*end;
}

static void add_uint(struct json_object *object, const char *name, uint64_t number)
{
	json_object_object_add(object, name, json_object_new_uint64(number));
}

static void add_text(struct json_object *object, const char *name, const char *text)
{
	json_object_object_add(object, name, json_object_new_string(text));
}

static void add_hex(struct json_object *object, const char *name, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%016" PRIx64, number);
	add_text(object, name, text);
}

/* Takes @object. */
static char *text_of(struct json_object *object)
{
	char *text = strdup(json_object_to_json_string_ext(
		object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));

	json_object_put(object);
	return text;
}

char *weir_pool_codec_pool(const struct weir_pool_map *map)
{
	struct json_object *object = json_object_new_object();

	add_uint(object, "format", WEIR_POOL_FORMAT);
	add_hex(object, "id", map->id);
	add_uint(object, "lease_ms", map->lease_ms);
	add_uint(object, "replace_ms", map->replace_ms);
	add_uint(object, "groups", map->table_groups);
	return text_of(object);
}

char *weir_pool_codec_donor(const struct weir_pool_donor *donor)
{
	char identity[2 * WEIR_POOL_IDENTITY + 1];
	struct json_object *object = json_object_new_object();

	add_text(object, "address", donor->address);
	add_text(object, "domain", donor->domain);
	add_uint(object, "bytes", donor->bytes);
	add_hex(object, "incarnation", donor->incarnation);
	if (donor->has_identity) {
		sodium_bin2hex(identity, sizeof(identity), donor->identity, WEIR_POOL_IDENTITY);
		add_text(object, "identity", identity);
	}
	return text_of(object);
}

char *weir_pool_codec_table(const struct weir_pool_table *table)
{
	struct json_object *object = json_object_new_object();

	add_uint(object, "first", table->first);
	add_uint(object, "count", table->count);
	return text_of(object);
}

char *weir_pool_codec_group(const struct weir_pool_map *map, const struct weir_pool_group *group)
{
	struct json_object *object = json_object_new_object(), *list = json_object_new_array();

	add_uint(object, "version", group->version);
	add_text(object, "scheme", weir_pool_scheme_format(group->scheme).text);
	if (group->lean_ms)
		add_uint(object, "lean_ms", group->lean_ms);
	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];
		struct json_object *member = json_object_new_object();

		add_text(member, "donor", map->donor[m->donor].id);
		add_hex(member, "incarnation", m->incarnation);
		add_uint(member, "joined", m->joined);
		add_uint(member, "shard", m->shard);
		add_text(member, "state", weir_pool_member_states[m->state]);
		json_object_array_add(list, member);
	}
	json_object_object_add(object, "members", list);
	return text_of(object);
}

char *weir_pool_codec_volume(const struct weir_pool_volume *volume)
{
	struct json_object *object = json_object_new_object();

	add_hex(object, "id", volume->id);
	add_uint(object, "bytes", volume->bytes);
	add_uint(object, "extent_bytes", volume->extent_bytes);
	add_text(object, "scheme", weir_pool_scheme_format(volume->scheme).text);
	json_object_object_add(object, "blank", json_object_new_boolean(volume->is_blank));
	if (volume->is_files)
		json_object_object_add(object, "files", json_object_new_boolean(true));
	return text_of(object);
}

char *weir_pool_codec_leader(const char *donor)
{
	struct json_object *object = json_object_new_object();

	add_text(object, "donor", donor);
	return text_of(object);
}

char *weir_pool_codec_failed(uint64_t incarnation, const char *by)
{
	struct json_object *object = json_object_new_object();

	add_hex(object, "incarnation", incarnation);
	add_text(object, "by", by);
	return text_of(object);
}

char *weir_pool_codec_wrong(const char *old, uint64_t incarnation, uint64_t reads)
{
	struct json_object *object = json_object_new_object();
	struct json_object *before = old ? json_tokener_parse(old) : NULL;

	if (before && weir_pool_value_hex(before, "incarnation") == incarnation)
		reads += weir_pool_value_uint(before, "reads");
	json_object_put(before);
	add_hex(object, "incarnation", incarnation);
	add_uint(object, "reads", reads);
	return text_of(object);
}

char *weir_pool_codec_holder(const char *by, bool rebuilds)
{
	struct json_object *object = json_object_new_object();

	add_text(object, "by", by);
	json_object_object_add(object, "rebuilds", json_object_new_boolean(rebuilds));
	return text_of(object);
}

char *weir_pool_codec_server(const struct weir_pool_volume *volume)
{
	struct json_object *object = json_object_new_object();

	add_text(object, "donor", volume->server);
	add_hex(object, "incarnation", volume->server_incarnation);
	add_text(object, "address", volume->address);
	add_uint(object, "claim", volume->server_claim);
	json_object_object_add(object, "mounted", json_object_new_boolean(volume->is_mounted));
	return text_of(object);
}

char *weir_pool_codec_suspect(uint64_t claim, const char *by)
{
	struct json_object *object = json_object_new_object();

	add_uint(object, "claim", claim);
	add_text(object, "by", by);
	return text_of(object);
}

char *weir_pool_codec_progress(unsigned int percent, const char *donor)
{
	struct json_object *object = json_object_new_object();

	add_uint(object, "percent", percent);
	if (donor)
		add_text(object, "donor", donor);
	return text_of(object);
}

/* The members of an earlier value, or none. */
static struct json_object *members_of(const char *old)
{
	struct json_object *root = old ? json_tokener_parse(old) : NULL, *found, *members = NULL;

	if (root && json_object_object_get_ex(root, "members", &found) &&
	    json_object_is_type(found, json_type_array))
		members = json_object_get(found);
	json_object_put(root);
	return members ? members : json_object_new_array();
}

/* Whether an entry speaks of this donor's part of this group, now or earlier. */
static bool is_about(struct json_object *entry, uint16_t group, const char *donor)
{
	char name[WEIR_POOL_NAME_MAX];

	return weir_pool_value_uint(entry, "group") == group &&
	       weir_pool_value_name(entry, "donor", name) && !strcmp(name, donor);
}

char *weir_pool_codec_synced(const char *old, uint16_t group, const char *donor, uint64_t joined)
{
	struct json_object *root = json_object_new_object(), *list = json_object_new_array();
	struct json_object *before = members_of(old), *entry = json_object_new_object();

	for (size_t i = 0; i < json_object_array_length(before); i++) {
		struct json_object *kept = json_object_array_get_idx(before, i);

		if (!is_about(kept, group, donor))
			json_object_array_add(list, json_object_get(kept));
	}
	json_object_put(before);
	add_uint(entry, "group", group);
	add_text(entry, "donor", donor);
	add_uint(entry, "joined", joined);
	json_object_array_add(list, entry);
	json_object_object_add(root, "members", list);
	return text_of(root);
}
