/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The keys of a donor that reads them from a list: at its start and at SIGHUP. */
#ifndef WEIR_APPS_SERVE_DONOR_KEYS_H
#define WEIR_APPS_SERVE_DONOR_KEYS_H

#include "apps/key/key_list.h"
#include "apps/serve/tenant.h"

#define DONOR_TENANTS_MAX KEY_LIST_MAX

/**
 * struct donor_keys - the list, as the donor has it
 * @tenant: names by number; "" is free
 */
struct donor_keys {
	struct key_list list;
	char tenant[DONOR_TENANTS_MAX][KEY_LIST_NAME];
};

/**
 * donor_keys_load() - read the list, and let the donor have those keys and no others
 *
 * Logs each change. Context: the thread that opened the donor.
 *
 * Return: 0; a negative errno: nothing has changed.
 */
int donor_keys_load(struct donor_keys *keys, const char *path, struct fs_tenants *tenants,
		    struct weir_error *error);

#endif
