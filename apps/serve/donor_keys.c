/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/donor_keys.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "apps/serve/log.h"
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
	for (unsigned int i = 0; i < old->nr; i++)
		if (!find_key(new, &old->entry[i]))
			log_key("revoked", &old->entry[i]);
	for (unsigned int i = 0; i < new->nr; i++) {
		const struct key_entry *before = find_key(old, &new->entry[i]);

		if (!before)
			log_key("added", &new->entry[i]);
		else if (memcmp(before, &new->entry[i], sizeof(*before)))
			log_key("changed", &new->entry[i]);
	}
}

static int set_keys(struct donor_keys *keys, const struct key_list *list,
		    struct fs_tenants *tenants, struct weir_error *error)
{
	struct weir_donor_key *set = calloc(KEY_LIST_MAX, sizeof(*set));
	struct weir_key *key = calloc(KEY_LIST_MAX, sizeof(*key));
	int rc = set && key ? 0 : weir_error_set(error, -ENOMEM, "out of memory");

	for (unsigned int i = 0; i < list->nr && !rc; i++) {
		key_list_key(&list->entry[i], &key[i]);
		set[i] = (struct weir_donor_key){ .key = &key[i],
						  .rights = list->entry[i].rights,
						  .bytes_max = list->entry[i].quota };
		if (!number_of(keys, list->entry[i].tenant, &set[i].tenant))
			rc = weir_error_set(error, -ENOSPC,
					    "%d tenants at once are the most: restart the donor",
					    DONOR_TENANTS_MAX);
	}
	if (!rc)
		rc = weir_donor_keys_set(tenants->donor, set, list->nr, error);
	if (key)
		sodium_memzero(key, KEY_LIST_MAX * sizeof(*key));
	free(key);
	free(set);
	return rc;
}

int donor_keys_load(struct donor_keys *keys, const char *path, struct fs_tenants *tenants,
		    struct weir_error *error)
{
	struct key_list *new = calloc(1, sizeof(*new));
	int rc = new ? key_list_read(path, new, error) :
		       weir_error_set(error, -ENOMEM, "out of memory");

	if (!rc) {
		free_ended(keys, tenants);
		rc = set_keys(keys, new, tenants, error);
	}
	if (!rc) {
		log_changes(&keys->list, new);
		keys->list = *new;
	}
	if (new)
		key_list_wipe(new);
	free(new);
	return rc;
}
