/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where the keys of a pool are kept: a few hundred short texts with versions and leases.
 *
 *	etcd:http://h1:2379,h2:2379/NAME	etcd, by its HTTP and JSON gateway
 *	file:PATH				a file, for the processes of one host
 *
 * Keys are relative to the pool. Each change of any key raises the store's revision; the version of
 * a key is the revision that last changed the key. A key with a lease goes away with the lease.
 *
 * etcd takes user, password and certificates from the environment variables of etcdctl:
 * ETCDCTL_USER ("name:password", or with ETCDCTL_PASSWORD), ETCDCTL_CACERT, ETCDCTL_CERT and
 * ETCDCTL_KEY.
 *
 * All functions return, besides the errors that they name:
 *	-EHOSTUNREACH  the store does not answer; nobody knows whether a change took effect;
 *	-EKEYREJECTED  the store refuses user or password;
 *	-EPERM         the user has no right to do so;
 *	-ENOSPC        the store is full: reads still work;
 *	-EPROTO        the store holds or answers something else;
 *	-EINTR         a signal came during a wait for another process: nothing has changed;
 *	-ENOMEM.
 *
 * Context of all: any thread, one at a time for each store. All may block, for a few seconds.
 */
#ifndef WEIR_LIB_POOL_STORE_H
#define WEIR_LIB_POOL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

struct weir_pool_store;

/**
 * weir_pool_store_open() - open a store, which need not answer yet
 * @where: as above
 * @store: receives the store; the caller owes a weir_pool_store_close()
 * @error: may be NULL
 *
 * Return: also -EINVAL @where is no store; -ENOENT the file's folder does not exist.
 */
int weir_pool_store_open(const char *where, struct weir_pool_store **store,
			 struct weir_error *error);
void weir_pool_store_close(struct weir_pool_store *store);

/* The name of the pool: the last part of @where. */
const char *weir_pool_store_name(const struct weir_pool_store *store);

struct weir_pool_key {
	char *key, *value;
	uint64_t version;
};

/**
 * struct weir_pool_listing - keys at one revision
 * @keys: @count entries, sorted by key
 * @count: number of keys
 * @revision: the store's at the time of the listing
 */
struct weir_pool_listing {
	struct weir_pool_key *keys;
	size_t count;
	uint64_t revision;
};

/**
 * weir_pool_store_list() - read keys
 * @store: the store
 * @prefix: begins the keys to read; "" reads all, a whole key that key and any longer ones
 * @listing: receives them; the caller owes a weir_pool_listing_free()
 * @error: may be NULL
 */
int weir_pool_store_list(struct weir_pool_store *store, const char *prefix,
			 struct weir_pool_listing *listing, struct weir_error *error);
void weir_pool_listing_free(struct weir_pool_listing *listing);

/* Return: the entry of @key, or NULL. */
const struct weir_pool_key *weir_pool_listing_find(const struct weir_pool_listing *listing,
						   const char *key);

#define WEIR_POOL_ANY_VERSION UINT64_MAX

/**
 * struct weir_pool_put - a change of one key
 * @key: the key
 * @value: its new value; NULL removes the key
 * @expected: version that the key must have; 0: it must not exist; WEIR_POOL_ANY_VERSION
 * @lease: the key goes away with this lease; 0: it stays
 * @guard: another key, whose version must be @guard_version; NULL: none
 * @guard_version: a version of @guard
 */
struct weir_pool_put {
	const char *key, *value;
	uint64_t expected, lease;
	const char *guard;
	uint64_t guard_version;
};

/**
 * weir_pool_store_put() - change a key, if versions are as read
 * @store: the store
 * @put: the change
 * @version: receives the key's new version; may be NULL
 * @error: may be NULL
 *
 * Return: also -EAGAIN a version is another; -ESTALE the lease is over. After -EHOSTUNREACH a
 *	repeated call may return -EAGAIN because the first has taken effect.
 */
int weir_pool_store_put(struct weir_pool_store *store, const struct weir_pool_put *put,
			uint64_t *version, struct weir_error *error);

/**
 * weir_pool_store_grant() - begin a lease
 * @store: the store
 * @ttl_ms: how long it lasts without weir_pool_store_keep(); etcd rounds up to seconds
 * @lease: receives its number, never 0
 * @error: may be NULL
 */
int weir_pool_store_grant(struct weir_pool_store *store, uint32_t ttl_ms, uint64_t *lease,
			  struct weir_error *error);

/* Prolongs a lease by its full length. Return: also -ESTALE the lease is over. */
int weir_pool_store_keep(struct weir_pool_store *store, uint64_t lease, struct weir_error *error);

/* Ends a lease at once, and removes its keys. Return: also -ESTALE it was over. */
int weir_pool_store_revoke(struct weir_pool_store *store, uint64_t lease,
			   struct weir_error *error);

/**
 * weir_pool_store_wait() - wait for a change
 * @store: the store
 * @revision: the last listing's
 * @timeout_ms: how long to wait
 * @error: may be NULL
 *
 * Return: 0 a key of the pool may have changed after @revision; -ETIMEDOUT none has.
 */
int weir_pool_store_wait(struct weir_pool_store *store, uint64_t revision,
			 unsigned int timeout_ms, struct weir_error *error);

#endif
