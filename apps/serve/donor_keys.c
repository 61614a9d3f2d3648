/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/donor_keys.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apps/log/log.h"
#include "lib/base/error.h"

/* Numbers of tenants that have ended are free, once the donor has said so. */
static void free_ended(struct donor_keys *keys, struct fs_tenants *tenants)
{
	for (unsigned int i = 0; i < DONOR_TENANTS_MAX; i++)
		if (atomic_exchange(&tenants->tenant[i].has_ended, false))
			keys->tenant[i][0] = '\0';
}

/* The number of a tenant, which gets one if it has none. Return: false if all are taken. */
static bool number_of(struct donor_keys *keys, const char *name, unsigned int *number)
{
	unsigned int vacant = DONOR_TENANTS_MAX;

	for (unsigned int i = 0; i < DONOR_TENANTS_MAX; i++) {
		if (!strcmp(keys->tenant[i], name)) {
			*number = i;
			return true;
		}
		if (!keys->tenant[i][0] && vacant == DONOR_TENANTS_MAX)
			vacant = i;
	}
	if (vacant == DONOR_TENANTS_MAX)
		return false;
	strcpy(keys->tenant[vacant], name);
	*number = vacant;
	return true;
}

static const struct key_entry *find_key(const struct key_list *list, const struct key_entry *wanted)
{
	for (unsigned int i = 0; i < list->nr; i++)
		if (!strcmp(list->entry[i].digits, wanted->digits))
			return &list->entry[i];
	return NULL;
}

static void log_key(const char *event, const struct key_entry *entry)
{
	char rights[KEY_LIST_RIGHTS];

	key_list_rights_format(entry->rights, rights);
	log_event(WEIR_LOG_INFO, "key %s name=%s tenant=%s state=%s rights=%s quota=%" PRIu64,
		  event, entry->name, entry->tenant, entry->is_old ? "old" : "current", rights,
		  entry->quota);
}

/* A line for each change, for audits. */
static void log_changes(const struct key_list *old, const struct key_list *new)
{
	for (unsigned int i = 0; old && i < old->nr; i++)
		if (!find_key(new, &old->entry[i]))
			log_key("revoked", &old->entry[i]);
	for (unsigned int i = 0; i < new->nr; i++) {
		const struct key_entry *before = old ? find_key(old, &new->entry[i]) : NULL;

		if (!before)
			log_key("added", &new->entry[i]);
		else if (memcmp(before, &new->entry[i], sizeof(*before)))
			log_key("changed", &new->entry[i]);
	}
}

/* Fills @set with the list's keys, whose tenants get numbers. Return: 0; -ENOSPC. */
static int fill_set(struct donor_keys *keys, const struct key_list *list, struct key_set *set,
		    struct weir_error *error)
{
	for (unsigned int i = 0; i < list->nr; i++) {
		const struct key_entry *entry = &list->entry[i];

		key_list_key(entry, &set->memory[i]);
		set->key[i] = (struct weir_donor_key){ .key = &set->memory[i],
						       .rights = entry->rights,
						       .bytes_max = entry->quota };
		if (!number_of(keys, entry->tenant, &set->key[i].tenant))
			return weir_error_set(error, -ENOSPC,
					      "%d tenants at once are the most: restart the donor",
					      DONOR_TENANTS_MAX);
		if (entry->rights & WEIR_RIGHT_POOL)
			*(entry->is_old ? &set->old_pool : &set->pool) = &set->memory[i];
	}
	return 0;
}

/* Return: 0; -EINVAL the donor would not know which key to prove to other donors. */
static int check_pool(const char *path, const struct key_list *list, struct weir_error *error)
{
	const struct key_entry *found = NULL;

	for (unsigned int i = 0; i < list->nr; i++) {
		const struct key_entry *entry = &list->entry[i];

		if (!(entry->rights & WEIR_RIGHT_POOL))
			continue;
		if (found && strcmp(found->name, entry->name))
			return weir_error_set(error, -EINVAL,
					      "%s: '%s' and '%s' have the right 'pool': the donors "
					      "of a pool have one key among themselves",
					      path, found->name, entry->name);
		if (!found || !entry->is_old)
			found = entry;
	}
	if (found && !found->is_old)
		return 0;
	return weir_error_set(error, -EINVAL,
			      "%s: no key has the right 'pool', by which donors know each other: "
			      "'weir key add --rights read,write,regions,pool' makes one",
			      path);
}

/* The list, whether it suits a pool or not. */
static int read_file(const char *path, struct key_list **list, struct key_list_id *id,
		     struct weir_error *error)
{
	struct key_list *new = key_list_new();
	int rc;

	if (!new)
		return weir_error_set(error, -ENOMEM, "out of memory");
	rc = key_list_read(path, new, error);
	*id = new->id;
	if (rc)
		key_list_free(new);
	else
		*list = new;
	return rc;
}

int donor_keys_read(const char *path, bool for_pool, struct key_list **list,
		    struct key_list_id *id, struct weir_error *error)
{
	int rc = read_file(path, list, id, error);

	if (rc || !for_pool)
		return rc;
	rc = check_pool(path, *list, error);
	if (rc)
		key_list_free(*list);
	return rc;
}

int donor_keys_set(struct donor_keys *keys, struct key_list *list, struct fs_tenants *tenants,
		   struct key_set **out, struct weir_error *error)
{
	char before[DONOR_TENANTS_MAX][KEY_LIST_NAME];
	struct key_set *set = key_set_new(list->nr);
	int rc;

	free_ended(keys, tenants);
	memcpy(before, keys->tenant, sizeof(before));
	rc = set ? fill_set(keys, list, set, error) :
		   weir_error_set(error, -ENOMEM, "out of memory");
	if (!rc)
		rc = weir_donor_keys_set(tenants->donor, set->key, set->nr, error);
	if (rc) {
		memcpy(keys->tenant, before, sizeof(before));
		key_set_put(set);
		key_list_free(list);
		return rc;
	}
	log_changes(keys->list, list);
	key_list_free(keys->list);
	keys->list = list;
	*out = set;
	return 0;
}

static bool is_pool_key(const struct key_entry *entry)
{
	return entry->rights & WEIR_RIGHT_POOL && !entry->is_old;
}

/* The part of a refused list @new that needs nothing more. Return: NULL: out of memory. */
static struct key_list *keep_common(const struct key_list *old, const struct key_list *new,
				    bool for_pool)
{
	struct key_list *kept = key_list_new();

	for (unsigned int i = 0; kept && i < old->nr; i++) {
		const struct key_entry *entry = &old->entry[i], *now = find_key(new, entry);
		struct key_entry *copy = &kept->entry[kept->nr];
		bool stays = for_pool && is_pool_key(entry);

		if (!stays && (!now || strcmp(now->tenant, entry->tenant)))
			continue;
		*copy = *entry;
		kept->nr++;
		if (stays)
			continue;
		copy->rights &= now->rights;
		if (now->quota && (!copy->quota || now->quota < copy->quota))
			copy->quota = now->quota;
	}
	return kept;
}

/* Says so if the pool's key is not in the list, and stays all the same. */
static void name_kept(const struct key_list *old, const struct key_list *new,
		      struct weir_error *error)
{
	size_t at = strlen(error->text);

	for (unsigned int i = 0; i < old->nr; i++)
		if (is_pool_key(&old->entry[i]) && !find_key(new, &old->entry[i]))
			snprintf(error->text + at, sizeof(error->text) - at,
				 "; until another key has it, '%s' stays", old->entry[i].name);
}

int donor_keys_reload(struct donor_keys *keys, const char *path, bool for_pool,
		      struct fs_tenants *tenants, struct key_set **set, struct key_list_id *id,
		      struct weir_error *error)
{
	struct key_list *list = NULL, *kept;
	int rc = read_file(path, &list, id, error);

	*set = NULL;
	if (rc)
		return rc;
	kept = keep_common(keys->list, list, for_pool);
	rc = for_pool ? check_pool(path, list, error) : 0;
	if (rc) {
		name_kept(keys->list, list, error);
		key_list_free(list);
	} else {
		rc = donor_keys_set(keys, list, tenants, set, error);
	}
	if (rc && kept)
		(void)donor_keys_set(keys, kept, tenants, set, NULL);
	else
		key_list_free(kept);
	return rc;
}

void donor_keys_fini(struct donor_keys *keys)
{
	key_list_free(keys->list);
	memset(keys, 0, sizeof(*keys));
}
