/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hash table with intrusive links. It grows by itself; without memory to grow, it becomes slower.
 * The caller computes hashes and compares keys.
 *
 * It grows by linear hashing: an addition to a full table splits one bucket in two, in order. So no
 * addition moves more objects than a bucket has, however large the table is, and no request waits
 * for all names of a tenant to move. Buckets lie in segments that never move, each as long as all
 * before it.
 */
#ifndef WEIR_FSD_HASHTABLE_H
#define WEIR_FSD_HASHTABLE_H

#include <stdint.h>

#define FSD_HASHTABLE_SEGMENTS 48 /* more than memory has room for */

struct fsd_hash_node {
	struct fsd_hash_node *next;
	uint64_t hash;
};

struct fsd_hashtable {
	struct fsd_hash_node **segment[FSD_HASHTABLE_SEGMENTS];
	uint64_t buckets; /* in use */
	uint64_t nr;
};

int fsd_hashtable_init(struct fsd_hashtable *table); /* 0; -ENOMEM */
void fsd_hashtable_fini(struct fsd_hashtable *table); /* does not touch the objects */
void fsd_hashtable_add(struct fsd_hashtable *table, struct fsd_hash_node *link, uint64_t hash);
void fsd_hashtable_remove(struct fsd_hashtable *table, struct fsd_hash_node *link);

/* Iterate over the objects with the same hash; NULL at the end. */
struct fsd_hash_node *fsd_hashtable_first(const struct fsd_hashtable *table, uint64_t hash);
struct fsd_hash_node *fsd_hashtable_next(const struct fsd_hash_node *link);

/* Iterate over all objects: the first of each bucket below @buckets, and its neighbours. */
struct fsd_hash_node *fsd_hashtable_bucket(const struct fsd_hashtable *table, uint64_t bucket);
/*
 * The greatest power of two that is at most @buckets. The bits of a hash below it are a number i.
 * All objects with the same i are in the buckets i and i + the power, if that bucket exists.
 */
uint64_t fsd_hashtable_power(const struct fsd_hashtable *table);

#endif
