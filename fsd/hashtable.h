/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hash table with its links inside the objects. It grows by itself; when there is no memory
 * for that, it gets slower instead. The caller hashes, and compares.
 */
#ifndef WEIR_FSD_HASHTABLE_H
#define WEIR_FSD_HASHTABLE_H

#include <stdint.h>

struct fsd_link {
	struct fsd_link *next;
	uint64_t hash;
};

struct fsd_table {
	struct fsd_link **bucket;
	uint64_t mask; /* buckets less one */
	uint64_t nr;
};

int fsd_table_init(struct fsd_table *table); /* 0; -ENOMEM */
void fsd_table_fini(struct fsd_table *table); /* leaves the objects alone */
void fsd_table_add(struct fsd_table *table, struct fsd_link *link, uint64_t hash);
void fsd_table_remove(struct fsd_table *table, struct fsd_link *link);

/* The objects of one hash, one after the other; NULL at the end. */
struct fsd_link *fsd_table_first(const struct fsd_table *table, uint64_t hash);
struct fsd_link *fsd_table_next(const struct fsd_link *link);

#endif
