/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: mount names; suites: fs */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "apps/mount/mount.h"

#define PHASE 2u

static struct mount m;
static struct inode dir, other;

bool sharing_knows(const struct sharing *share, unsigned int phase)
{
	return phase == atomic_load(&share->phase);
}

static void begin_phase(unsigned int phase)
{
	atomic_store(&m.share.phase, phase);
}

static int setup(void **state)
{
	(void)state;
	dir = (struct inode){ .mount = &m, .ino = 5 };
	other = (struct inode){ .mount = &m, .ino = 6 };
	begin_phase(PHASE);
	return names_init(&m.names);
}

static int teardown(void **state)
{
	(void)state;
	names_drop(&dir);
	names_drop(&other);
	assert_int_equal(m.names.table.nr, 0);
	names_fini(&m.names);
	return 0;
}

/* Return: the name's inode, 0 if it is absent, -1 if unknown. */
static int64_t ask(struct inode *in, const char *name)
{
	uint64_t ino = 0;

	switch (names_find(in, name, &ino)) {
	case NAMES_PRESENT:
		return (int64_t)ino;
	case NAMES_ABSENT:
		return 0;
	default:
		return -1;
	}
}

static void a_name_is_known_where_it_was_learned(void **state)
{
	(void)state;
	assert_int_equal(ask(&dir, "a"), -1);
	names_learn(&dir, names_note_question(&dir), PHASE, "a", 7);
	assert_int_equal(ask(&dir, "a"), 7);
	assert_int_equal(ask(&dir, "b"), -1);
	assert_int_equal(ask(&other, "a"), -1);
	names_learn(&dir, names_note_question(&dir), PHASE, "a", 8);
	assert_int_equal(ask(&dir, "a"), 8);
}

static void a_new_directory_has_no_names(void **state)
{
	char longest[FS_NAME_MAX + 2] = "";

	(void)state;
	names_begin_empty(&dir, PHASE);
	assert_int_equal(ask(&dir, "a"), 0);
	names_begin_change(&dir);
	names_add(&dir, PHASE, "a", 7);
	names_end_change(&dir);
	assert_int_equal(ask(&dir, "a"), 7);
	assert_int_equal(ask(&dir, "b"), 0);
	memset(longest, 'n', FS_NAME_MAX);
	assert_int_equal(ask(&dir, longest), 0);
	longest[FS_NAME_MAX] = 'n';
	assert_int_equal(ask(&dir, longest), -1);
	names_begin_change(&dir);
	names_remove(&dir, "a");
	names_end_change(&dir);
	assert_int_equal(ask(&dir, "a"), 0);
}

static void a_full_listing_tells_what_is_absent(void **state)
{
	const struct names_ticket ticket = names_note_question(&dir);

	(void)state;
	names_learn(&dir, ticket, PHASE, "a", 7);
	names_learn_all(&dir, ticket, PHASE);
	assert_int_equal(ask(&dir, "a"), 7);
	assert_int_equal(ask(&dir, "b"), 0);
}

static void nothing_is_known_during_a_change(void **state)
{
	(void)state;
	names_begin_empty(&dir, PHASE);
	names_begin_change(&dir);
	names_begin_change(&dir);
	assert_int_equal(ask(&dir, "a"), -1);
	names_end_change(&dir);
	assert_int_equal(ask(&dir, "a"), -1);
	names_learn(&dir, names_note_question(&dir), PHASE, "a", 7);
	names_end_change(&dir);
	assert_int_equal(ask(&dir, "a"), 0);
}

static void a_reply_that_a_change_overtook_says_nothing(void **state)
{
	const struct names_ticket ticket = names_note_question(&dir);

	(void)state;
	names_begin_change(&dir);
	names_add(&dir, PHASE, "b", 8);
	names_remove(&dir, "a");
	names_end_change(&dir);
	names_learn(&dir, ticket, PHASE, "a", 7);
	names_learn_all(&dir, ticket, PHASE);
	assert_int_equal(ask(&dir, "a"), -1);
	assert_int_equal(ask(&dir, "b"), 8);
}

static void knowledge_ends_with_its_phase(void **state)
{
	struct names_ticket ticket;

	(void)state;
	names_begin_empty(&dir, PHASE);
	names_learn(&dir, names_note_question(&dir), PHASE, "a", 7);
	begin_phase(SHARING_NO_PHASE);
	assert_int_equal(ask(&dir, "a"), -1);
	begin_phase(PHASE + 2);
	assert_int_equal(ask(&dir, "a"), -1);
	ticket = names_note_question(&dir);
	names_learn(&dir, ticket, PHASE, "c", 9); /* a late reply */
	names_learn(&dir, ticket, PHASE + 2, "b", 8);
	assert_int_equal(ask(&dir, "b"), 8);
	assert_int_equal(ask(&dir, "a"), -1);
	assert_int_equal(ask(&dir, "c"), -1);
}

static void a_change_of_an_unknown_phase_forgets(void **state)
{
	(void)state;
	names_begin_empty(&dir, PHASE);
	names_begin_change(&dir);
	names_add(&dir, SHARING_NO_PHASE, "a", 7);
	names_end_change(&dir);
	assert_int_equal(ask(&dir, "a"), -1);
	assert_int_equal(ask(&dir, "b"), -1);
}

static void a_listing_across_phases_does_not_tell_all_names(void **state)
{
	const struct names_ticket ticket = names_note_question(&dir);

	(void)state;
	names_learn(&dir, ticket, PHASE, "a", 7);
	begin_phase(PHASE + 2); /* as sharing_forget() does */
	names_learn(&dir, ticket, PHASE + 2, "b", 8);
	names_learn_all(&dir, ticket, PHASE + 2);
	assert_int_equal(ask(&dir, "a"), -1);
	assert_int_equal(ask(&dir, "c"), -1);
}

static void what_is_forgotten_in_mid_listing_is_not_absent(void **state)
{
	const struct names_ticket ticket = names_note_question(&dir);

	(void)state;
	names_learn(&dir, ticket, PHASE, "a", 7);
	names_drop(&dir);
	names_learn(&dir, ticket, PHASE, "b", 8);
	names_learn_all(&dir, ticket, PHASE);
	assert_int_equal(ask(&dir, "a"), -1);
}

/* More names than the mount keeps, that is, 2^19. */
static void too_many_names_are_unknown_not_absent(void **state)
{
	const struct names_ticket ticket = names_note_question(&dir);
	char name[16];

	(void)state;
	for (unsigned int i = 0; i < (1u << 19) + 5; i++) {
		snprintf(name, sizeof(name), "%u", i);
		names_learn(&dir, ticket, PHASE, name, i + 1);
	}
	names_learn_all(&dir, ticket, PHASE);
	assert_int_equal(ask(&dir, "1"), -1);
}

static void many_misses_are_worth_a_listing(void **state)
{
	unsigned int small = 1, large = 1;

	(void)state;
	while (!names_count_miss(&dir, 10))
		small++;
	while (!names_count_miss(&other, 10000))
		large++;
	assert_int_equal(small, 2);
	assert_int_equal(large, 200);
	assert_false(names_count_miss(&dir, 10));
}

/* Their listing would take too many replies to become complete. */
static void no_misses_are_worth_a_listing_of_many_names(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 5000; i++)
		assert_false(names_count_miss(&dir, 50000));
}

static void many_names_are_found(void **state)
{
	char name[16];

	(void)state;
	names_begin_empty(&dir, PHASE);
	for (unsigned int i = 1; i <= 5000; i++) {
		snprintf(name, sizeof(name), "%u", i);
		names_add(&dir, PHASE, name, i);
		names_add(&other, PHASE, name, i + 1);
	}
	for (unsigned int i = 1; i <= 5000; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(ask(&dir, name), i);
		assert_int_equal(ask(&other, name), i + 1);
	}
	names_drop(&dir);
	assert_int_equal(ask(&dir, "1"), -1);
	assert_int_equal(ask(&other, "1"), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_name_is_known_where_it_was_learned),
		TEST(a_new_directory_has_no_names),
		TEST(a_full_listing_tells_what_is_absent),
		TEST(nothing_is_known_during_a_change),
		TEST(a_reply_that_a_change_overtook_says_nothing),
		TEST(knowledge_ends_with_its_phase),
		TEST(a_change_of_an_unknown_phase_forgets),
		TEST(a_listing_across_phases_does_not_tell_all_names),
		TEST(what_is_forgotten_in_mid_listing_is_not_absent),
		TEST(too_many_names_are_unknown_not_absent),
		TEST(many_misses_are_worth_a_listing),
		TEST(no_misses_are_worth_a_listing_of_many_names),
		TEST(many_names_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
