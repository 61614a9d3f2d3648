/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The trace: the ring, and the records of the engine. */
#include <pthread.h>

#include "tests/support/engine_bench.h"

#define SLOTS 8
#define NOTES 200000

static struct weir_trace_record numbered(uint32_t number)
{
	return (struct weir_trace_record){
		.event = WEIR_TRACE_POST, .bytes = number, .wrs = number, .reqs = number
	};
}

static void a_ring_is_a_power_of_two(void **state)
{
	struct weir_trace_slot ring[SLOTS];
	struct weir_trace t;

	(void)state;
	assert_int_equal(weir_trace_init(&t, ring, 0), -EINVAL);
	assert_int_equal(weir_trace_init(&t, ring, 6), -EINVAL);
	assert_int_equal(weir_trace_init(&t, ring, SLOTS), 0);
}

static void the_last_can_be_read(void **state)
{
	struct weir_trace_slot ring[SLOTS] = { { 0 } };
	struct weir_trace_record record;
	struct weir_trace t;
	uint32_t i;

	(void)state;
	weir_trace_init(&t, ring, SLOTS);
	assert_int_equal(weir_trace_read(ring, SLOTS, 1, &record), -EAGAIN);
	for (i = 1; i <= SLOTS + 3; i++) {
		record = numbered(i);
		weir_trace_note(&t, 1000 + i, &record);
	}
	for (i = 1; i <= 3; i++)
		assert_int_equal(weir_trace_read(ring, SLOTS, i, &record), -ENOENT);
	for (; i <= SLOTS + 3; i++) {
		assert_int_equal(weir_trace_read(ring, SLOTS, i, &record), 0);
		assert_int_equal(record.at_ns, 1000 + i);
		assert_int_equal(record.bytes, i);
	}
	assert_int_equal(weir_trace_read(ring, SLOTS, i, &record), -EAGAIN);
}

static void a_trace_needs_no_reader(void **state)
{
	struct weir_trace_record record = numbered(1);

	(void)state;
	weir_trace_note(NULL, 1, &record);
}

static void *write_many(void *arg)
{
	uint32_t i;

	for (i = 1; i <= NOTES; i++) {
		struct weir_trace_record record = numbered(i);

		weir_trace_note(arg, i, &record);
	}
	return NULL;
}

/* While the writer laps the reader, each record that the reader gets was written as a whole. */
static void a_record_read_is_consistent(void **state)
{
	struct weir_trace_slot ring[SLOTS] = { { 0 } };
	struct weir_trace_record record;
	struct weir_trace t;
	pthread_t writer;
	uint64_t number = 1;
	int rc;

	(void)state;
	weir_trace_init(&t, ring, SLOTS);
	assert_int_equal(pthread_create(&writer, NULL, write_many, &t), 0);
	while (number <= NOTES) {
		rc = weir_trace_read(ring, SLOTS, number, &record);
		if (rc == -EAGAIN)
			continue;
		if (!rc) {
			assert_int_equal(record.at_ns, number);
			assert_int_equal(record.bytes, number);
			assert_int_equal(record.wrs, number);
			assert_int_equal(record.reqs, number);
		}
		number++;
	}
	pthread_join(writer, NULL);
}

static const struct weir_engine_config config = { .fragment_bytes = 4 * KIB,
						  .chain_max = WEIR_BATCH_MAX,
						  .sge_max = WEIR_SGE_MAX,
						  .merge = true };

struct traced {
	struct engine_bench *b;
	struct weir_trace trace;
	struct weir_trace_slot ring[SLOTS];
};

static void traced_init(struct traced *t, uint64_t window, uint16_t channels)
{
	memset(t, 0, sizeof(*t));
	t->b = bench_new_with(&config, window, channels);
	weir_trace_init(&t->trace, t->ring, SLOTS);
	weir_engine_trace(&t->b->engine, &t->trace);
}

/* The record with @number equals @expect. */
static void assert_noted(const struct traced *t, uint64_t number,
			 const struct weir_trace_record *expect)
{
	struct weir_trace_record record;

	assert_int_equal(weir_trace_read(t->ring, SLOTS, number, &record), 0);
	assert_memory_equal(&record, expect, sizeof(record));
}

#define NOTED(t, number, ...) \
	assert_noted((t), (number), &(struct weir_trace_record){ __VA_ARGS__ })

static void records_merges_and_chains(void **state)
{
	struct weir_req req[3] = { bench_req(WEIR_OP_WRITE, 0, 8), bench_req(WEIR_OP_WRITE, 8, 8),
				   bench_req(WEIR_OP_WRITE, 100, 8) };
	struct traced t;
	int i;

	(void)state;
	traced_init(&t, 64 * KIB, 2);
	for (i = 0; i < 3; i++)
		assert_int_equal(weir_engine_submit(&t.b->engine, &req[i], 77), 0);
	bench_pull(t.b);
	assert_int_equal(t.trace.number, 1);
	NOTED(&t, 1, .at_ns = 77, .event = WEIR_TRACE_POST, .wrs = 2, .reqs = 3, .bytes = 24);
	bench_finish(t.b, 0);
	assert_int_equal(t.trace.number, 1);
	bench_free(t.b);
}

static void records_no_single_request(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 8);
	struct traced t;

	(void)state;
	traced_init(&t, 64 * KIB, 2);
	bench_submit(t.b, &req);
	bench_finish(t.b, 0);
	assert_int_equal(t.trace.number, 0);
	bench_free(t.b);
}

static void records_failures_and_retries(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_READ, 0, 8);
	struct traced t;

	(void)state;
	traced_init(&t, 64 * KIB, 2);
	req.retries = 1;
	bench_submit(t.b, &req);
	bench_complete(t.b, 0, -ECONNRESET);
	NOTED(&t, 1, .event = WEIR_TRACE_FAIL, .rc = -ECONNRESET, .wrs = 1, .reqs = 1, .bytes = 8);
	NOTED(&t, 2, .event = WEIR_TRACE_REPEAT, .rc = -ECONNRESET, .reqs = 1, .bytes = 8);
	bench_finish(t.b, 1);
	bench_free(t.b);
}

static void records_the_devices_status(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_READ, 0, 8);
	struct traced t;

	(void)state;
	traced_init(&t, 64 * KIB, 1);
	bench_submit(t.b, &req);
	weir_engine_completed(
		&t.b->engine,
		&(struct weir_wc){ .wr = t.b->posted[0], .status = -EIO, .verbs = 11 }, 0);
	bench_pull(t.b);
	NOTED(&t, 1, .event = WEIR_TRACE_FAIL, .rc = -EIO, .wrs = 1, .reqs = 1, .bytes = 8,
	      .verbs = 11);
	bench_free(t.b);
}

static void records_waits_for_the_window(void **state)
{
	struct weir_req req[2] = { bench_req(WEIR_OP_READ, 0, 4 * KIB),
				   bench_req(WEIR_OP_READ, 64 * KIB, 8) };
	struct traced t;
	int i;

	(void)state;
	traced_init(&t, 4 * KIB, 1);
	bench_submit(t.b, &req[0]);
	bench_submit(t.b, &req[1]);
	NOTED(&t, 1, .event = WEIR_TRACE_WAIT, .wrs = 1, .reqs = 1, .bytes = 8);
	assert_int_equal(t.b->engine.waits, 1);
	for (i = 0; i < 3; i++)
		bench_pull(t.b);
	assert_int_equal(t.trace.number, 1);
	bench_finish(t.b, 0);
	bench_free(t.b);
}

static void records_channels_and_requests_in_doubt(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 8);
	struct traced t;

	(void)state;
	traced_init(&t, 64 * KIB, 1);
	bench_submit(t.b, &req);
	weir_engine_channel_broken(&t.b->engine, 0);
	NOTED(&t, 1, .event = WEIR_TRACE_BREAK);
	bench_complete(t.b, 0, -ECONNRESET);
	NOTED(&t, 2, .event = WEIR_TRACE_FAIL, .rc = -ECONNRESET, .wrs = 1, .reqs = 1, .bytes = 8);
	NOTED(&t, 3, .event = WEIR_TRACE_IN_DOUBT, .rc = -ECONNRESET, .reqs = 1, .bytes = 8);
	assert_int_equal(weir_engine_channel_up(&t.b->engine, 0, 64), 0);
	NOTED(&t, 4, .event = WEIR_TRACE_UP);
	bench_pull(t.b);
	assert_int_equal(t.b->nr_done, 1);
	weir_engine_channel_down(&t.b->engine, 0);
	NOTED(&t, 5, .event = WEIR_TRACE_DOWN);
	bench_free(t.b);
}

static void records_missed_deadlines(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_READ, 0, 8);
	struct traced t;

	(void)state;
	traced_init(&t, 64 * KIB, 1);
	req.deadline_ns = 10;
	bench_submit(t.b, &req);
	weir_engine_expired(&t.b->engine, 12);
	NOTED(&t, 1, .at_ns = 12, .event = WEIR_TRACE_LATE, .rc = -ETIMEDOUT, .wrs = 1, .reqs = 1,
	      .bytes = 8);
	bench_complete(t.b, 0, -ECONNRESET);
	bench_free(t.b);
}

static void twice(struct weir_window_learner *learner, const struct weir_window *w,
		  const struct weir_window_success *success, struct weir_window_bounds *limits)
{
	(void)learner;
	(void)success;
	limits->bytes = 2 * w->bytes_max;
	limits->wrs = w->wrs_max + 3;
}

static void says_where_the_limit_went(void **state)
{
	const struct weir_window_bounds least = { 16 * KIB, 2 };
	struct weir_window_learner learner = { .completed = twice };
	struct weir_req req = bench_req(WEIR_OP_READ, 0, 8);
	struct traced t;

	(void)state;
	traced_init(&t, 64 * KIB, 1);
	assert_int_equal(weir_window_set_learner(&t.b->window, &learner, &least), 0);
	bench_submit(t.b, &req);
	bench_complete(t.b, 0, 0);
	NOTED(&t, 1, .event = WEIR_TRACE_LIMIT, .bytes = 32 * KIB, .wrs = 5);
	bench_free(t.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("a ring has a power of two of slots", a_ring_is_a_power_of_two),
		SAYS("the last records can be read, and no others", the_last_can_be_read),
		SAYS("a trace needs no reader", a_trace_needs_no_reader),
		SAYS("a record read during writing is consistent", a_record_read_is_consistent),
		SAYS("the trace records merges and chains", records_merges_and_chains),
		SAYS("the trace has no record of a single request posted at once",
		     records_no_single_request),
		SAYS("the trace records failures and retries", records_failures_and_retries),
		SAYS("the trace records the device's status of a failure",
		     records_the_devices_status),
		SAYS("the trace records each wait for the window once",
		     records_waits_for_the_window),
		SAYS("the trace records channels' states and requests in doubt",
		     records_channels_and_requests_in_doubt),
		SAYS("the trace records missed deadlines", records_missed_deadlines),
		SAYS("it says where the limit went", says_where_the_limit_went),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
