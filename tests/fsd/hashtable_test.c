/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A table grows without a long step, and loses no object meanwhile. */
#include <stdlib.h>

#include "fsd/hashtable.h"
#include "tests/support/cmocka_all.h"

#define OBJECTS 200000u
#define LIST_MAX 32u /* with hashes as good as random, 12 in a table of this size */

static struct fsd_hash_node node[OBJECTS];
static bool has_no_memory;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	return has_no_memory ? NULL : __real_calloc(count, size);
}

static uint64_t hash_of(uint64_t number)
{
	number *= 0x9e3779b97f4a7c15;
	number ^= number >> 32;
	return number * 0xd6e8feb86659fd93;
}

static bool has(const struct fsd_hashtable *table, uint64_t number)
{
	struct fsd_hash_node *link = fsd_hashtable_first(table, hash_of(number));

	while (link && link != &node[number])
		link = fsd_hashtable_next(link);
	return link;
}

static uint64_t length_of(const struct fsd_hash_node *link)
{
	uint64_t length = 0;

	for (; link; link = link->next)
		length++;
	return length;
}

static void add_all(struct fsd_hashtable *table)
{
	for (uint64_t i = 0; i < OBJECTS; i++)
		fsd_hashtable_add(table, &node[i], hash_of(i));
}

/* So that a request of one tenant never waits until all names of another have moved. */
static void an_addition_splits_one_bucket_at_most(void **state)
{
	struct fsd_hashtable table;

	(void)state;
	assert_int_equal(fsd_hashtable_init(&table), 0);
	for (uint64_t i = 0; i < OBJECTS; i++) {
		const uint64_t buckets = table.buckets, power = fsd_hashtable_power(&table);
		const uint64_t split = buckets - power,
			       whole = length_of(fsd_hashtable_bucket(&table, split));

		fsd_hashtable_add(&table, &node[i], hash_of(i));
		assert_int_equal(table.buckets, i < buckets ? buckets : buckets + 1);
		assert_true(whole <= LIST_MAX);
	}
	assert_int_equal(table.buckets, OBJECTS);
	fsd_hashtable_fini(&table);
}

static void all_objects_are_found_at_each_size(void **state)
{
	struct fsd_hashtable table;

	(void)state;
	assert_int_equal(fsd_hashtable_init(&table), 0);
	for (uint64_t i = 0; i < OBJECTS; i++) {
		fsd_hashtable_add(&table, &node[i], hash_of(i));
		assert_true(has(&table, i));
		assert_true(has(&table, hash_of(i) % (i + 1)));
	}
	for (uint64_t i = 0; i < OBJECTS; i += 2)
		fsd_hashtable_remove(&table, &node[i]);
	for (uint64_t i = 0; i < OBJECTS; i++)
		assert_int_equal(has(&table, i), i % 2);
	assert_int_equal(table.nr, OBJECTS / 2);
	fsd_hashtable_fini(&table);
}

/* All objects with the same last bits, and no others. */
static void buckets_hold_what_their_header_says(void **state)
{
	struct fsd_hashtable table;
	uint64_t found = 0;

	(void)state;
	assert_int_equal(fsd_hashtable_init(&table), 0);
	add_all(&table);
	const uint64_t power = fsd_hashtable_power(&table);

	assert_true(power <= table.buckets && table.buckets < 2 * power);
	for (uint64_t i = 0; i < table.buckets; i++) {
		const struct fsd_hash_node *link = fsd_hashtable_bucket(&table, i);

		assert_true(length_of(link) <= LIST_MAX);
		for (; link; link = link->next, found++)
			assert_int_equal(link->hash % power, i % power);
	}
	assert_int_equal(found, OBJECTS);
	fsd_hashtable_fini(&table);
}

static void without_memory_it_grows_later(void **state)
{
	struct fsd_hashtable table;

	(void)state;
	assert_int_equal(fsd_hashtable_init(&table), 0);
	has_no_memory = true;
	for (uint64_t i = 0; i < 1000; i++)
		fsd_hashtable_add(&table, &node[i], hash_of(i));
	assert_int_equal(table.buckets, 64);
	has_no_memory = false;
	for (uint64_t i = 1000; i < 3000; i++)
		fsd_hashtable_add(&table, &node[i], hash_of(i));
	for (uint64_t i = 0; i < 3000; i++)
		assert_true(has(&table, i));
	assert_int_equal(table.buckets, 3000);
	fsd_hashtable_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_addition_splits_one_bucket_at_most),
		cmocka_unit_test(all_objects_are_found_at_each_size),
		cmocka_unit_test(buckets_hold_what_their_header_says),
		cmocka_unit_test(without_memory_it_grows_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
