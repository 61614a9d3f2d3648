/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "fsd/hashtable.h"

#define BUCKETS_MIN 64

int fsd_hashtable_init(struct fsd_hashtable *table)
{
	table->bucket = calloc(BUCKETS_MIN, sizeof(*table->bucket));
	if (!table->bucket)
		return -ENOMEM;
	table->mask = BUCKETS_MIN - 1;
	table->nr = 0;
	return 0;
}

void fsd_hashtable_fini(struct fsd_hashtable *table)
{
	free(table->bucket);
}

static void push_node(struct fsd_hashtable *table, struct fsd_hash_node *link)
{
	struct fsd_hash_node **bucket = &table->bucket[link->hash & table->mask];

	link->next = *bucket;
	*bucket = link;
}

static void grow_table(struct fsd_hashtable *table)
{
	struct fsd_hashtable bigger = { .mask = table->mask * 2 + 1 };
	struct fsd_hash_node *link, *next;

	bigger.bucket = calloc(bigger.mask + 1, sizeof(*bigger.bucket));
	if (!bigger.bucket)
		return;
	for (uint64_t i = 0; i <= table->mask; i++) {
		for (link = table->bucket[i]; link; link = next) {
			next = link->next;
			push_node(&bigger, link);
		}
	}
	free(table->bucket);
	table->bucket = bigger.bucket;
	table->mask = bigger.mask;
}

void fsd_hashtable_add(struct fsd_hashtable *table, struct fsd_hash_node *link, uint64_t hash)
{
	if (table->nr > table->mask)
		grow_table(table);
	link->hash = hash;
	push_node(table, link);
	table->nr++;
}

void fsd_hashtable_remove(struct fsd_hashtable *table, struct fsd_hash_node *link)
{
	struct fsd_hash_node **at = &table->bucket[link->hash & table->mask];

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	table->nr--;
}

static struct fsd_hash_node *first_of_hash(struct fsd_hash_node *link, uint64_t hash)
{
	while (link && link->hash != hash)
		link = link->next;
	return link;
}

struct fsd_hash_node *fsd_hashtable_first(const struct fsd_hashtable *table, uint64_t hash)
{
	return first_of_hash(table->bucket[hash & table->mask], hash);
}

struct fsd_hash_node *fsd_hashtable_next(const struct fsd_hash_node *link)
{
	return first_of_hash(link->next, link->hash);
}
