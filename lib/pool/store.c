/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/pool/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/pool/backend.h"

int weir_pool_store_open(const char *where, struct weir_pool_store **store,
			 struct weir_error *error)
{
	if (!strncmp(where, "file:", 5))
		return weir_pool_file_open(where + 5, store, error);
	if (!strncmp(where, "etcd:", 5))
		return weir_pool_etcd_open(where + 5, store, error);
	return weir_error_set(error, -EINVAL,
			      "%s: no place of a pool; expected file:PATH or "
			      "etcd:http://HOST:2379/NAME",
			      where);
}

void weir_pool_store_close(struct weir_pool_store *store)
{
	if (store)
		store->backend->close(store);
}

const char *weir_pool_store_name(const struct weir_pool_store *store)
{
	return store->name;
}

int weir_pool_store_list(struct weir_pool_store *store, const char *prefix,
			 struct weir_pool_listing *listing, struct weir_error *error)
{
	struct weir_pool_listing read = { 0 };
	int rc = store->backend->list(store, prefix, &read, error);

	if (rc) {
		weir_pool_listing_free(&read);
		return rc;
	}
	weir_pool_listing_sort(&read);
	*listing = read;
	return 0;
}

void weir_pool_listing_free(struct weir_pool_listing *listing)
{
	for (size_t i = 0; i < listing->count; i++) {
		free(listing->keys[i].key);
		free(listing->keys[i].value);
	}
	free(listing->keys);
	*listing = (struct weir_pool_listing){ 0 };
}

static int compare_keys(const void *a, const void *b)
{
	const struct weir_pool_key *x = a, *y = b;

	return strcmp(x->key, y->key);
}

void weir_pool_listing_sort(struct weir_pool_listing *listing)
{
	if (listing->count)
		qsort(listing->keys, listing->count, sizeof(*listing->keys), compare_keys);
}

const struct weir_pool_key *weir_pool_listing_find(const struct weir_pool_listing *listing,
						   const char *key)
{
	struct weir_pool_key wanted = { .key = (char *)key };

	if (!listing->count)
		return NULL;
	return bsearch(&wanted, listing->keys, listing->count, sizeof(*listing->keys),
		       compare_keys);
}

int weir_pool_listing_add(struct weir_pool_listing *listing, const char *key, const char *value,
			  uint64_t version)
{
	/* Grows whenever the count is a power of two. */
	if (!(listing->count & (listing->count - 1))) {
		size_t room = listing->count ? 2 * listing->count : 1;
		void *grown = reallocarray(listing->keys, room, sizeof(*listing->keys));

		if (!grown)
			return -ENOMEM;
		listing->keys = grown;
	}
	listing->keys[listing->count] = (struct weir_pool_key){
		.key = strdup(key),
		.value = strdup(value),
		.version = version,
	};
	/* Counted first, so that weir_pool_listing_free() frees a half-made entry, too. */
	listing->count++;
	if (!listing->keys[listing->count - 1].key || !listing->keys[listing->count - 1].value)
		return -ENOMEM;
	return 0;
}

int weir_pool_store_put(struct weir_pool_store *store, const struct weir_pool_put *put,
			uint64_t *version, struct weir_error *error)
{
	uint64_t stored = 0;
	int rc = store->backend->put(store, put, &stored, error);

	if (!rc && version)
		*version = stored;
	return rc;
}

int weir_pool_store_grant(struct weir_pool_store *store, uint32_t ttl_ms, uint64_t *lease,
			  struct weir_error *error)
{
	return store->backend->grant(store, ttl_ms, lease, error);
}

int weir_pool_store_keep(struct weir_pool_store *store, uint64_t lease, struct weir_error *error)
{
	return store->backend->keep(store, lease, error);
}

int weir_pool_store_revoke(struct weir_pool_store *store, uint64_t lease, struct weir_error *error)
{
	return store->backend->revoke(store, lease, error);
}

int weir_pool_store_wait(struct weir_pool_store *store, uint64_t revision,
			 unsigned int timeout_ms, struct weir_error *error)
{
	return store->backend->wait(store, revision, timeout_ms, error);
}
