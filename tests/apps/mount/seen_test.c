/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: mount seen */
/* A mount's memory of generations, and the sizes of sealed files. */
#include <search.h>

#include "apps/mount/mount.h"
#include "apps/mount/sealed/seen.h"
#include "apps/mount/sealed/size.h"
#include "tests/support/cmocka_all.h"

static bool has_no_memory;
static unsigned int lines, walks, steps;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void __real_twalk_r(const void *root, void (*visit)(const void *node, VISIT which, void *arg),
		    void *arg);
void __wrap_twalk_r(const void *root, void (*visit)(const void *node, VISIT which, void *arg),
		    void *arg);
void *__real_tfind(const void *key, void *const *root, int (*compare)(const void *, const void *));
void *__wrap_tfind(const void *key, void *const *root, int (*compare)(const void *, const void *));
void __wrap_mount_log(enum weir_log_level level, const char *format, ...);

void *__wrap_calloc(size_t count, size_t size)
{
	return has_no_memory ? NULL : __real_calloc(count, size);
}

void __wrap_twalk_r(const void *root, void (*visit)(const void *node, VISIT which, void *arg),
		    void *arg)
{
	walks++;
	__real_twalk_r(root, visit, arg);
}

void *__wrap_tfind(const void *key, void *const *root, int (*compare)(const void *, const void *))
{
	steps++;
	return __real_tfind(key, root, compare);
}

void __wrap_mount_log(enum weir_log_level level, const char *format, ...)
{
	assert_int_equal(level, WEIR_LOG_ERROR);
	assert_non_null(strstr(format, "id=W511"));
	lines++;
}

static void a_generation_is_remembered(void **state)
{
	struct seen_blocks seen;

	(void)state;
	seen_init(&seen);
	assert_int_equal(seen_find(&seen, 2, 5), 0);
	for (uint64_t block = 0; block < 1000; block++)
		seen_note(&seen, 2 + block % 3, block * block, 100 + block);
	for (uint64_t block = 0; block < 1000; block++)
		assert_int_equal(seen_find(&seen, 2 + block % 3, block * block), 100 + block);
	assert_int_equal(seen_find(&seen, 9, 0), 0);
	seen_fini(&seen);
}

static void an_older_generation_does_not_replace_a_newer(void **state)
{
	struct seen_blocks seen;

	(void)state;
	seen_init(&seen);
	seen_note(&seen, 2, 5, 10);
	seen_note(&seen, 2, 5, 9);
	assert_int_equal(seen_find(&seen, 2, 5), 10);
	seen_note(&seen, 2, 5, 11);
	assert_int_equal(seen_find(&seen, 2, 5), 11);
	seen_fini(&seen);
}

static void a_block_that_was_cut_off_may_be_a_hole(void **state)
{
	struct seen_blocks seen;

	(void)state;
	seen_init(&seen);
	for (uint64_t block = 0; block < 30; block++)
		seen_note(&seen, 2, block, 10);
	seen_note(&seen, 3, 15, 10);
	seen_cut(&seen, 2, 11, 20);
	for (uint64_t block = 0; block < 30; block++)
		assert_true(seen_find(&seen, 2, block) ==
			    (block >= 11 && block < 20 ? 10 | SEEN_MAY_BE_HOLE : 10));
	assert_int_equal(seen_find(&seen, 3, 15), 10);
	seen_note(&seen, 2, 12, 9); /* still too old */
	seen_note(&seen, 2, 12, 10); /* the donor may still cut it off */
	assert_true(seen_find(&seen, 2, 12) == (10 | SEEN_MAY_BE_HOLE));
	seen_note(&seen, 2, 12, 12);
	assert_int_equal(seen_find(&seen, 2, 12), 12);
	seen_fini(&seen);
}

static void a_block_of_a_hole_does_not_come_back(void **state)
{
	struct seen_blocks seen;

	(void)state;
	seen_init(&seen);
	seen_note(&seen, 2, 4, 10);
	seen_note(&seen, 2, 5, 10);
	seen_punch(&seen, 2, 5, 9, 20);
	assert_int_equal(seen_find(&seen, 2, 4), 10);
	for (uint64_t block = 5; block < 9; block++) /* only the first was ever read */
		assert_true(seen_find(&seen, 2, block) == (20 | SEEN_MAY_BE_HOLE));
	assert_int_equal(seen_find(&seen, 2, 9), 0);
	seen_note(&seen, 2, 5, 19);
	assert_true(seen_find(&seen, 2, 5) == (20 | SEEN_MAY_BE_HOLE));
	seen_note(&seen, 2, 5, 21);
	assert_int_equal(seen_find(&seen, 2, 5), 21);
	seen_punch(&seen, 3, 5, 5, 20); /* no block */
	assert_int_equal(seen_find(&seen, 3, 5), 0);
	seen_fini(&seen);
}

static void expect_holes(struct seen_blocks *seen, const char *tens)
{
	for (uint64_t block = 0; block < strlen(tens); block++) {
		uint64_t generation = (uint64_t)(tens[block] - '0') * 10;

		assert_true(seen_find(seen, 2, block) ==
			    (generation ? generation | SEEN_MAY_BE_HOLE : 0));
	}
}

static void a_hole_replaces_parts_of_earlier_ones(void **state)
{
	struct seen_blocks seen;

	(void)state;
	seen_init(&seen);
	seen_punch(&seen, 2, 2, 12, 10);
	expect_holes(&seen, "00111111111100");
	seen_seal(&seen, 2, 3, 11);
	seen_punch(&seen, 2, 5, 7, 20); /* inside */
	expect_holes(&seen, "00111221111100");
	seen_seal(&seen, 2, 3, 21);
	seen_punch(&seen, 2, 0, 3, 30); /* over the start */
	expect_holes(&seen, "33311221111100");
	seen_seal(&seen, 2, 3, 31);
	seen_punch(&seen, 2, 6, 14, 40); /* over the end of two */
	expect_holes(&seen, "33311244444444");
	seen_seal(&seen, 2, 3, 41);
	seen_punch(&seen, 2, 3, 8, 50); /* over all of one */
	expect_holes(&seen, "33355555444444");
	seen_raise(&seen, 2, 4, 60);
	expect_holes(&seen, "33356666666666");
	seen_raise(&seen, 2, 0, 10); /* a clock that goes back */
	assert_true(seen_find(&seen, 2, 0) == (61 | SEEN_MAY_BE_HOLE));
	seen_punch(&seen, 2, 0, 1, 10);
	assert_true(seen_find(&seen, 2, 0) == (62 | SEEN_MAY_BE_HOLE));
	seen_fini(&seen);
}

static void older_slots_do_not_come_back_below_a_floor(void **state)
{
	struct seen_blocks seen;

	(void)state;
	seen_init(&seen);
	seen_note(&seen, 2, 4, 10);
	seen_raise(&seen, 2, 6, 20);
	assert_int_equal(seen_find(&seen, 2, 4), 10);
	assert_int_equal(seen_find(&seen, 2, 5), 0);
	assert_true(seen_find(&seen, 2, 6) == (20 | SEEN_MAY_BE_HOLE));
	seen_note(&seen, 2, 7, 19); /* as a write learns of a slot that it replaces */
	assert_true(seen_find(&seen, 2, 7) == (20 | SEEN_MAY_BE_HOLE));
	seen_note(&seen, 2, 7, 30);
	assert_int_equal(seen_find(&seen, 2, 7), 30);
	seen_raise(&seen, 2, 7, 40); /* behind the floor: only a block with a slot matters */
	assert_true(seen_find(&seen, 2, 6) == (20 | SEEN_MAY_BE_HOLE));
	assert_true(seen_find(&seen, 2, 7) == (40 | SEEN_MAY_BE_HOLE));
	assert_true(seen_find(&seen, 2, 8) == (20 | SEEN_MAY_BE_HOLE));
	seen_seal(&seen, 2, 12, 45); /* The write fails, but the slot may have arrived. */
	seen_raise(&seen, 2, 9, 50);
	assert_true(seen_find(&seen, 2, 12) == (50 | SEEN_MAY_BE_HOLE));
	assert_true(seen_find(&seen, 2, 13) == (20 | SEEN_MAY_BE_HOLE));
	seen_raise(&seen, 2, 0, 25); /* a clock that goes back */
	for (uint64_t block = 0; block < 20; block++)
		assert_true(seen_find(&seen, 2, block) == (51 | SEEN_MAY_BE_HOLE));
	assert_int_equal(seen_find(&seen, 3, 0), 0);
	seen_fini(&seen);
}

static void count_entry(void *arg, const struct seen_entry *entry)
{
	unsigned int *count = arg;

	(void)entry;
	++*count;
}

static void a_file_that_is_gone_keeps_one_number(void **state)
{
	unsigned int count = 0;
	struct seen_blocks seen;

	(void)state;
	seen_init(&seen);
	seen_end(&seen, 2, 5); /* never read: nothing to keep */
	seen_walk(&seen, count_entry, &count);
	assert_int_equal(count, 0);
	for (uint64_t block = 0; block < 1000; block++)
		seen_note(&seen, 2, block, 100 + block);
	seen_end(&seen, 2, 50);
	seen_walk(&seen, count_entry, &count);
	assert_int_equal(count, 1);
	assert_int_equal(seen_find(&seen, 2, 0), 1100); /* not even a hole */
	seen_raise(&seen, 2, 0, 2000); /* the donor uses the number again */
	assert_true(seen_find(&seen, 2, 0) == (2000 | SEEN_MAY_BE_HOLE));
	seen_fini(&seen);
}

static void restore_entry(void *arg, const struct seen_entry *entry)
{
	assert_true(seen_restore(arg, entry));
}

static unsigned int entries_of(struct seen_blocks *seen)
{
	unsigned int count = 0;

	seen_walk(seen, count_entry, &count);
	return count;
}

static void neighbouring_holes_are_one(void **state)
{
	struct seen_blocks seen;

	(void)state;
	seen_init(&seen);
	seen_punch(&seen, 2, 10, 11, 10);
	seen_punch(&seen, 2, 11, 12, 20); /* behind */
	seen_punch(&seen, 2, 9, 10, 30); /* before */
	assert_int_equal(entries_of(&seen), 1);
	expect_holes(&seen, "00000000033300");
	seen_punch(&seen, 2, 5, 6, 40); /* apart */
	seen_punch(&seen, 2, 6, 9, 50); /* between a new one and an old one */
	assert_int_equal(entries_of(&seen), 2);
	expect_holes(&seen, "00000555533300");
	seen_punch(&seen, 2, 0, 20, 60); /* over all */
	assert_int_equal(entries_of(&seen), 1);
	seen_fini(&seen);
}

static void a_slot_sealed_after_a_hole_stays_valid(void **state)
{
	struct seen_blocks seen;

	(void)state;
	seen_init(&seen);
	seen_punch(&seen, 2, 4, 6, 10);
	seen_seal(&seen, 2, 5, 15); /* The write fails, but the slot may have arrived. */
	seen_punch(&seen, 2, 6, 8, 20);
	expect_holes(&seen, "0000112200");
	seen_fini(&seen);
}

static void a_restored_hole_has_no_new_neighbour(void **state)
{
	struct seen_blocks seen, next;

	(void)state;
	seen_init(&seen);
	seen_init(&next);
	seen_punch(&seen, 2, 4, 6, 10);
	seen_seal(&seen, 2, 5, 15); /* the state does not keep it */
	seen_walk(&seen, restore_entry, &next);
	seen_punch(&next, 2, 6, 8, 20);
	expect_holes(&next, "0000112200");
	seen_fini(&next);
	seen_fini(&seen);
}

/* The tree compares with log2(n) others for each block: no punch looks at all pages or holes. */
static void no_hole_looks_at_all_earlier_ones(void **state)
{
	enum { HOLES = 16384 };
	struct seen_blocks seen;
	unsigned int before;

	(void)state;
	seen_init(&seen);
	for (uint64_t block = 0; block < 4 * HOLES; block++)
		seen_note(&seen, 2, block, 10);
	before = walks;
	for (uint64_t i = 0; i < HOLES; i++) {
		seen_cut(&seen, 2, i, i + 1);
		seen_punch(&seen, 2, i, i + 1, 0);
	}
	assert_int_equal(walks, before);
	assert_int_equal(entries_of(&seen), 4 * HOLES / SEEN_PAGE_BLOCKS + 1);
	before = walks;
	for (uint64_t i = 2 * HOLES; i < 4 * HOLES; i += 2) {
		seen_cut(&seen, 2, i, i + 1);
		seen_punch(&seen, 2, i, i + 1, 0);
	}
	assert_int_equal(walks, before);
	assert_int_equal(entries_of(&seen), 4 * HOLES / SEEN_PAGE_BLOCKS + 1 + HOLES);
	seen_fini(&seen);
}

/* Blocks from @first on are cut off. Return: pages that were looked for. */
static unsigned int truncate_steps(struct seen_blocks *seen, uint64_t first)
{
	unsigned int before = steps;

	seen_cut(seen, 2, first, UINT64_MAX);
	seen_raise(seen, 2, first, 0);
	return steps - before;
}

/* A truncation of a file looks at the pages that it ends, and no later truncation does. */
static void no_truncation_looks_at_all_pages(void **state)
{
	enum { PAGES = 4096, FEW = 24 };
	const uint64_t end = PAGES * SEEN_PAGE_BLOCKS;
	struct seen_blocks seen;
	unsigned int before;

	(void)state;
	seen_init(&seen);
	seen_raise(&seen, 2, 0, 1);
	for (uint64_t block = 0; block < end; block++)
		seen_note(&seen, 2, block, 10);
	before = walks;
	for (uint64_t i = 0; i < 2 * SEEN_PAGE_BLOCKS; i++) {
		assert_in_range(truncate_steps(&seen, end + 100 + i % 2), 1, FEW);
		assert_in_range(truncate_steps(&seen, end - i), 1, FEW);
	}
	assert_int_equal(entries_of(&seen), 2 + PAGES - 1);
	before = walks - before;
	assert_in_range(truncate_steps(&seen, 1), PAGES, 4 * PAGES + FEW);
	for (uint64_t i = 0; i < 2 * SEEN_PAGE_BLOCKS; i++)
		assert_in_range(truncate_steps(&seen, 1 + i), 1, FEW);
	assert_int_equal(entries_of(&seen), 3);
	assert_int_equal(before, 3); /* by entries_of(), and by no truncation */
	seen_fini(&seen);
}

enum { MODEL_BLOCKS = 40 };

/* By block: the newest slot that the donor may show, or 0; and the newest that it may not. */
struct model {
	uint64_t valid[MODEL_BLOCKS], gone[MODEL_BLOCKS], clock;
	unsigned int seed;
};

static unsigned int pick(struct model *m, unsigned int below)
{
	m->seed = m->seed * 1103515245u + 12345u;
	return (m->seed >> 16) % below;
}

static void model_hole(struct model *m, uint64_t first, uint64_t end)
{
	for (uint64_t block = first; block < end; block++) {
		if (m->valid[block])
			m->gone[block] = m->valid[block];
		m->valid[block] = 0;
	}
}

static void step_model(struct model *m, struct seen_blocks *seen)
{
	uint64_t first = pick(m, MODEL_BLOCKS), end = first + 1 + pick(m, 5), floor;

	end = end < MODEL_BLOCKS ? end : MODEL_BLOCKS;
	if (!pick(m, 8)) {
		seen_cut(seen, 2, first, UINT64_MAX);
		seen_raise(seen, 2, first, ++m->clock);
		model_hole(m, first, MODEL_BLOCKS);
		return;
	}
	if (pick(m, 3)) {
		seen_cut(seen, 2, first, end);
		seen_punch(seen, 2, first, end, ++m->clock);
		model_hole(m, first, end);
		return;
	}
	floor = seen_seal(seen, 2, first, ++m->clock);
	if (m->clock <= floor) {
		m->clock = floor + 1;
		assert_true(seen_seal(seen, 2, first, m->clock) < m->clock);
	}
	m->valid[first] = m->clock;
	if (pick(m, 2)) /* otherwise the write fails, and the slot arrives */
		seen_note(seen, 2, first, m->clock);
}

/* Restores @seen from what a walk gives, as the next mount does. */
static void remount(struct seen_blocks *seen)
{
	struct seen_blocks next;

	seen_init(&next);
	seen_walk(seen, restore_entry, &next);
	seen_fini(seen);
	*seen = next;
}

static void holes_refuse_what_a_model_refuses(void **state)
{
	(void)state;
	for (unsigned int seed = 0; seed < 200; seed++) {
		struct model m = { .seed = seed };
		struct seen_blocks seen;

		seen_init(&seen);
		for (unsigned int step = 0; step < 200; step++) {
			step_model(&m, &seen);
			if (!pick(&m, 20))
				remount(&seen);
			for (uint64_t block = 0; block < MODEL_BLOCKS; block++) {
				uint64_t found = seen_find(&seen, 2, block) & ~SEEN_MAY_BE_HOLE;

				assert_true(!m.gone[block] || found > m.gone[block]);
				assert_true(!m.valid[block] || found <= m.valid[block]);
			}
		}
		seen_fini(&seen);
	}
}

static void floors_outlast_a_mount(void **state)
{
	struct seen_blocks seen, next;

	(void)state;
	seen_init(&seen);
	seen_init(&next);
	seen_note(&seen, 2, 1, 10);
	seen_raise(&seen, 2, 3, 20);
	seen_punch(&seen, 2, 1, 6, 25);
	seen_punch(&seen, 2, 8, 9, 26);
	seen_note(&seen, 3, 0, 10);
	seen_end(&seen, 3, 20);
	seen_walk(&seen, restore_entry, &next);
	for (uint64_t ino = 1; ino < 5; ino++)
		for (uint64_t block = 0; block < 20; block++)
			assert_true(seen_find(&next, ino, block) == seen_find(&seen, ino, block));
	assert_int_equal(seen_find(&next, 3, 0), 20);
	assert_true(seen_find(&next, 2, 8) == (26 | SEEN_MAY_BE_HOLE));
	seen_fini(&next);
	seen_fini(&seen);
}

static void the_stored_size_tells_the_size(void **state)
{
	(void)state;
	for (uint64_t size = 0; size < 20000; size++) {
		assert_int_equal(sealed_size(sealed_stored_size(size)), size);
		assert_true(sealed_stored_size(size) < sealed_stored_size(size + 1));
	}
	assert_int_equal(sealed_size(sealed_stored_size(SEALED_FILE_MAX)), SEALED_FILE_MAX);
	assert_true(sealed_stored_size(SEALED_FILE_MAX) <= INT64_MAX - FS_BLOCK);
	/* A donor may say any size. */
	assert_int_equal(sealed_size(SEALED_HEAD), 0);
	assert_true(sealed_size(UINT64_MAX) < UINT64_MAX);
}

static void a_lost_generation_is_logged_once(void **state)
{
	struct seen_blocks seen;

	(void)state;
	seen_init(&seen);
	seen_note(&seen, 2, 1, 5);
	has_no_memory = true;
	seen_note(&seen, 2, 2, 6); /* of the same page */
	assert_int_equal(lines, 0);
	seen_note(&seen, 3, 1, 7);
	assert_int_equal(lines, 1);
	seen_note(&seen, 4, 1, 8);
	assert_int_equal(lines, 1);
	has_no_memory = false;
	assert_int_equal(seen_find(&seen, 2, 1), 5);
	assert_int_equal(seen_find(&seen, 2, 2), 6);
	assert_int_equal(seen_find(&seen, 3, 1), 0);
	has_no_memory = true;
	seen_raise(&seen, 5, 0, 9);
	has_no_memory = false;
	assert_int_equal(lines, 1);
	assert_int_equal(seen_find(&seen, 5, 0), 0);
	seen_fini(&seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lost_generation_is_logged_once),
		cmocka_unit_test(a_generation_is_remembered),
		cmocka_unit_test(an_older_generation_does_not_replace_a_newer),
		cmocka_unit_test(a_block_that_was_cut_off_may_be_a_hole),
		cmocka_unit_test(a_block_of_a_hole_does_not_come_back),
		cmocka_unit_test(a_hole_replaces_parts_of_earlier_ones),
		cmocka_unit_test(older_slots_do_not_come_back_below_a_floor),
		cmocka_unit_test(a_file_that_is_gone_keeps_one_number),
		cmocka_unit_test(floors_outlast_a_mount),
		cmocka_unit_test(neighbouring_holes_are_one),
		cmocka_unit_test(a_slot_sealed_after_a_hole_stays_valid),
		cmocka_unit_test(a_restored_hole_has_no_new_neighbour),
		cmocka_unit_test(no_hole_looks_at_all_earlier_ones),
		cmocka_unit_test(no_truncation_looks_at_all_pages),
		cmocka_unit_test(holes_refuse_what_a_model_refuses),
		cmocka_unit_test(the_stored_size_tells_the_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
