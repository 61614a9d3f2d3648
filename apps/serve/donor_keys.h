/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The keys of a donor that reads them from a list: at its start and at SIGHUP. */
#ifndef WEIR_APPS_SERVE_DONOR_KEYS_H
#define WEIR_APPS_SERVE_DONOR_KEYS_H

#include "apps/key/key_list.h"
#include "apps/serve/key_set.h"
#include "apps/serve/tenant.h"

#define DONOR_TENANTS_MAX KEY_LIST_MAX

/**
 * struct donor_keys - the list, as the donor has it
 * @list: in memory for keys; NULL before the first donor_keys_set()
 * @tenant: names by number; "" is free
 */
struct donor_keys {
	struct key_list *list;
	char tenant[DONOR_TENANTS_MAX][KEY_LIST_NAME];
};

/**
 * donor_keys_read() - read the list from its file, and check it
 * @for_pool: of a donor of a pool: one name must have the right to act for the pool
 * @id: receives which file that was
 * @list: on success, the caller's: for donor_keys_set() or key_list_free()
 *
 * Return: 0; an error of key_list_read(); -ENOMEM; -EINVAL no such name, or several.
 */
int donor_keys_read(const char *path, bool for_pool, struct key_list **list,
		    struct key_list_id *id, struct weir_error *error);

/**
 * donor_keys_set() - let the donor have the list's keys and no others
 * @list: given, on failure too
 * @set: receives the keys, for the donor's other listeners; the caller owes a key_set_put()
 *
 * Logs each change. Context: the thread that opened the donor.
 *
 * Return: 0; a negative errno: nothing has changed.
 */
int donor_keys_set(struct donor_keys *keys, struct key_list *list, struct fs_tenants *tenants,
		   struct key_set **set, struct weir_error *error);

/**
 * donor_keys_reload() - read the list again, and let the donor have it
 * @set: as for donor_keys_set(); NULL: nothing has changed
 *
 * If the list's keys cannot all be admitted, the donor still loses those that are not in the list,
 * and rights that the list does not give. It gets no others. One key stays: the pool's, because
 * without it the memory of volumes would have no owner.
 *
 * Return: 0; a negative errno, also with a @set.
 */
int donor_keys_reload(struct donor_keys *keys, const char *path, bool for_pool,
		      struct fs_tenants *tenants, struct key_set **set, struct key_list_id *id,
		      struct weir_error *error);

/* After the donor has closed. */
void donor_keys_fini(struct donor_keys *keys);

#endif
