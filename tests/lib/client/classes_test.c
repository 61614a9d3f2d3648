/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib classes; devices: softnic rxe; timeout: 120 */
/*
 * Classes of sessions, regions and requests: bulk has little in flight, and sessions without a
 * class go on.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/libweir_fixture.h"
#include "core/sched/window_classes.h"

#define WRITES 16u
#define LENGTH (128u << 10)
#define SHORT 512u

/* The most that a policy has seen, which leaves the window alone. */
struct window_peak {
	uint64_t bytes_most; /* in flight */
	uint32_t longest; /* work request */
};

static void listen_to(void *arg, const struct weir_window_sample *sample,
		      struct weir_window_limits *limits)
{
	struct window_peak *h = arg;

	(void)limits;
	if (h->bytes_most < sample->bytes_in_flight)
		h->bytes_most = sample->bytes_in_flight;
	if (h->longest < sample->bytes)
		h->longest = sample->bytes;
}

struct class_party {
	struct weir_session *session;
	struct weir_region *region;
	struct weir_memory *memory;
	char *bytes;
};

static void party_open(struct class_party *p, struct weir_session_tuning tuning)
{
	const struct weir_session_options options = { .tuning = &tuning, .channels = 1 };

	tuning.size = sizeof(tuning);
	p->bytes = malloc(WRITES * LENGTH);
	assert_non_null(p->bytes);
	p->session = session_to(&group_donor, &options);
	p->region = region_of(p->session, WRITES * LENGTH);
	assert_int_equal(
		weir_memory_register(p->session, p->bytes, WRITES * LENGTH, &p->memory, NULL), 0);
}

static void party_close(struct class_party *p)
{
	weir_session_close(p->session);
	free(p->bytes);
}

/* Submit all writes at once; @tally counts them. */
static void begin_hinted(struct class_party *p, char what, struct completion_tally *tally,
			 enum weir_hint hint)
{
	const struct weir_completion completion = { .done = tally_done,
						    .arg = tally,
						    .hint = hint };
	unsigned int i;

	memset(p->bytes, what, WRITES * LENGTH);
	for (i = 0; i < WRITES; i++) {
		const struct weir_iov iov = { p->bytes + i * LENGTH, LENGTH, p->memory };

		assert_int_equal(weir_write_async(p->region, (uint64_t)i * LENGTH, &iov, 1,
						  &completion, NULL),
				 0);
	}
}

static void begin_writes(struct class_party *p, char what, struct completion_tally *tally)
{
	begin_hinted(p, what, tally, WEIR_NO_HINT);
}

static void end_writes(struct class_party *p, char what, struct completion_tally *tally)
{
	char *got = malloc(WRITES * LENGTH);

	assert_non_null(got);
	tally_wait(tally, WRITES);
	assert_int_equal(tally->status, 0);
	assert_int_equal(weir_read(p->region, 0, got, WRITES * LENGTH), 0);
	memset(p->bytes, what, WRITES * LENGTH);
	assert_memory_equal(got, p->bytes, WRITES * LENGTH);
	free(got);
}

static struct window_peak write_alone(enum weir_class class_nr)
{
	struct window_peak peak = { 0 };
	const struct weir_window_policy policy = { .size = sizeof(policy),
						   .completed = listen_to,
						   .arg = &peak };
	struct completion_tally tally = { 0 };
	struct class_party p;

	party_open(&p,
		   (struct weir_session_tuning){ .window_policy = &policy, .class_nr = class_nr });
	begin_writes(&p, 'a', &tally);
	end_writes(&p, 'a', &tally);
	party_close(&p);
	return peak;
}

static void bulk_has_little_in_flight(void **in)
{
	struct window_peak bulk = write_alone(WEIR_CLASS_BULK), without = write_alone(0);

	(void)in;
	assert_int_equal(bulk.longest, WEIR_SCHED_SEGMENT_BYTES);
	assert_true(bulk.bytes_most <= WEIR_WINDOW_LOW_BYTES);
	assert_true(without.longest > WEIR_SCHED_SEGMENT_BYTES);
	assert_true(without.bytes_most > WEIR_WINDOW_LOW_BYTES);
}

static void sessions_of_all_classes_end_all_requests(void **in)
{
	static const struct weir_session_tuning tunings[] = {
		{ .class_nr = WEIR_CLASS_BULK, .weight = 3 },
		{ .class_nr = WEIR_CLASS_BULK },
		{ 0 },
		{ .class_nr = WEIR_CLASS_NORMAL, .weight = 1024 },
		{ .class_nr = WEIR_CLASS_URGENT },
	};
	enum { PARTIES = sizeof(tunings) / sizeof(tunings[0]) };
	struct completion_tally tallies[PARTIES] = { { 0 } };
	struct class_party parties[PARTIES];
	unsigned int i;

	(void)in;
	for (i = 0; i < PARTIES; i++)
		party_open(&parties[i], tunings[i]);
	for (i = 0; i < PARTIES; i++)
		begin_writes(&parties[i], (char)('a' + i), &tallies[i]);
	for (i = 0; i < PARTIES; i++)
		end_writes(&parties[i], (char)('a' + i), &tallies[i]);
	for (i = 0; i < PARTIES; i++)
		party_close(&parties[i]);
}

static void a_session_outlives_the_classes(void **in)
{
	struct completion_tally tally = { 0 }, more = { 0 };
	struct class_party without, urgent;

	(void)in;
	party_open(&without, (struct weir_session_tuning){ 0 });
	party_open(&urgent, (struct weir_session_tuning){ .class_nr = WEIR_CLASS_URGENT });
	begin_writes(&without, 'a', &tally);
	party_close(&urgent);
	end_writes(&without, 'a', &tally);
	begin_writes(&without, 'b', &more);
	end_writes(&without, 'b', &more);
	party_close(&without);
}

/* As a session of the class bulk, from the call on. */
static void a_region_has_a_class(void **in)
{
	struct window_peak peak = { 0 };
	const struct weir_window_policy policy = { .size = sizeof(policy),
						   .completed = listen_to,
						   .arg = &peak };
	struct completion_tally before = { 0 }, bulk = { 0 }, urgent = { 0 };
	struct class_party p;

	(void)in;
	party_open(&p, (struct weir_session_tuning){ .window_policy = &policy });
	begin_writes(&p, 'a', &before);
	end_writes(&p, 'a', &before);
	assert_true(peak.bytes_most > WEIR_WINDOW_LOW_BYTES);
	assert_int_equal(weir_region_class(p.region, WEIR_CLASS_BULK), 0);
	peak = (struct window_peak){ 0 };
	begin_writes(&p, 'b', &bulk);
	tally_wait(&bulk, WRITES);
	assert_int_equal(peak.longest, WEIR_SCHED_SEGMENT_BYTES);
	assert_true(peak.bytes_most <= WEIR_WINDOW_LOW_BYTES);
	end_writes(&p, 'b', &bulk);
	assert_int_equal(weir_region_class(p.region, WEIR_CLASS_URGENT), 0);
	begin_writes(&p, 'c', &urgent);
	end_writes(&p, 'c', &urgent);
	assert_int_equal(weir_region_class(p.region, WEIR_CLASS_BULK + 1), -EINVAL);
	party_close(&p);
}

/* When the window heard of the end of a request of SHORT bytes, and of how many WRs in all. */
struct class_order {
	unsigned int wrs;
	unsigned int short_at;
};

static void note_order(void *arg, const struct weir_window_sample *sample,
		       struct weir_window_limits *limits)
{
	struct class_order *o = arg;

	(void)limits;
	if (sample->bytes == SHORT)
		o->short_at = o->wrs;
	o->wrs++;
}

/* Whether a short request with @hint ends before most long requests ahead. */
static bool overtakes(enum weir_hint hint)
{
	struct class_order order = { 0 };
	const struct weir_window_policy policy = { .size = sizeof(policy),
						   .completed = note_order,
						   .arg = &order };
	struct completion_tally tally = { 0 };
	struct weir_transfer transfers[WRITES];
	struct weir_iov iov[WRITES];
	struct class_party p;
	unsigned int i;

	party_open(&p, (struct weir_session_tuning){ .window_policy = &policy,
						     .class_nr = WEIR_CLASS_NORMAL });
	for (i = 0; i < WRITES; i++) {
		bool is_last = i == WRITES - 1;

		iov[i] = (struct weir_iov){ p.bytes + i * LENGTH, is_last ? SHORT : LENGTH,
					    p.memory };
		transfers[i] = (struct weir_transfer){
			.direction = WEIR_WRITE,
			.region = p.region,
			.offset = (uint64_t)i * LENGTH,
			.iov = &iov[i],
			.iovcnt = 1,
			.completion = { .done = tally_done,
					.arg = &tally,
					.hint = is_last ? hint : WEIR_NO_HINT },
		};
	}
	assert_int_equal(weir_transfer_async(transfers, WRITES, NULL), 0);
	tally_wait(&tally, WRITES);
	assert_int_equal(tally.status, 0);
	party_close(&p);
	return order.short_at < order.wrs / 2;
}

static void a_request_has_a_class(void **in)
{
	(void)in;
	assert_true(overtakes(WEIR_REQUEST_URGENT));
	assert_false(overtakes(WEIR_NO_HINT));
	assert_false(overtakes(WEIR_REQUEST_BULK));
}

/* Most bytes in flight of writes with @hint, in a session without classes. */
static uint64_t write_hinted(enum weir_hint hint)
{
	struct window_peak peak = { 0 };
	const struct weir_window_policy policy = { .size = sizeof(policy),
						   .completed = listen_to,
						   .arg = &peak };
	struct completion_tally tally = { 0 };
	struct class_party p;

	party_open(&p, (struct weir_session_tuning){ .window_policy = &policy });
	begin_hinted(&p, 'd', &tally, hint);
	end_writes(&p, 'd', &tally);
	party_close(&p);
	return peak.bytes_most;
}

static void a_request_alone_gives_a_session_no_classes(void **in)
{
	(void)in;
	assert_true(write_hinted(WEIR_REQUEST_BULK) > WEIR_WINDOW_LOW_BYTES);
}

static void what_is_no_class_is_refused(void **in)
{
	(void)in;
	options_refused((struct weir_session_options){ TUNING(.class_nr = WEIR_CLASS_BULK + 1) },
			"class");
	options_refused((struct weir_session_options){ TUNING(.weight = 1025) }, "weight");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(bulk_has_little_in_flight),
		cmocka_unit_test(sessions_of_all_classes_end_all_requests),
		cmocka_unit_test(a_session_outlives_the_classes),
		cmocka_unit_test(a_region_has_a_class),
		cmocka_unit_test(a_request_has_a_class),
		cmocka_unit_test(a_request_alone_gives_a_session_no_classes),
		cmocka_unit_test(what_is_no_class_is_refused),
	};

	fixture_runs_on("softnic rxe");
	return cmocka_run_group_tests(tests, group_donor_start, group_donor_stop);
}
