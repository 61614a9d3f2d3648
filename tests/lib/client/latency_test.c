/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib latency; suites: lib parallel; devices: softnic; timeout: 120 */
/* One request in 64 is timed, on every way into the library, and falls on all kinds alike. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/client/session.h"
#include "tests/support/libweir_fixture.h"

#define BYTES 4096u
#define REQUESTS 32768u
#define THREADS 4u
#define BATCH 16u
#define WAIT_MS 60000
#define CROWD 1000

struct latency_fixture {
	struct donor_process donor;
	struct weir_session *session;
	struct weir_region *region;
	struct weir_memory *memory;
	unsigned char bytes[THREADS][BYTES];
	unsigned int threads; /* started; atomic */
};

static struct latency_fixture *open_all(unsigned int channels)
{
	const struct weir_session_options options = { .size = sizeof(options),
						      .channels = channels };
	struct latency_fixture *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	donor_process_start(&s->donor, "16777216", NULL);
	s->session = session_to(&s->donor, &options);
	assert_int_equal(weir_region_create(s->session, NULL, THREADS * BYTES, 0, &s->region, NULL),
			 0);
	assert_int_equal(
		weir_memory_register(s->session, s->bytes, sizeof(s->bytes), &s->memory, NULL), 0);
	return s;
}

static void close_all(struct latency_fixture *s)
{
	weir_session_close(s->session);
	donor_process_stop(&s->donor);
	free(s);
}

/* The session has no lanes lent and nothing in flight: all is counted. */
static struct weir_histogram take(struct latency_fixture *s, enum weir_stats_shm_kind kind)
{
	struct weir_histogram h;

	weir_session_lock(s->session);
	h = s->session->stats_shm->latency[kind];
	weir_session_unlock(s->session);
	return h;
}

/* The standard deviation of the number timed of 32768 is below 13. */
static void assert_one_in_64(const struct weir_histogram *h, unsigned int requests,
			     uint64_t begun_ns)
{
	assert_in_range(h->count, requests / 64 * 3 / 4, requests / 64 * 5 / 4);
	assert_in_range(h->max, 1, weir_now_ns() - begun_ns);
	assert_true(h->sum >= h->count);
}

static void reads_writes_and_atomics_are_timed_apart(void **state)
{
	struct latency_fixture *s = open_all(1);
	uint64_t begun_ns = weir_now_ns(), old;
	struct weir_histogram h;
	unsigned int i;

	(void)state;
	/* Also unregistered memory, in turn with registered. */
	for (i = 0; i < REQUESTS; i++) {
		struct weir_iov iov = { s->bytes[0], BYTES, i & 2 ? s->memory : NULL };

		assert_int_equal(weir_writev(s->region, 0, &iov, 1), 0);
		assert_int_equal(weir_readv(s->region, 0, &iov, 1), 0);
		assert_int_equal(i & 3 ? 0 : weir_fetch_add(s->region, 0, 1, &old), 0);
	}
	h = take(s, WEIR_STATS_SHM_WRITE);
	assert_one_in_64(&h, REQUESTS, begun_ns);
	h = take(s, WEIR_STATS_SHM_READ);
	assert_one_in_64(&h, REQUESTS, begun_ns);
	h = take(s, WEIR_STATS_SHM_ATOMIC);
	assert_in_range(h.count, REQUESTS / 256 / 2, REQUESTS / 256 * 3 / 2);
	close_all(s);
}

/* Writes in batches, and lets the next holder of the lock lend the lanes. */
static void *write_batches(void *arg)
{
	struct latency_fixture *s = arg;
	unsigned int i, k, mine = __atomic_fetch_add(&s->threads, 1, __ATOMIC_RELAXED);
	const struct weir_iov iov = { s->bytes[mine], BYTES, s->memory };
	struct weir_transfer transfers[BATCH];
	struct weir_event events[BATCH];
	struct weir_queue *queue;
	int got;

	assert_int_equal(weir_queue_create(&queue), 0);
	for (i = 0; i < BATCH; i++)
		transfers[i] = (struct weir_transfer){ .direction = WEIR_WRITE,
						       .region = s->region,
						       .offset = (uint64_t)mine * BYTES,
						       .iov = &iov,
						       .iovcnt = 1,
						       .completion = { .queue = queue } };
	for (i = 0; i < REQUESTS / BATCH; i++) {
		__atomic_store_n(&s->session->lanes.loans.paused, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&s->session->nic->crowd, CROWD, __ATOMIC_RELAXED);
		assert_int_equal(weir_transfer_async(transfers, BATCH, NULL), 0);
		for (k = 0; k < BATCH; k += (unsigned int)got) {
			got = weir_queue_wait(queue, events, BATCH, WAIT_MS);
			assert_in_range(got, 1, BATCH);
		}
	}
	weir_queue_destroy(queue);
	return NULL;
}

static void threads_and_their_lanes_are_timed(void **state)
{
	struct latency_fixture *s = open_all(3);
	uint64_t begun_ns = weir_now_ns();
	pthread_t threads[THREADS];
	struct weir_histogram h;
	unsigned int i;

	(void)state;
	weir_session_lock(s->session);
	s->session->lanes.loans.since_ns = s->session->lanes.loans.engine_rate = 1;
	weir_session_unlock(s->session);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_batches, s), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	h = take(s, WEIR_STATS_SHM_WRITE);
	assert_true(s->session->counters->unlocked);
	assert_int_equal(s->session->counters->requests, THREADS * REQUESTS);
	assert_one_in_64(&h, THREADS * REQUESTS, begun_ns);
	close_all(s);
}

static void a_request_that_fails_is_not_counted(void **state)
{
	struct latency_fixture *s = open_all(1);
	struct weir_histogram before, after;
	unsigned int i;

	(void)state;
	assert_int_equal(weir_write(s->region, 0, s->bytes[0], BYTES), 0);
	before = take(s, WEIR_STATS_SHM_WRITE);
	donor_process_kill(&s->donor);
	for (i = 0; i < 1024; i++)
		assert_int_not_equal(weir_write(s->region, 0, s->bytes[0], BYTES), 0);
	after = take(s, WEIR_STATS_SHM_WRITE);
	assert_int_equal(after.count, before.count);
	weir_session_close(s->session);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_writes_and_atomics_are_timed_apart),
		cmocka_unit_test(threads_and_their_lanes_are_timed),
		cmocka_unit_test(a_request_that_fails_is_not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
