/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "fsd/hashtable.h"

#define BUCKETS_MIN 64

int fsd_table_init(struct fsd_table *table)
{
	table->bucket = calloc(BUCKETS_MIN, sizeof(*table->bucket));
	if (!table->bucket)
		return -ENOMEM;
	table->mask = BUCKETS_MIN - 1;
	table->nr = 0;
	return 0;
}

void fsd_table_fini(struct fsd_table *table)
{
	free(table->bucket);
}

static void push(struct fsd_table *table, struct fsd_link *link)
{
	struct fsd_link **bucket = &table->bucket[link->hash & table->mask];

	link->next = *bucket;
	*bucket = link;
}

static void grow(struct fsd_table *table)
{
	struct fsd_table bigger = { .mask = table->mask * 2 + 1 };
	struct fsd_link *link, *next;

	bigger.bucket = calloc(bigger.mask + 1, sizeof(*bigger.bucket));
	if (!bigger.bucket)
		return;
	for (uint64_t i = 0; i <= table->mask; i++) {
		for (link = table->bucket[i]; link; link = next) {
			next = link->next;
			push(&bigger, link);
		}
	}
	free(table->bucket);
	table->bucket = bigger.bucket;
	table->mask = bigger.mask;
}

void fsd_table_add(struct fsd_table *table, struct fsd_link *link, uint64_t hash)
{
	if (table->nr > table->mask)
		grow(table);
	link->hash = hash;
	push(table, link);
	table->nr++;
}

void fsd_table_remove(struct fsd_table *table, struct fsd_link *link)
{
	struct fsd_link **at = &table->bucket[link->hash & table->mask];

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	table->nr--;
}

static struct fsd_link *of_hash(struct fsd_link *link, uint64_t hash)
{
	while (link && link->hash != hash)
		link = link->next;
	return link;
}

struct fsd_link *fsd_table_first(const struct fsd_table *table, uint64_t hash)
{
	return of_hash(table->bucket[hash & table->mask], hash);
}

struct fsd_link *fsd_table_next(const struct fsd_link *link)
{
	return of_hash(link->next, link->hash);
}
