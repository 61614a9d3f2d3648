/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fsd/hashtable.h"

#define MIN_SHIFT 6
#define BUCKETS_MIN (1u << MIN_SHIFT)

static unsigned int top_bit(uint64_t number)
{
	return 63u - (unsigned int)__builtin_clzll(number);
}

/* The first segment has the buckets below BUCKETS_MIN. */
static unsigned int segment_of(uint64_t bucket)
{
	return bucket < BUCKETS_MIN ? 0 : top_bit(bucket) - MIN_SHIFT + 1;
}

static struct fsd_hash_node **place_of(const struct fsd_hashtable *table, uint64_t bucket)
{
	unsigned int segment = segment_of(bucket);

	return &table->segment[segment][segment ? bucket - (1ull << top_bit(bucket)) : bucket];
}

uint64_t fsd_hashtable_power(const struct fsd_hashtable *table)
{
	return 1ull << top_bit(table->buckets);
}

/* An object of a bucket that has been split may be in the new half. */
static struct fsd_hash_node **place_of_hash(const struct fsd_hashtable *table, uint64_t hash)
{
	uint64_t power = fsd_hashtable_power(table), bucket = hash & (2 * power - 1);

	return place_of(table, bucket < table->buckets ? bucket : bucket & (power - 1));
}

int fsd_hashtable_init(struct fsd_hashtable *table)
{
	memset(table, 0, sizeof(*table));
	table->segment[0] = calloc(BUCKETS_MIN, sizeof(struct fsd_hash_node *));
	if (!table->segment[0])
		return -ENOMEM;
	table->buckets = BUCKETS_MIN;
	return 0;
}

void fsd_hashtable_fini(struct fsd_hashtable *table)
{
	for (unsigned int i = 0; i < FSD_HASHTABLE_SEGMENTS; i++)
		free(table->segment[i]);
}

static void push_node(struct fsd_hashtable *table, struct fsd_hash_node *link)
{
	struct fsd_hash_node **place = place_of_hash(table, link->hash);

	link->next = *place;
	*place = link;
}

/* Whether there is memory for bucket @table->buckets. */
static int has_room(struct fsd_hashtable *table)
{
	unsigned int segment = segment_of(table->buckets);

	if (!table->segment[segment]) /* calloc: the kernel zeroes a large one page by page */
		table->segment[segment] = calloc(table->buckets, sizeof(struct fsd_hash_node *));
	return table->segment[segment] != NULL;
}

static void split_next(struct fsd_hashtable *table)
{
	struct fsd_hash_node **from, *link, *next;

	if (!has_room(table))
		return;
	from = place_of(table, table->buckets - fsd_hashtable_power(table));
	link = *from;
	*from = NULL;
	table->buckets++;
	for (; link; link = next) {
		next = link->next;
		push_node(table, link);
	}
}

void fsd_hashtable_add(struct fsd_hashtable *table, struct fsd_hash_node *link, uint64_t hash)
{
	/* twice if there was no memory for earlier splits */
	for (unsigned int i = 0; i < 2 && table->nr >= table->buckets; i++)
		split_next(table);
	link->hash = hash;
	push_node(table, link);
	table->nr++;
}

void fsd_hashtable_remove(struct fsd_hashtable *table, struct fsd_hash_node *link)
{
	struct fsd_hash_node **at = place_of_hash(table, link->hash);

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
	return first_of_hash(*place_of_hash(table, hash), hash);
}

struct fsd_hash_node *fsd_hashtable_next(const struct fsd_hash_node *link)
{
	return first_of_hash(link->next, link->hash);
}

struct fsd_hash_node *fsd_hashtable_bucket(const struct fsd_hashtable *table, uint64_t bucket)
{
	return *place_of(table, bucket);
}
