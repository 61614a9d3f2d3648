/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The content of the local disk as the last resort, and the way back from disk to memory. */
#include "tests/support/engine_bench.h"
#include "core/volume/extents.h"

#define EXTENTS 2u
#define PAGES 130u

struct extents_local_fixture {
	struct weir_extents v;
	struct weir_extent extents[EXTENTS];
	uint32_t sum[EXTENTS][PAGES];
	uint64_t local[EXTENTS][PAGES / 64 + 1];
};

static const uint32_t sums[PAGES] = { [0 ... PAGES - 1] = 10 };

static void lend(struct extents_local_fixture *s, uint8_t donor)
{
	struct weir_extents_placement place;

	weir_extents_donor_up(&s->v, donor);
	weir_extents_donor_room(&s->v, donor, 8);
	while (!weir_extents_next_placement(&s->v, &place))
		weir_extents_granted(&s->v, &place);
}

/* Two extents at one of two donors, with a disk. */
static void begin(struct extents_local_fixture *s)
{
	memset(s, 0, sizeof(*s));
	for (uint32_t i = 0; i < EXTENTS; i++) {
		s->extents[i].sum = s->sum[i];
		s->extents[i].local = s->local[i];
	}
	assert_int_equal(weir_extents_init(&s->v, s->extents, EXTENTS, PAGES, 2, 1), 0);
	lend(s, 0);
}

static void write(struct extents_local_fixture *s, uint32_t extent, uint32_t page, uint32_t pages,
		  uint8_t failed)
{
	struct weir_extents_write w;

	assert_int_equal(weir_extents_write(&s->v, &w, extent, page, pages, sums), 0);
	assert_int_equal(weir_extents_write_end(&s->v, &w, failed ? w.slots : 0),
			 failed ? -EIO : 0);
}

/* The volume reads pages that the disk is to have. */
static struct weir_extents_copy_step read_next(struct extents_local_fixture *s)
{
	struct weir_extents_copy_step step;

	weir_extents_local_next(&s->v, &step);
	if (step.what == WEIR_EXTENTS_COPY_READ)
		weir_extents_read_end(&s->v, step.extent, step.slot);
	return step;
}

static void keep_all(struct extents_local_fixture *s)
{
	while (read_next(s).what == WEIR_EXTENTS_COPY_READ)
		weir_extents_local_done(&s->v, true);
}

static void lose(struct extents_local_fixture *s, uint8_t donor)
{
	struct weir_extents_placement place;

	weir_extents_donor_lost(&s->v, donor);
	while (weir_extents_reclaim(&s->v, &place))
		;
}

static void only_written_pages_go_to_the_disk(void **state)
{
	struct weir_extents_copy_step step;
	struct extents_local_fixture s;

	(void)state;
	begin(&s);
	assert_int_equal(read_next(&s).what, WEIR_EXTENTS_COPY_NOTHING);
	write(&s, 1, 3, 100, 0);
	step = read_next(&s);
	assert_int_equal(step.what, WEIR_EXTENTS_COPY_READ);
	assert_true(step.extent == 1 && step.page == 3 && step.pages == WEIR_EXTENTS_CHUNK_PAGES);
	assert_false(weir_extents_local_has(&s.v, 1, 3, 1));
	weir_extents_local_done(&s.v, true);
	assert_true(weir_extents_local_has(&s.v, 1, 0, 3 + WEIR_EXTENTS_CHUNK_PAGES));
	assert_false(weir_extents_local_has(&s.v, 1, 0, 4 + WEIR_EXTENTS_CHUNK_PAGES));
	keep_all(&s);
	assert_true(weir_extents_local_has(&s.v, 1, 0, PAGES));
	assert_true(weir_extents_is_local(&s.v, 1));
	assert_false(weir_extents_is_local(&s.v, 0));
}

static void the_disk_lacks_pages_changed_meanwhile(void **state)
{
	struct extents_local_fixture s;

	(void)state;
	begin(&s);
	write(&s, 0, 0, 4, 0);
	read_next(&s);
	write(&s, 0, 1, 1, 0);
	weir_extents_discard(&s.v, 0, 2, 1, false);
	weir_extents_local_done(&s.v, true);
	assert_true(weir_extents_local_has(&s.v, 0, 0, 1));
	assert_false(weir_extents_local_has(&s.v, 0, 1, 1));
	assert_true(weir_extents_local_has(&s.v, 0, 2, 2));
	assert_int_equal(s.extents[0].nr_local, 2);
	keep_all(&s);
	assert_true(weir_extents_is_local(&s.v, 0));
	write(&s, 0, 0, 1, 0);
	assert_false(weir_extents_local_has(&s.v, 0, 0, 1));
}

static void a_page_whose_write_failed_the_disk_does_not_have(void **state)
{
	struct weir_extents_write w;
	struct extents_local_fixture s;

	(void)state;
	begin(&s);
	write(&s, 0, 0, 2, 0);
	assert_int_equal(weir_extents_write(&s.v, &w, 0, 1, 1, sums + 1), 0);
	read_next(&s);
	assert_int_equal(weir_extents_write_end(&s.v, &w, w.slots), -EIO);
	weir_extents_local_done(&s.v, true);
	assert_true(weir_extents_local_has(&s.v, 0, 0, 1));
	assert_false(weir_extents_local_has(&s.v, 0, 1, 1));
	assert_int_equal(read_next(&s).what, WEIR_EXTENTS_COPY_NOTHING);
}

static void an_extent_not_kept_is_retried_after_others(void **state)
{
	struct weir_extents_copy_step step;
	struct extents_local_fixture s;

	(void)state;
	begin(&s);
	write(&s, 0, 5, 1, 0);
	write(&s, 1, 5, 1, 0);
	assert_int_equal(read_next(&s).extent, 0);
	weir_extents_local_done(&s.v, false);
	step = read_next(&s);
	assert_true(step.what == WEIR_EXTENTS_COPY_READ && step.extent == 1);
	weir_extents_local_done(&s.v, true);
	step = read_next(&s);
	assert_true(step.what == WEIR_EXTENTS_COPY_READ && step.extent == 0);
	weir_extents_local_done(&s.v, false);
	while ((step = read_next(&s)).what == WEIR_EXTENTS_COPY_READ)
		weir_extents_local_done(&s.v, false);
	assert_int_equal(step.what, WEIR_EXTENTS_COPY_NOTHING); /* for now */
	assert_int_equal(read_next(&s).what, WEIR_EXTENTS_COPY_READ);
}

static void an_extent_on_disk_returns_with_a_donor(void **state)
{
	struct weir_extents_copy_step step;
	uint32_t from, filled = 0;
	struct extents_local_fixture s;
	uint8_t slot;

	(void)state;
	begin(&s);
	write(&s, 0, 0, 100, 0);
	write(&s, 1, 0, 1, 0);
	keep_all(&s);
	write(&s, 1, 0, 1, 0);
	lose(&s, 0);
	assert_int_equal(weir_extents_census(&s.v).local, 1);
	assert_int_equal(weir_extents_census(&s.v).lost, 1);
	assert_int_equal(weir_extents_read(&s.v, 0, 0, &slot), -EIO);
	assert_true(weir_extents_local_has(&s.v, 0, 0, PAGES));
	assert_int_equal(weir_extents_provide(&s.v, 0, &from), -EAGAIN);
	assert_int_equal(weir_extents_provide(&s.v, 1, &from), -EIO);
	lend(&s, 1);
	assert_int_equal(weir_extents_writable(&s.v, 0), 0);
	weir_extents_trim(&s.v);
	for (;;) {
		weir_extents_resync_next(&s.v, 0, &step);
		if (step.what == WEIR_EXTENTS_COPY_NOTHING)
			break;
		assert_true(step.what == WEIR_EXTENTS_COPY_READ_LOCAL ||
			    step.what == WEIR_EXTENTS_COPY_WRITE);
		filled += step.what == WEIR_EXTENTS_COPY_WRITE ? step.pages : 0;
		weir_extents_resync_done(&s.v, 0, true);
	}
	assert_int_equal(filled, PAGES);
	assert_int_equal(weir_extents_census(&s.v).local, 0);
	assert_int_equal(weir_extents_read(&s.v, 0, 0, &slot), 0);
	assert_int_equal(weir_extents_provide(&s.v, 0, &from), 0);
}

static void a_page_that_the_disk_cannot_read_is_lost(void **state)
{
	struct weir_extents_placement place;
	struct weir_extents_copy_step step;
	struct extents_local_fixture s;

	(void)state;
	begin(&s);
	write(&s, 0, 0, 100, 0);
	keep_all(&s);
	lose(&s, 0);
	lend(&s, 1);
	weir_extents_resync_next(&s.v, 0, &step);
	assert_int_equal(step.what, WEIR_EXTENTS_COPY_READ_LOCAL);
	weir_extents_resync_done(&s.v, 0, false);
	weir_extents_resync_next(&s.v, 0, &step);
	assert_int_equal(step.what, WEIR_EXTENTS_COPY_NOTHING);
	assert_int_equal(weir_extents_census(&s.v).lost, 1);
	assert_true(weir_extents_local_has(&s.v, 0, 64, 36));
	weir_extents_trim(&s.v);
	assert_true(weir_extents_reclaim(&s.v, &place));
	assert_int_equal(place.extent, 0);
}

static void without_a_disk_nothing_is_there(void **state)
{
	struct extents_local_fixture s;

	(void)state;
	begin(&s);
	s.extents[0].local = s.extents[1].local = NULL;
	write(&s, 0, 0, 4, 0);
	assert_int_equal(read_next(&s).what, WEIR_EXTENTS_COPY_NOTHING);
	assert_false(weir_extents_local_has(&s.v, 0, 0, 1));
	assert_false(weir_extents_local_has(&s.v, 0, 5, 1));
	lose(&s, 0);
	assert_int_equal(weir_extents_census(&s.v).lost, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_written_pages_go_to_the_disk),
		cmocka_unit_test(the_disk_lacks_pages_changed_meanwhile),
		cmocka_unit_test(a_page_whose_write_failed_the_disk_does_not_have),
		cmocka_unit_test(an_extent_not_kept_is_retried_after_others),
		cmocka_unit_test(an_extent_on_disk_returns_with_a_donor),
		cmocka_unit_test(a_page_that_the_disk_cannot_read_is_lost),
		cmocka_unit_test(without_a_disk_nothing_is_there),
	};

	return cmocka_run_group_tests_name("core volume local", tests, NULL, NULL);
}
