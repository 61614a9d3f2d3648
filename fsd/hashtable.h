/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hash table with intrusive links. It grows by itself; without memory to grow, it becomes slower.
 * The caller computes hashes and compares keys.
 */
#ifndef WEIR_FSD_HASHTABLE_H
#define WEIR_FSD_HASHTABLE_H

#include <stdint.h>

struct fsd_hash_node {
	struct fsd_hash_node *next;
	uint64_t hash;
};

struct fsd_hashtable {
	struct fsd_hash_node **bucket;
	uint64_t mask; /* number of buckets - 1 */
	uint64_t nr;
};

int fsd_hashtable_init(struct fsd_hashtable *table); /* 0; -ENOMEM */
void fsd_hashtable_fini(struct fsd_hashtable *table); /* does not touch the objects */
void fsd_hashtable_add(struct fsd_hashtable *table, struct fsd_hash_node *link, uint64_t hash);
void fsd_hashtable_remove(struct fsd_hashtable *table, struct fsd_hash_node *link);

/* Iterate over the objects with the same hash; NULL at the end. */
struct fsd_hash_node *fsd_hashtable_first(const struct fsd_hashtable *table, uint64_t hash);
struct fsd_hash_node *fsd_hashtable_next(const struct fsd_hash_node *link);

#endif
