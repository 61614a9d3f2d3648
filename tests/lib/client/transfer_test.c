/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib transfer; devices: softnic rxe; timeout: 180 */
/* Reads, writes and atomics, blocking and not, and all ways to learn of completions. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/rng.h"
#include "tests/support/libweir_fixture.h"

#define LENGTH (8u * MIB)

struct transfer_state {
	struct donor_process donor;
	struct weir_session *session;
	struct weir_region *region;
};

static int setup_with(void **out, const struct weir_session_options *options)
{
	struct transfer_state *s = calloc(1, sizeof(*s));

	donor_process_start(&s->donor, "64000000", NULL);
	s->session = session_to(&s->donor, options);
	s->region = region_of(s->session, LENGTH);
	*out = s;
	return 0;
}

static int setup(void **out)
{
	return setup_with(out, NULL);
}

static int setup_no_thread(void **out)
{
	return setup_with(out, &(struct weir_session_options){ .no_thread = true });
}

static int teardown(void **in)
{
	struct transfer_state *s = *in;

	weir_region_close(s->region);
	weir_session_close(s->session);
	donor_process_stop(&s->donor);
	free(s);
	return 0;
}

static void fill(char *bytes, size_t length, uint64_t seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		bytes[i] = (char)(weir_rng_next(&seed) >> 56);
}

/* Lengths around every limit of the path: bounce buffers, fragments, the window. */
static void blocking_of_every_size(void **in)
{
	static const size_t lengths[] = { 1,	 7,	  64,  4096,	65535,	65536,
					  65537, 1000000, MIB, MIB + 1, 5 * MIB };
	char *sent = malloc(LENGTH), *got = malloc(LENGTH);
	struct transfer_state *s = *in;
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		fill(sent, lengths[i], i + 1);
		memset(got, 0, lengths[i]);
		assert_int_equal(weir_write(s->region, i * 13, sent, lengths[i]), 0);
		assert_int_equal(weir_read(s->region, i * 13, got, lengths[i]), 0);
		assert_memory_equal(sent, got, lengths[i]);
	}
	free(sent);
	free(got);
}

static void new_region_is_zero(void **in)
{
	struct transfer_state *s = *in;
	char *got = malloc(LENGTH);
	size_t i;

	assert_int_equal(weir_read(s->region, 0, got, LENGTH), 0);
	for (i = 0; i < LENGTH; i++)
		assert_int_equal(got[i], 0);
	free(got);
}

static void out_of_bounds_is_refused(void **in)
{
	struct transfer_state *s = *in;
	uint64_t end = weir_region_length(s->region);
	char byte = 0;

	assert_int_equal(weir_read(s->region, end, &byte, 1), -EINVAL);
	assert_int_equal(weir_write(s->region, end - 1, &byte, 2), -EINVAL);
	assert_int_equal(weir_write(s->region, UINT64_MAX, &byte, 2), -EINVAL);
	assert_int_equal(weir_write(s->region, 0, &byte, 0), -EINVAL);
	assert_int_equal(weir_fetch_add(s->region, 4, 1, NULL), -EINVAL);
	assert_int_equal(weir_write(s->region, end - 1, &byte, 1), 0);
}

static void atomics_return_what_was_there(void **in)
{
	struct transfer_state *s = *in;
	uint64_t old = 1, value = 40;

	assert_int_equal(weir_write(s->region, 16, &value, 8), 0);
	assert_int_equal(weir_fetch_add(s->region, 16, 2, &old), 0);
	assert_int_equal(old, 40);
	assert_int_equal(weir_compare_swap(s->region, 16, 41, 7, &old), 0);
	assert_int_equal(old, 42);
	assert_int_equal(weir_compare_swap(s->region, 16, 42, 7, &old), 0);
	assert_int_equal(old, 42);
	assert_int_equal(weir_read(s->region, 16, &value, 8), 0);
	assert_int_equal(value, 7);
}

#define ADDERS 4
#define ADDS 2000

static void *add(void *arg)
{
	int i;

	for (i = 0; i < ADDS; i++)
		assert_int_equal(weir_fetch_add(arg, 8, 1, NULL), 0);
	return NULL;
}

static void no_addition_is_lost_between_threads(void **in)
{
	struct transfer_state *s = *in;
	pthread_t threads[ADDERS];
	uint64_t sum;
	int i;

	for (i = 0; i < ADDERS; i++)
		pthread_create(&threads[i], NULL, add, s->region);
	for (i = 0; i < ADDERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(weir_read(s->region, 8, &sum, 8), 0);
	assert_int_equal(sum, ADDERS * ADDS);
}

static void pieces_are_gathered_and_scattered(void **in)
{
	struct transfer_state *s = *in;
	struct weir_completion completion = { .done = tally_done };
	struct completion_tally tally = { 0 };
	struct weir_iov iov[8];
	struct weir_pool *pool;
	char *a, *b;
	int i;

	assert_int_equal(weir_pool_create(s->session, 65536, 2, &pool, NULL), 0);
	a = weir_pool_get(pool);
	b = weir_pool_get(pool);
	assert_null(weir_pool_get(pool));
	fill(a, 65536, 5);
	memset(b, 0, 65536);
	completion.arg = &tally;
	for (i = 0; i < 8; i++)
		iov[i] = (struct weir_iov){ a + i * 8192, 1000, weir_pool_memory(pool) };
	assert_int_equal(weir_write_async(s->region, 0, iov, 8, &completion, NULL), 0);
	for (i = 0; i < 8; i++)
		iov[i].addr = b + i * 8192;
	assert_int_equal(weir_read_async(s->region, 0, iov, 8, &completion, NULL), 0);
	tally_wait(&tally, 2);
	assert_int_equal(tally.status, 0);
	for (i = 0; i < 8; i++)
		assert_memory_equal(a + i * 8192, b + i * 8192, 1000);
	weir_pool_put(pool, a);
	weir_pool_put(pool, b);
	weir_pool_destroy(pool);
}

static void blocking_pieces_reach_registered_memory_straight(void **in)
{
	struct transfer_state *s = *in;
	struct weir_session_info before, after;
	struct weir_memory *memory;
	char bytes[3 * 4096], loose[100];
	struct weir_iov iov[2] = { { bytes, 4096, NULL }, { bytes + 8192, 100, NULL } };

	fill(bytes, sizeof(bytes), 6);
	assert_int_equal(weir_memory_register(s->session, bytes, sizeof(bytes), &memory, NULL), 0);
	iov[0].memory = iov[1].memory = memory;
	weir_session_info(s->session, &before, sizeof(before));
	assert_int_equal(weir_writev(s->region, 10, iov, 2), 0);
	iov[0].addr = bytes + 4096;
	assert_int_equal(weir_readv(s->region, 10, iov, 1), 0);
	weir_session_info(s->session, &after, sizeof(after));
	assert_memory_equal(bytes + 4096, bytes, 4096);
	assert_int_equal(after.pre - before.pre + after.dyn - before.dyn, 0);

	iov[0] = (struct weir_iov){ loose, 100, NULL };
	assert_int_equal(weir_readv(s->region, 10 + 4096, iov, 1), 0);
	assert_memory_equal(loose, bytes + 8192, 100);
	iov[0] = (struct weir_iov){ bytes + 8192, 4097, memory };
	assert_int_equal(weir_readv(s->region, 0, iov, 1), -EINVAL);
	assert_int_equal(weir_writev(s->region, 0, iov, 0), -EINVAL);
	weir_memory_deregister(memory);
}

static void memory_that_is_not_registered_is_refused(void **in)
{
	struct transfer_state *s = *in;
	struct completion_tally tally = { 0 };
	struct weir_completion completion = { .done = tally_done, .arg = &tally };
	struct weir_memory *memory;
	char bytes[8192];
	struct weir_iov iov = { bytes + 4096, 4097, NULL };

	assert_int_equal(weir_memory_register(s->session, bytes, sizeof(bytes), &memory, NULL), 0);
	iov.memory = memory;
	assert_int_equal(weir_read_async(s->region, 0, &iov, 1, &completion, NULL), -EINVAL);
	assert_int_equal(weir_read_async(s->region, 0, &iov, 0, &completion, NULL), -EINVAL);
	assert_int_equal(weir_read_async(s->region, 0, &iov, 9, &completion, NULL), -EINVAL);
	iov.length = 4096;
	assert_int_equal(weir_read_async(s->region, 0, &iov, 1, &completion, NULL), 0);
	tally_wait(&tally, 1);
	weir_memory_deregister(memory);
}

/*
 * A callback that submits the next request. If submit ran callbacks itself, the stack would
 * overflow.
 */
struct chain {
	struct transfer_state *state;
	struct weir_pool *pool;
	void *buffer;
	struct completion_tally tally;
	int left;
	int nested;
};

static void chain_done(void *arg, int status);

static void chain_on(struct chain *chain)
{
	struct weir_completion completion = { .done = chain_done, .arg = chain };
	struct weir_iov iov = { chain->buffer, 64, weir_pool_memory(chain->pool) };
	int rc = weir_read_async(chain->state->region, 0, &iov, 1, &completion, NULL);

	if (rc)
		tally_done(&chain->tally, rc);
}

static void chain_done(void *arg, int status)
{
	static _Thread_local int depth;
	struct chain *chain = arg;

	chain->nested += depth++ > 0;
	if (chain->left-- == 0 || status)
		tally_done(&chain->tally, status);
	else
		chain_on(chain);
	depth--;
}

static void callbacks_do_not_nest(void **in)
{
	struct chain chain = { .state = *in, .left = 3000 };

	assert_int_equal(weir_pool_create(chain.state->session, 64, 1, &chain.pool, NULL), 0);
	chain.buffer = weir_pool_get(chain.pool);
	chain_on(&chain);
	tally_wait(&chain.tally, 1);
	assert_int_equal(chain.tally.status, 0);
	assert_int_equal(chain.nested, 0);
	weir_pool_destroy(chain.pool);
}

#define MANY 500

/* Submit @count writes of @length that complete to @queue. */
static void submit_many(struct transfer_state *s, struct weir_pool *pool, void *buffer,
			size_t length, int count, struct weir_queue *queue)
{
	struct weir_iov iov = { buffer, length, weir_pool_memory(pool) };
	int i;

	for (i = 0; i < count; i++) {
		struct weir_completion completion = { .queue = queue, .arg = (void *)(intptr_t)i };

		assert_int_equal(weir_write_async(s->region, 0, &iov, 1, &completion, NULL), 0);
	}
}

static void a_queue_tells_each_once(void **in)
{
	struct transfer_state *s = *in;
	struct weir_event events[7];
	struct weir_queue *queue;
	struct weir_pool *pool;
	bool seen[MANY] = { false };
	int got, i, total = 0;
	struct pollfd pollfd = { .events = POLLIN };

	assert_int_equal(weir_queue_create(&queue), 0);
	assert_int_equal(weir_pool_create(s->session, 4096, 1, &pool, NULL), 0);
	assert_int_equal(weir_queue_poll(queue, events, 7), 0);
	assert_int_equal(weir_queue_wait(queue, events, 7, 10), 0);
	pollfd.fd = weir_queue_fd(queue);
	assert_int_equal(poll(&pollfd, 1, 0), 0);

	submit_many(s, pool, weir_pool_memory(pool) ? weir_pool_get(pool) : NULL, 4096, MANY,
		    queue);
	assert_int_equal(poll(&pollfd, 1, 10000), 1);
	while (total < MANY) {
		got = weir_queue_wait(queue, events, 7, 10000);
		assert_true(got > 0);
		for (i = 0; i < got; i++) {
			assert_int_equal(events[i].status, 0);
			assert_false(seen[(intptr_t)events[i].arg]);
			seen[(intptr_t)events[i].arg] = true;
		}
		total += got;
	}
	assert_int_equal(weir_queue_poll(queue, events, 7), 0);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	weir_queue_destroy(queue);
	weir_pool_destroy(pool);
}

#define TOGETHER 16

static void submit_neighbours(struct transfer_state *s, struct weir_pool *pool, char *buffers,
			      struct weir_queue *queue)
{
	struct weir_transfer transfers[TOGETHER];
	struct weir_iov iovs[TOGETHER];
	int i;

	for (i = 0; i < TOGETHER; i++) {
		iovs[i] = (struct weir_iov){ buffers + i * 4096, 4096, weir_pool_memory(pool) };
		transfers[i] = (struct weir_transfer){
			.direction = WEIR_WRITE,
			.region = s->region,
			.offset = (uint64_t)i * 4096,
			.iov = &iovs[i],
			.iovcnt = 1,
			.completion = { .queue = queue },
		};
	}
	assert_int_equal(weir_transfer_async(transfers, TOGETHER, NULL), 0);
}

static void *submit_in_rounds(void *arg)
{
	struct transfer_state *s = ((void **)arg)[0];
	struct weir_queue *queue = ((void **)arg)[1];
	struct weir_pool *pool;
	char *buffers;
	int i, rounds = fixture_rounds(200);

	assert_int_equal(weir_pool_create(s->session, TOGETHER * 4096, 1, &pool, NULL), 0);
	buffers = weir_pool_get(pool);
	for (i = 0; i < rounds; i++)
		submit_neighbours(s, pool, buffers, queue);
	assert_int_equal(weir_flush(s->session), 0);
	weir_pool_destroy(pool);
	return NULL;
}

/* The requests share one WR. A waiter woken by the first would find only some. */
static void what_completes_together_is_found_together(void **in)
{
	struct weir_event events[TOGETHER];
	struct weir_queue *queue;
	void *arg[] = { *in, NULL };
	int i, rounds = fixture_rounds(200);
	pthread_t thread;

	assert_int_equal(weir_queue_create(&queue), 0);
	arg[1] = queue;
	pthread_create(&thread, NULL, submit_in_rounds, arg);
	for (i = 0; i < rounds; i++)
		assert_int_equal(weir_queue_wait(queue, events, TOGETHER, -1), TOGETHER);
	pthread_join(thread, NULL);
	weir_queue_destroy(queue);
}

static void *wake(void *queue)
{
	weir_queue_wake(queue);
	return NULL;
}

static void who_waits_for_a_queue_may_be_woken(void **in)
{
	struct weir_queue *queue;
	struct weir_event event;
	pthread_t thread;

	(void)in;
	assert_int_equal(weir_queue_create(&queue), 0);
	pthread_create(&thread, NULL, wake, queue);
	assert_int_equal(weir_queue_wait(queue, &event, 1, -1), 0);
	pthread_join(thread, NULL);
	assert_int_equal(weir_queue_wait(queue, &event, 1, 1), 0);
	weir_queue_destroy(queue);
}

/* When a completion leaves the queue, its handle may already belong to another request. */
static void a_queue_goes_with_no_handle(void **in)
{
	struct transfer_state *s = *in;
	struct weir_completion completion = { 0 };
	struct weir_request *request;
	struct weir_pool *pool;
	struct weir_iov iov = { .length = 4096 };

	assert_int_equal(weir_queue_create(&completion.queue), 0);
	assert_int_equal(weir_pool_create(s->session, 4096, 1, &pool, NULL), 0);
	iov.addr = weir_pool_get(pool);
	iov.memory = weir_pool_memory(pool);
	assert_int_equal(weir_write_async(s->region, 0, &iov, 1, &completion, &request), -EINVAL);
	weir_queue_destroy(completion.queue);
	weir_pool_destroy(pool);
}

static void without_a_thread_the_descriptor_drives(void **in)
{
	const size_t length = fixture_scaled(4 * MIB);
	struct transfer_state *s = *in;
	struct pollfd pollfd = { .fd = weir_session_fd(s->session), .events = POLLIN };
	struct weir_event events[16];
	struct weir_queue *queue;
	struct weir_pool *pool;
	int i, got, total = 0;

	assert_int_equal(weir_queue_create(&queue), 0);
	assert_int_equal(weir_pool_create(s->session, length, 1, &pool, NULL), 0);
	submit_many(s, pool, weir_pool_get(pool), length, 16, queue);
	for (; total < 16; total += got) {
		got = weir_queue_poll(queue, events, 16);
		for (i = 0; i < got; i++)
			assert_int_equal(events[i].status, 0);
		if (!got && !weir_session_process(s->session))
			assert_int_equal(poll(&pollfd, 1, 9000), 1); /* sooner than any deadline */
	}
	weir_queue_destroy(queue);
	weir_pool_destroy(pool);
}

static void count_answer(void *arg, int status, const void *reply, size_t length)
{
	(void)reply;
	(void)length;
	tally_done(arg, status);
}

static void without_a_thread_time_runs_on(void **in)
{
	struct transfer_state *s = *in;
	struct pollfd pollfd = { .fd = weir_session_fd(s->session), .events = POLLIN };
	struct completion_tally tally = { 0 };

	assert_int_equal(weir_call_async(s->session, "n", 1, SECOND_NS / 10, count_answer, &tally),
			 0);
	while (!tally.done) {
		int handled = weir_session_process(s->session);

		/*
		 * If this was not the end, a thread that slept without handling anything would
		 * sleep for ever.
		 */
		assert_true(handled || !tally.done);
		if (!handled)
			assert_int_equal(poll(&pollfd, 1, 5000), 1);
	}
	assert_int_equal(tally.status, -ETIMEDOUT);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
}

static void *transfer_alone(void *arg)
{
	struct transfer_state *s = arg;
	char *bytes = malloc(MIB);
	int i;

	for (i = 0; i < 20; i++)
		assert_int_equal(weir_read(s->region, 0, bytes, MIB), 0);
	free(bytes);
	return NULL;
}

static void without_a_thread_several_may_wait(void **in)
{
	struct transfer_state *s = *in;
	pthread_t threads[3];
	char reply[8];
	size_t length;
	int i;

	for (i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, transfer_alone, s);
	for (i = 0; i < 20; i++)
		assert_int_equal(weir_call(s->session, "l", 1, reply, 8, &length), 0);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static void flush_waits_for_all_before_it(void **in)
{
	struct transfer_state *s = *in;
	struct completion_tally tally = { 0 };
	struct weir_completion completion = { .done = tally_done, .arg = &tally };
	const int writes = fixture_rounds(64);
	struct weir_pool *pool;
	struct weir_iov iov;
	int i;

	assert_int_equal(weir_pool_create(s->session, MIB, 1, &pool, NULL), 0);
	iov = (struct weir_iov){ weir_pool_get(pool), MIB, weir_pool_memory(pool) };
	for (i = 0; i < writes; i++)
		assert_int_equal(weir_write_async(s->region, (unsigned int)i % 8 * MIB, &iov, 1,
						  &completion, NULL),
				 0);
	assert_int_equal(weir_flush(s->session), 0);
	tally_wait(&tally, writes);
	assert_int_equal(tally.status, 0);
	weir_pool_destroy(pool);
}

static void info_counts(void **in)
{
	struct transfer_state *s = *in;
	struct weir_session_info before, after;
	char bytes[100] = { 0 };

	weir_session_info(s->session, &before, sizeof(before));
	assert_int_equal(weir_write(s->region, 0, bytes, 100), 0);
	assert_int_equal(weir_read(s->region, 0, bytes, 50), 0);
	weir_session_info(s->session, &after, sizeof(after));
	assert_int_equal(after.requests - before.requests, 2);
	assert_int_equal(after.work_requests - before.work_requests, 2);
	assert_int_equal(after.bytes_written - before.bytes_written, 100);
	assert_int_equal(after.bytes_read - before.bytes_read, 50);
	assert_int_equal(after.channels, 2);
	assert_true(after.device[0]);
}

int main(void)
{
	static const struct CMUnitTest threaded[] = {
		cmocka_unit_test(new_region_is_zero),
		cmocka_unit_test(blocking_of_every_size),
		cmocka_unit_test(out_of_bounds_is_refused),
		cmocka_unit_test(atomics_return_what_was_there),
		cmocka_unit_test_setup_teardown(no_addition_is_lost_between_threads, setup,
						teardown),
		cmocka_unit_test(pieces_are_gathered_and_scattered),
		cmocka_unit_test(blocking_pieces_reach_registered_memory_straight),
		cmocka_unit_test(memory_that_is_not_registered_is_refused),
		cmocka_unit_test(callbacks_do_not_nest),
		cmocka_unit_test(a_queue_tells_each_once),
		cmocka_unit_test(a_queue_goes_with_no_handle),
		cmocka_unit_test(what_completes_together_is_found_together),
		cmocka_unit_test(who_waits_for_a_queue_may_be_woken),
		cmocka_unit_test(flush_waits_for_all_before_it),
		cmocka_unit_test(info_counts),
	};
	static const struct CMUnitTest alone[] = {
		cmocka_unit_test(new_region_is_zero),
		cmocka_unit_test(blocking_of_every_size),
		cmocka_unit_test_setup_teardown(no_addition_is_lost_between_threads,
						setup_no_thread, teardown),
		cmocka_unit_test(without_a_thread_the_descriptor_drives),
		cmocka_unit_test(without_a_thread_time_runs_on),
		cmocka_unit_test(without_a_thread_several_may_wait),
	};
	int failed;

	fixture_runs_on("softnic rxe");
	failed = cmocka_run_group_tests(threaded, setup, teardown);
	return failed + cmocka_run_group_tests(alone, setup_no_thread, teardown);
}
