/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib batching; devices: softnic rxe; timeout: 180 */
/* Presets and modes of batching: how requests that wait at the same time are posted. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/libweir_fixture.h"

#define NEIGHBOURS 64
#define PAGE 4096
#define ROUNDS 200

/* Write a row of pages, one request for each page. */
static struct weir_session_info write_neighbours(const struct weir_session_options *options)
{
	struct weir_session *session = session_to(&group_donor, options);
	struct weir_region *region = region_of(session, NEIGHBOURS * PAGE);
	static char to[NEIGHBOURS * PAGE], from[NEIGHBOURS * PAGE];
	struct completion_tally tally = { 0 };
	struct weir_completion completion = { .done = tally_done, .arg = &tally };
	struct weir_memory *memory;
	struct weir_session_info before, after;
	int i;

	for (i = 0; i < NEIGHBOURS; i++)
		memset(to + i * PAGE, i, PAGE);
	assert_int_equal(weir_memory_register(session, to, sizeof(to), &memory, NULL), 0);
	weir_session_info(session, &before, sizeof(before));
	for (i = 0; i < NEIGHBOURS; i++) {
		struct weir_iov iov = { to + i * PAGE, PAGE, memory };

		assert_int_equal(weir_write_async(region, (uint64_t)i * PAGE, &iov, 1, &completion,
						  NULL),
				 0);
	}
	tally_wait(&tally, NEIGHBOURS);
	assert_int_equal(tally.status, 0);
	weir_session_info(session, &after, sizeof(after));
	assert_int_equal(weir_read(region, 0, from, sizeof(from)), 0);
	assert_memory_equal(to, from, sizeof(to));
	after.work_requests -= before.work_requests;
	after.doorbells -= before.doorbells;
	weir_session_close(session);
	return after;
}

static void single_posts_each_by_itself(void **in)
{
	const struct weir_session_options options = { .preset = WEIR_PRESET_SINGLE };
	struct weir_session_info info = write_neighbours(&options);

	(void)in;
	assert_int_equal(info.work_requests, NEIGHBOURS);
	assert_int_equal(info.doorbells, NEIGHBOURS);
}

static void doorbell_merges_nothing(void **in)
{
	const struct weir_session_options options = { .preset = WEIR_PRESET_ACCELIO };
	struct weir_session_info info = write_neighbours(&options);

	(void)in;
	assert_int_equal(info.work_requests, NEIGHBOURS);
	assert_true(info.doorbells <= NEIGHBOURS);
}

static void all_ways_carry_the_same_bytes(void **in)
{
	enum weir_batching batching;
	enum weir_admission admission;

	(void)in;
	for (batching = WEIR_BATCHING_DEFAULT; batching <= WEIR_BATCHING_HYBRID; batching++) {
		for (admission = 0; admission <= WEIR_ADMISSION_KNEE_WRS; admission++) {
			const struct weir_session_options options = {
				TUNING(.batching = batching, .admission = admission,
				       .chain_max = 1 + batching, .fragment_bytes = 8192,
				       .window_bytes = 65536, .window_wrs = 5)
			};
			struct weir_session_info info = write_neighbours(&options);

			assert_true(info.work_requests > 0);
			assert_true(info.work_requests <= NEIGHBOURS);
			assert_true(info.doorbells <= info.work_requests);
			assert_int_equal(info.errors, 0);
		}
	}
}

struct row {
	struct weir_session *session;
	struct weir_region *region;
	struct weir_memory *memory;
	struct completion_tally tally;
	char pages[NEIGHBOURS * PAGE];
	struct weir_iov iov[NEIGHBOURS];
	struct weir_transfer transfers[NEIGHBOURS];
};

/* A row of pages for one call, in reverse order. */
static void row_open(struct row *row, const struct weir_session_options *options,
		     enum weir_direction direction)
{
	int i;

	row->tally = (struct completion_tally){ 0 };
	row->session = session_to(&group_donor, options);
	row->region = region_of(row->session, NEIGHBOURS * PAGE);
	assert_int_equal(weir_memory_register(row->session, row->pages, sizeof(row->pages),
					      &row->memory, NULL),
			 0);
	for (i = 0; i < NEIGHBOURS; i++) {
		size_t at = (size_t)(NEIGHBOURS - 1 - i) * PAGE;

		row->iov[i] = (struct weir_iov){ row->pages + at, PAGE, row->memory };
		row->transfers[i] = (struct weir_transfer){
			.direction = direction,
			.region = row->region,
			.offset = at,
			.iov = &row->iov[i],
			.iovcnt = 1,
			.completion = { .done = tally_done, .arg = &row->tally },
		};
	}
}

static uint64_t work_requests_of(struct weir_session *session)
{
	struct weir_session_info info;

	weir_session_info(session, &info, sizeof(info));
	return info.work_requests;
}

static void what_is_submitted_together_meets(void **in)
{
	static struct row row;
	static char seen[sizeof(row.pages)];
	unsigned int submitted = 0;
	uint64_t before;
	int i;

	(void)in;
	row_open(&row, NULL, WEIR_WRITE);
	for (i = 0; i < NEIGHBOURS; i++)
		memset(row.pages + i * PAGE, i + 1, PAGE);
	before = work_requests_of(row.session);
	assert_int_equal(weir_transfer_async(row.transfers, NEIGHBOURS, &submitted), 0);
	assert_int_equal(submitted, NEIGHBOURS);
	tally_wait(&row.tally, NEIGHBOURS);
	assert_int_equal(row.tally.status, 0);
	assert_int_equal(work_requests_of(row.session) - before, 1);
	assert_int_equal(weir_read(row.region, 0, seen, sizeof(seen)), 0);
	assert_memory_equal(seen, row.pages, sizeof(seen));
	weir_session_close(row.session);
}

/* First two and a half times the largest WR, then exactly the largest. */
static void what_is_cut_is_counted_once(void **in)
{
	const struct weir_session_options options = { TUNING(.fragment_bytes = 4 * PAGE) };
	struct weir_session *session = session_to(&group_donor, &options);
	struct weir_region *region = region_of(session, NEIGHBOURS * PAGE);
	struct weir_session_info before, after;
	static char bytes[10 * PAGE];

	(void)in;
	weir_session_info(session, &before, sizeof(before));
	assert_int_equal(weir_write(region, 0, bytes, 10 * PAGE), 0);
	assert_int_equal(weir_write(region, 0, bytes, 4 * PAGE), 0);
	weir_session_info(session, &after, sizeof(after));
	assert_int_equal(after.split - before.split, 1);
	assert_int_equal(after.work_requests - before.work_requests, 4);
	weir_session_close(session);
}

static void what_is_read_together_with_writes_keeps_its_order(void **in)
{
	static struct row row;
	struct weir_transfer both[2];

	(void)in;
	row_open(&row, NULL, WEIR_WRITE);
	both[0] = row.transfers[0]; /* the last page is written, then read into the first */
	both[1] = row.transfers[NEIGHBOURS - 1];
	both[1].direction = WEIR_READ;
	both[1].offset = both[0].offset;
	memset(row.pages, 1, PAGE);
	memset(row.pages + sizeof(row.pages) - PAGE, 2, PAGE);
	assert_int_equal(weir_transfer_async(both, 2, NULL), 0);
	tally_wait(&row.tally, 2);
	assert_int_equal(row.tally.status, 0);
	assert_memory_equal(row.pages, row.pages + sizeof(row.pages) - PAGE, PAGE);
	weir_session_close(row.session);
}

/* softnic finishes a WR while posting; other devices may or may not. */
static bool is_done_when_posted(void)
{
	const char *kind = getenv("WEIR_TEST_DEVICE");

	return !kind || !strcmp(kind, "softnic");
}

/*
 * The thread that posted the first request posts the second after the first completes, and
 * polls before arming.
 */
static void what_had_to_wait_for_another_is_looked_for_before_it_is_armed_for(void **in)
{
	struct weir_session_info before, after;
	struct weir_transfer both[2];
	static struct row row;
	int round;

	(void)in;
	row_open(&row, NULL, WEIR_WRITE);
	both[0] = both[1] = row.transfers[0];
	both[1].direction = WEIR_READ;
	weir_session_info(row.session, &before, sizeof(before));
	for (round = 1; round <= ROUNDS; round++) {
		assert_int_equal(weir_transfer_async(both, 2, NULL), 0);
		tally_wait(&row.tally, 2 * round);
	}
	assert_int_equal(row.tally.status, 0);
	weir_session_info(row.session, &after, sizeof(after));
	if (is_done_when_posted())
		assert_in_range(after.events - before.events, 0, ROUNDS / 10);
	weir_session_close(row.session);
}

static void what_comes_after_one_that_is_refused_is_not_submitted(void **in)
{
	static struct row row, other;
	unsigned int submitted = NEIGHBOURS;

	(void)in;
	row_open(&row, NULL, WEIR_WRITE);
	row_open(&other, NULL, WEIR_WRITE);
	row.transfers[3].offset = NEIGHBOURS * PAGE;
	assert_int_equal(weir_transfer_async(row.transfers, NEIGHBOURS, &submitted), -EINVAL);
	assert_int_equal(submitted, 3);
	row.transfers[1].region = other.region;
	assert_int_equal(weir_transfer_async(row.transfers, NEIGHBOURS, &submitted), -EINVAL);
	assert_int_equal(submitted, 1);
	row.transfers[0].completion.done = NULL;
	assert_int_equal(weir_transfer_async(row.transfers, NEIGHBOURS, &submitted), -EINVAL);
	assert_int_equal(submitted, 0);
	assert_int_equal(weir_transfer_async(row.transfers, 0, NULL), 0);
	assert_int_equal(weir_flush(row.session), 0);
	tally_wait(&row.tally, 4);
	assert_int_equal(row.tally.status, 0);
	weir_session_close(row.session); /* the callbacks have returned */
	assert_int_equal(row.tally.done, 4);
	weir_session_close(other.session);
}

static void what_makes_no_sense_is_refused(void **in)
{
	(void)in;
	options_refused((struct weir_session_options){ .preset = 9 }, "preset number 9");
	options_refused((struct weir_session_options){ TUNING(.batching = 8) },
			"batching number 8");
	options_refused((struct weir_session_options){ TUNING(.admission = 7) },
			"admission number 7");
	options_refused((struct weir_session_options){ TUNING(.mr = 6) }, "memory number 6");
	options_refused((struct weir_session_options){ TUNING(.chain_max = 33) }, "33");
	options_refused((struct weir_session_options){ TUNING(.fragment_bytes = 4095) }, "4095");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(single_posts_each_by_itself),
		cmocka_unit_test(doorbell_merges_nothing),
		cmocka_unit_test(all_ways_carry_the_same_bytes),
		cmocka_unit_test(what_is_submitted_together_meets),
		cmocka_unit_test(what_is_cut_is_counted_once),
		cmocka_unit_test(what_is_read_together_with_writes_keeps_its_order),
		cmocka_unit_test(what_had_to_wait_for_another_is_looked_for_before_it_is_armed_for),
		cmocka_unit_test(what_comes_after_one_that_is_refused_is_not_submitted),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, group_donor_start, group_donor_stop);
}
