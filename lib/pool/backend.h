/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a kind of store implements: see store.h for the meaning of each function. */
#ifndef WEIR_LIB_POOL_BACKEND_H
#define WEIR_LIB_POOL_BACKEND_H

#include "core/pool/map.h"
#include "lib/pool/store.h"

struct weir_pool_backend {
	void (*close)(struct weir_pool_store *store);
	int (*list)(struct weir_pool_store *store, const char *prefix,
		    struct weir_pool_listing *listing, struct weir_error *error);
	int (*put)(struct weir_pool_store *store, const struct weir_pool_put *put,
		   uint64_t *version, struct weir_error *error);
	int (*grant)(struct weir_pool_store *store, uint32_t ttl_ms, uint64_t *lease,
		     struct weir_error *error);
	int (*keep)(struct weir_pool_store *store, uint64_t lease, struct weir_error *error);
	int (*revoke)(struct weir_pool_store *store, uint64_t lease, struct weir_error *error);
	int (*wait)(struct weir_pool_store *store, uint64_t revision, unsigned int timeout_ms,
		    struct weir_error *error);
};

/* The beginning of each kind of store. */
struct weir_pool_store {
	const struct weir_pool_backend *backend;
	char name[WEIR_POOL_NAME_MAX];
};

/* @where: behind "file:" and "etcd:". */
int weir_pool_file_open(const char *where, struct weir_pool_store **store,
			struct weir_error *error);
int weir_pool_etcd_open(const char *where, struct weir_pool_store **store,
			struct weir_error *error);

/* Appends copies of @key and @value. Return: 0; -ENOMEM. */
int weir_pool_listing_add(struct weir_pool_listing *listing, const char *key, const char *value,
			  uint64_t version);

/* Sorts the keys. */
void weir_pool_listing_sort(struct weir_pool_listing *listing);

#endif
