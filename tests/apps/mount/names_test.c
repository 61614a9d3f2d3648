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
		assert_int_not_equal(ino, 0);
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
	names_remove(&dir, PHASE, "a");
	names_end_change(&dir);
	assert_int_equal(ask(&dir, "a"), 0);
}

static void a_full_listing_tells_what_is_absent(void **state)
{
	const struct names_ticket ticket = names_note_question(&dir);

	(void)state;
	names_learn_listed(&dir, ticket, PHASE, "a", 7);
	names_learn_all(&dir, ticket, PHASE);
	assert_int_equal(ask(&dir, "a"), 7);
	assert_int_equal(ask(&dir, "b"), 0);
}

static void a_name_is_known_to_be_absent(void **state)
{
	(void)state;
	names_learn(&dir, names_note_question(&dir), PHASE, "a", 0);
	assert_int_equal(ask(&dir, "a"), 0);
	assert_int_equal(ask(&dir, "b"), -1);
	names_begin_change(&dir);
	names_add(&dir, PHASE, "a", 7);
	names_end_change(&dir);
	assert_int_equal(ask(&dir, "a"), 7);
	names_begin_change(&dir);
	names_remove(&dir, PHASE, "a");
	names_end_change(&dir);
	assert_int_equal(ask(&dir, "a"), 0);
	assert_int_equal(dir.names.absent, 1);
}

/* As of a program that makes files all the time. */
static void a_listing_goes_on_during_changes(void **state)
{
	const struct names_ticket ticket = names_note_question(&dir);

	(void)state;
	names_learn_listed(&dir, ticket, PHASE, "a", 7);
	names_begin_change(&dir);
	names_learn_listed(&dir, ticket, PHASE, "b", 8);
	names_add(&dir, PHASE, "c", 9);
	names_remove(&dir, PHASE, "d");
	names_end_change(&dir);
	assert_true(names_learn_listed(&dir, ticket, PHASE, "c", 5)); /* of before */
	assert_true(names_learn_listed(&dir, ticket, PHASE, "d", 6));
	names_learn_all(&dir, ticket, PHASE);
	assert_int_equal(ask(&dir, "a"), 7);
	assert_int_equal(ask(&dir, "b"), 8);
	assert_int_equal(ask(&dir, "c"), 9);
	assert_int_equal(ask(&dir, "d"), 0);
	assert_int_equal(ask(&dir, "e"), 0);
	assert_int_equal(dir.names.absent, 0);
}

/* More absences than the mount keeps, that is, 1024. */
static void a_listing_ends_with_the_memory_of_absences(void **state)
{
	const struct names_ticket ticket = names_note_question(&dir);
	char name[16];

	(void)state;
	names_begin_change(&dir);
	names_remove(&dir, PHASE, "a");
	names_end_change(&dir);
	for (unsigned int i = 0; i < 1024; i++) {
		snprintf(name, sizeof(name), "%u", i);
		names_learn(&dir, names_note_question(&dir), PHASE, name, 0);
	}
	assert_int_equal(ask(&dir, "a"), -1);
	assert_int_equal(ask(&dir, "1023"), 0);
	assert_false(names_learn_listed(&dir, ticket, PHASE, "a", 7)); /* of before */
	names_learn_all(&dir, ticket, PHASE);
	assert_int_equal(ask(&dir, "a"), -1);
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
	names_remove(&dir, PHASE, "a");
	names_end_change(&dir);
	assert_false(names_learn(&dir, ticket, PHASE, "a", 7));
	assert_false(names_learn(&dir, ticket, PHASE, "b", 0));
	assert_int_equal(ask(&dir, "a"), 0);
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
	names_begin_empty(&dir, PHASE);
	names_begin_change(&dir);
	names_remove(&dir, PHASE - 2, "a");
	names_end_change(&dir);
	assert_int_equal(ask(&dir, "a"), -1);
	assert_int_equal(ask(&dir, "b"), -1);
}

static void a_listing_across_phases_does_not_tell_all_names(void **state)
{
	const struct names_ticket ticket = names_note_question(&dir);

	(void)state;
	names_learn_listed(&dir, ticket, PHASE, "a", 7);
	begin_phase(PHASE + 2); /* as sharing_forget() does */
	names_learn_listed(&dir, ticket, PHASE + 2, "b", 8);
	names_learn_all(&dir, ticket, PHASE + 2);
	assert_int_equal(ask(&dir, "a"), -1);
	assert_int_equal(ask(&dir, "c"), -1);
}

static void what_is_forgotten_in_mid_listing_is_not_absent(void **state)
{
	const struct names_ticket ticket = names_note_question(&dir);

	(void)state;
	names_learn_listed(&dir, ticket, PHASE, "a", 7);
	names_drop(&dir);
	names_learn_listed(&dir, ticket, PHASE, "b", 8);
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
		names_learn_listed(&dir, ticket, PHASE, name, i + 1);
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
	assert_int_equal(large, 100);
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

/* ---- random histories, against a directory ---- */

#define NAMES 6u
#define HISTORIES 2000u
#define STEPS 200u
#define PAGE 2u /* names in a reply to a listing */

/* A call that the donor has handled, or not yet; the client hears of the reply later. */
struct asked {
	bool under_way, handled;
	struct names_ticket ticket;
	unsigned int phase, name;
	uint64_t ino[PAGE];
};

static struct {
	uint64_t random, next_ino;
	uint64_t there[NAMES]; /* the donor's inodes, 0 for none, ... */
	uint64_t here[NAMES]; /* ... and with the client's changes that wait */
	struct asked lookup, listing, change;
	uint64_t changed; /* to what */
	unsigned int complete;
} world;

static unsigned int any(unsigned int below)
{
	world.random = world.random * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)(world.random >> 33) % below;
}

static const char *text(unsigned int name)
{
	static const char *const texts[NAMES] = { "a", "b", "c", "d", "e", "f" };

	return texts[name];
}

/* Each call first tells the donor of the changes that wait. */
static void settle(void)
{
	memcpy(world.there, world.here, sizeof(world.there));
}

static void ask_donor(struct asked *asked, unsigned int name)
{
	settle();
	asked->under_way = true;
	asked->handled = false;
	asked->name = name;
	asked->phase = atomic_load(&m.share.phase);
}

static void step_lookup(void)
{
	struct asked *lookup = &world.lookup;

	if (!lookup->under_way) {
		lookup->ticket = names_note_question(&dir);
		ask_donor(lookup, any(NAMES));
	} else if (!lookup->handled) {
		lookup->ino[0] = world.there[lookup->name];
		lookup->handled = true;
	} else {
		lookup->under_way = false;
		names_learn(&dir, lookup->ticket, lookup->phase, text(lookup->name),
			    lookup->ino[0]);
	}
}

static void step_listing(void)
{
	struct asked *listing = &world.listing;
	bool whole = true;

	if (!listing->under_way) {
		listing->ticket = names_note_question(&dir);
		ask_donor(listing, 0);
	} else if (!listing->handled) {
		memcpy(listing->ino, &world.there[listing->name], sizeof(listing->ino));
		listing->handled = true;
	} else {
		for (unsigned int i = 0; i < PAGE; i++)
			whole = whole && (!listing->ino[i] ||
					  names_learn_listed(&dir, listing->ticket, listing->phase,
							     text(listing->name + i),
							     listing->ino[i]));
		listing->under_way = whole && listing->name + PAGE < NAMES;
		if (listing->under_way)
			ask_donor(listing, listing->name + PAGE);
		else if (whole)
			names_learn_all(&dir, listing->ticket, listing->phase);
		world.complete += dir.names.complete;
	}
}

/* A change by a call: the kernel has one at a time in a directory. */
static void step_change(void)
{
	struct asked *change = &world.change;

	if (!change->under_way) {
		names_begin_change(&dir);
		ask_donor(change, any(NAMES));
		world.changed = any(2) ? world.next_ino++ : 0;
	} else if (!change->handled) {
		world.there[change->name] = world.here[change->name] = world.changed;
		change->handled = true;
	} else {
		change->under_way = false;
		if (world.changed)
			names_add(&dir, change->phase, text(change->name), world.changed);
		else
			names_remove(&dir, change->phase, text(change->name));
		names_end_change(&dir);
	}
}

static bool always(void *arg)
{
	(void)arg;
	return true;
}

/* A change by the client itself. */
static void step_edit(void)
{
	const unsigned int name = any(NAMES);
	struct names_edit edit = { .dir = &dir, .name = text(name), .before = world.here[name] };
	unsigned int phase;

	edit.after = edit.before ? 0 : world.next_ino;
	if (!names_edit(&edit, 1, NULL, always, NULL, &phase))
		return;
	world.here[name] = edit.after;
	world.next_ino++;
}

/* Rarely all is forgotten, or others change names meanwhile. */
static void step_end(void)
{
	if (any(20) == 0)
		names_drop(&dir);
	if (any(20))
		return;
	settle();
	begin_phase(atomic_load(&m.share.phase) + 2);
	world.there[any(NAMES)] = world.next_ino++;
	world.there[any(NAMES)] = 0;
	memcpy(world.here, world.there, sizeof(world.here));
}

static void what_is_known_is_so(void **state)
{
	static void (*const steps[])(void) = { step_lookup, step_listing, step_listing,
					       step_change, step_edit, step_end };

	(void)state;
	for (unsigned int history = 0; history < HISTORIES; history++) {
		memset(&world.there, 0, sizeof(world.there));
		memset(&world.here, 0, sizeof(world.here));
		world.lookup.under_way = world.listing.under_way = world.change.under_way = false;
		world.random = history;
		world.next_ino = 1;
		dir.names.changing = 0;
		names_drop(&dir);
		for (unsigned int i = 0; i < STEPS; i++) {
			steps[any(sizeof(steps) / sizeof(steps[0]))]();
			for (unsigned int name = 0; name < NAMES; name++) {
				const int64_t known = ask(&dir, text(name));

				if (known != -1)
					assert_int_equal(known, world.here[name]);
			}
		}
	}
	assert_true(world.complete > HISTORIES); /* else the histories say little */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_name_is_known_where_it_was_learned),
		TEST(a_new_directory_has_no_names),
		TEST(a_full_listing_tells_what_is_absent),
		TEST(a_name_is_known_to_be_absent),
		TEST(a_listing_goes_on_during_changes),
		TEST(a_listing_ends_with_the_memory_of_absences),
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
		TEST(what_is_known_is_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
