/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib window; devices: softnic rxe; timeout: 120 */
/* The limits of a NIC's window: fixed, learned, and moved by a policy of the user. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/libweir_fixture.h"

#define WRITES 300
#define PAGE 4096
#define BYTES_MIN (64u << 10)

/* A policy that says the same every time, and remembers. */
struct heard {
	uint64_t says_bytes, says_wrs;
	uint64_t calls, wrs_most, bytes_most, bytes;
	uint64_t limit_bytes, limit_wrs; /* as of the last call */
	bool is_false;
};

static void listen_to(void *arg, const struct weir_window_sample *sample,
		      struct weir_window_limits *limits)
{
	struct heard *h = arg;

	h->calls++;
	h->bytes += sample->bytes;
	if (h->wrs_most < sample->wrs_in_flight)
		h->wrs_most = sample->wrs_in_flight;
	if (h->bytes_most < sample->bytes_in_flight)
		h->bytes_most = sample->bytes_in_flight;
	h->is_false |= sample->completed_ns < sample->posted_ns || !sample->posted_ns ||
		       sample->bytes_in_flight < sample->bytes;
	h->limit_bytes = limits->bytes;
	h->limit_wrs = limits->wrs;
	limits->bytes = h->says_bytes;
	limits->wrs = h->says_wrs;
}

/* Writes pages, all submitted at once, each a work request. */
static struct weir_session_info write_pages(const struct weir_session_tuning *tuning)
{
	const struct weir_session_options options = { .tuning = tuning };
	struct weir_session *session = session_to(&group_donor, &options);
	struct weir_region *region = region_of(session, WRITES * PAGE);
	struct completion_tally tally = { 0 };
	static char from[WRITES * PAGE], to[WRITES * PAGE];
	struct weir_transfer transfers[WRITES];
	struct weir_iov iov[WRITES];
	struct weir_session_info info;
	struct weir_memory *memory;
	unsigned int i, submitted;

	for (i = 0; i < WRITES; i++)
		memset(from + i * PAGE, (int)i, PAGE);
	assert_int_equal(weir_memory_register(session, from, sizeof(from), &memory, NULL), 0);
	for (i = 0; i < WRITES; i++) {
		iov[i] = (struct weir_iov){ from + i * PAGE, PAGE, memory };
		transfers[i] = (struct weir_transfer){
			.direction = WEIR_WRITE,
			.region = region,
			.offset = (uint64_t)i * PAGE,
			.iov = &iov[i],
			.iovcnt = 1,
			.completion = { .done = tally_done, .arg = &tally },
		};
	}
	assert_int_equal(weir_transfer_async(transfers, WRITES, &submitted), 0);
	tally_wait(&tally, WRITES);
	assert_int_equal(tally.status, 0);
	weir_session_info(session, &info, sizeof(info));
	assert_int_equal(weir_read(region, 0, to, sizeof(to)), 0);
	assert_memory_equal(from, to, sizeof(to));
	weir_session_close(session);
	return info;
}

static struct weir_session_info write_by(struct heard *heard, unsigned int wrs)
{
	const struct weir_window_policy policy = { .size = sizeof(policy),
						   .completed = listen_to,
						   .arg = heard };
	const struct weir_session_tuning tuning = { .size = sizeof(tuning),
						    .batching = WEIR_BATCHING_DOORBELL,
						    .window_wrs = wrs,
						    .fragment_bytes = BYTES_MIN,
						    .window_policy = &policy };

	return write_pages(&tuning);
}

static void a_policy_hears_of_each_work_request(void **in)
{
	struct heard heard = { .says_bytes = UINT64_MAX, .says_wrs = UINT64_MAX };

	(void)in;
	write_by(&heard, 0);
	assert_false(heard.is_false);
	/* the pages, the reads that check them, and a few messages */
	assert_in_range(heard.bytes, 2 * WRITES * PAGE, 2 * WRITES * PAGE + PAGE);
	assert_true(heard.calls > WRITES);
	assert_int_equal(heard.limit_bytes, 8u << 20);
	assert_int_equal(heard.limit_wrs, 4096);
}

static void a_policy_is_held_to_the_limits_of_the_options(void **in)
{
	struct heard heard = { .says_bytes = UINT64_MAX, .says_wrs = UINT64_MAX };

	(void)in;
	write_by(&heard, 3);
	assert_in_range(heard.wrs_most, 2, 3);
	assert_int_equal(heard.limit_wrs, 3);
}

static void a_policy_of_zero_leaves_one_work_request(void **in)
{
	struct heard heard = { 0 };
	struct weir_session_info info;

	(void)in;
	info = write_by(&heard, 0);
	assert_int_equal(heard.wrs_most, 1);
	assert_int_equal(heard.limit_wrs, 1);
	assert_int_equal(heard.limit_bytes, BYTES_MIN);
	assert_true(info.window_waits > 0);
}

static void a_limit_of_work_requests_makes_others_wait(void **in)
{
	const struct weir_session_tuning narrow = { .size = sizeof(narrow),
						    .batching = WEIR_BATCHING_SINGLE,
						    .window_wrs = 1 };
	const struct weir_session_tuning wide = { .size = sizeof(wide),
						  .batching = WEIR_BATCHING_SINGLE };

	(void)in;
	assert_true(write_pages(&narrow).window_waits > 0);
	assert_int_equal(write_pages(&wide).window_waits, 0);
}

static void each_way_of_learning_carries_the_bytes(void **in)
{
	enum weir_admission way;

	(void)in;
	for (way = WEIR_ADMISSION_STATIC; way <= WEIR_ADMISSION_KNEE_WRS; way++) {
		const struct weir_session_tuning tuning = { .size = sizeof(tuning),
							    .batching = WEIR_BATCHING_DOORBELL,
							    .fragment_bytes = BYTES_MIN,
							    .window_bytes = 4 * BYTES_MIN,
							    .window_wrs = 8,
							    .admission = way };

		assert_int_equal(write_pages(&tuning).errors, 0);
	}
}

static void nonsense_is_refused(void **in)
{
	struct heard heard = { 0 };
	const struct weir_window_policy good = { sizeof(good), listen_to, &heard };
	const struct weir_window_policy deaf = { .size = sizeof(deaf) };
	const struct weir_window_policy unsized = { .completed = listen_to };

	(void)in;
	options_refused((struct weir_session_options){ TUNING(.window_policy = &deaf) },
			"no completed");
	options_refused((struct weir_session_options){ TUNING(.window_policy = &unsized) },
			"weir_window_policy");
	options_refused((struct weir_session_options){ TUNING(.window_policy = &good,
							      .admission = WEIR_ADMISSION_KNEE) },
			"choose one");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_policy_hears_of_each_work_request),
		cmocka_unit_test(a_policy_is_held_to_the_limits_of_the_options),
		cmocka_unit_test(a_policy_of_zero_leaves_one_work_request),
		cmocka_unit_test(a_limit_of_work_requests_makes_others_wait),
		cmocka_unit_test(each_way_of_learning_carries_the_bytes),
		cmocka_unit_test(nonsense_is_refused),
	};

	fixture_runs_on("softnic rxe");
	return cmocka_run_group_tests(tests, group_donor_start, group_donor_stop);
}
