/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib order; devices: softnic rxe; timeout: 180 */
/*
 * The order promise under threads: overlapping requests take effect in the order submitted.
 * Each thread submits a request and applies it to a naive memory under one lock. A read must
 * return the naive content of that moment.
 *
 * WEIR_TEST_SEED repeats a run.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/rng.h"
#include "tests/support/libweir_fixture.h"

#define REGION_BYTES (256u << 10) /* small, so that most requests overlap another */
#define LENGTH_MAX (96u << 10) /* both requests that end inside the post and requests that do not */
#define THREADS 4
#define SLOTS 16 /* requests in flight of one thread */
#define ROUNDS 1500

struct test;

/* A request in flight, and the result that a read must return. */
struct order_slot {
	struct test *test;
	char *buffer;
	char *expected;
	size_t length;
	bool is_read;
	int busy; /* atomic */
};

struct test {
	struct weir_region *region;
	struct weir_pool *pool;
	pthread_mutex_t lock; /* guards submit and @naive */
	char naive[REGION_BYTES];
	int wrong; /* atomic */
};

struct order_worker {
	pthread_t thread;
	struct test *test;
	uint64_t seed;
	struct order_slot slots[SLOTS];
};

static void slot_done(void *arg, int status)
{
	struct order_slot *slot = arg;

	if (status || (slot->is_read && memcmp(slot->buffer, slot->expected, slot->length)))
		__atomic_fetch_add(&slot->test->wrong, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->busy, 0, __ATOMIC_RELEASE);
}

static size_t random_length(uint64_t *seed)
{
	static const size_t most[] = { 64, 4096, LENGTH_MAX };

	return 1 + weir_rng_next(seed) % most[weir_rng_next(seed) % 3];
}

static void submit(struct order_slot *slot, uint64_t *seed)
{
	struct test *t = slot->test;
	struct weir_completion completion = { .done = slot_done, .arg = slot };
	struct weir_iov iov;
	uint64_t offset;
	int rc;

	slot->length = random_length(seed);
	slot->is_read = weir_rng_next(seed) % 2;
	slot->busy = 1;
	offset = weir_rng_next(seed) % (REGION_BYTES - slot->length + 1);
	iov = (struct weir_iov){ slot->buffer, slot->length, weir_pool_memory(t->pool) };
	memset(slot->buffer, (int)weir_rng_next(seed), slot->length);

	pthread_mutex_lock(&t->lock);
	if (slot->is_read) {
		memcpy(slot->expected, t->naive + offset, slot->length);
		rc = weir_read_async(t->region, offset, &iov, 1, &completion, NULL);
	} else {
		memcpy(t->naive + offset, slot->buffer, slot->length);
		rc = weir_write_async(t->region, offset, &iov, 1, &completion, NULL);
	}
	pthread_mutex_unlock(&t->lock);
	if (rc)
		slot_done(slot, rc);
}

static void wait_free(struct order_slot *slot)
{
	while (__atomic_load_n(&slot->busy, __ATOMIC_ACQUIRE))
		usleep(50);
}

static void *work(void *arg)
{
	const int rounds = fixture_rounds(ROUNDS);
	struct order_worker *w = arg;
	int i;

	for (i = 0; i < rounds; i++) {
		struct order_slot *slot = &w->slots[weir_rng_next(&w->seed) % SLOTS];

		wait_free(slot);
		submit(slot, &w->seed);
	}
	for (i = 0; i < SLOTS; i++)
		wait_free(&w->slots[i]);
	return NULL;
}

static uint64_t seed_of_run(void)
{
	const char *given = getenv("WEIR_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : now_ns() | 1;

	print_message("WEIR_TEST_SEED=%#llx\n", (unsigned long long)seed);
	return seed;
}

static void workers_init(struct order_worker *workers, struct test *t, uint64_t seed)
{
	int i, j;

	for (i = 0; i < THREADS; i++) {
		workers[i].test = t;
		workers[i].seed = weir_rng_next(&seed) | 1;
		for (j = 0; j < SLOTS; j++)
			workers[i].slots[j] = (struct order_slot){
				.test = t,
				.buffer = weir_pool_get(t->pool),
				.expected = malloc(LENGTH_MAX),
			};
	}
}

static void workers_fini(struct order_worker *workers)
{
	int i, j;

	for (i = 0; i < THREADS; i++) {
		for (j = 0; j < SLOTS; j++) {
			weir_pool_put(workers[i].test->pool, workers[i].slots[j].buffer);
			free(workers[i].slots[j].expected);
		}
	}
}

static void run_workers(const struct weir_session_options *options)
{
	static struct order_worker workers[THREADS];
	struct test *t = calloc(1, sizeof(*t));
	char *found = malloc(REGION_BYTES);
	struct weir_session *session;
	struct donor_process donor;
	int i;

	donor_process_start(&donor, "4194304", NULL);
	session = session_to(&donor, options);
	t->region = region_of(session, REGION_BYTES);
	pthread_mutex_init(&t->lock, NULL);
	assert_int_equal(weir_pool_create(session, LENGTH_MAX, THREADS * SLOTS, &t->pool, NULL), 0);
	workers_init(workers, t, seed_of_run());

	for (i = 0; i < THREADS; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	for (i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	assert_int_equal(t->wrong, 0);
	assert_int_equal(weir_read(t->region, 0, found, REGION_BYTES), 0);
	assert_memory_equal(found, t->naive, REGION_BYTES);

	workers_fini(workers);
	weir_pool_destroy(t->pool);
	weir_region_close(t->region);
	weir_session_close(session);
	donor_process_stop(&donor);
	free(found);
	free(t);
}

static void overlapping_requests_keep_their_order(void **in)
{
	(void)in;
	run_workers(NULL);
}

static void also_over_many_channels(void **in)
{
	struct weir_session_options options = { .channels = 8, TUNING(.depth = 4) };

	(void)in;
	run_workers(&options);
}

static void also_with_little_room(void **in)
{
	struct weir_session_options options = { TUNING(.window_bytes = 64 << 10, .depth = 1) };

	(void)in;
	run_workers(&options);
}

static void also_where_small_writes_are_unloaded(void **in)
{
	struct weir_session_options options = { .unload = WEIR_UNLOAD_ALWAYS };

	(void)in;
	run_workers(&options);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(overlapping_requests_keep_their_order),
		cmocka_unit_test(also_over_many_channels),
		cmocka_unit_test(also_with_little_room),
		cmocka_unit_test(also_where_small_writes_are_unloaded),
	};

	fixture_runs_on("softnic rxe");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
