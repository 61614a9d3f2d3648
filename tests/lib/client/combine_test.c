/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib combine; suites: lib parallel; devices: softnic-counted rxe; timeout: 180 */
/*
 * Parallel writers, and the WRs made of their requests, counted at the post. Threads meet
 * because a post holds the NIC's lock until all have submitted. So neither the scheduler nor
 * the speed of the device matters.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/rng.h"
#include "tests/support/libweir_fixture.h"
#include "preload/count/count.h"

#define THREADS 8
#define DEPTH 32
#define PAGE 4096
#define PAGES 4096
#define WINDOW_BYTES (256u << 10) /* a quarter of the threads' bytes in flight */
#define FEWER 8 /* times */
#define MEETINGS (PAGES / (THREADS * DEPTH))
#define WAIT_MS 60000

/* All threads walk one range together: each takes the next page. */
struct combine_walk {
	struct weir_region *region;
	struct weir_memory *memory;
	pthread_barrier_t begin;
	char *pages;
	int next; /* atomic */
	int failed; /* atomic */
};

static void submit(struct combine_walk *walk, struct weir_queue *queue, int page)
{
	struct weir_completion completion = { .queue = queue };
	struct weir_iov iov = { walk->pages + page * PAGE, PAGE, walk->memory };

	if (weir_write_async(walk->region, (uint64_t)page * PAGE, &iov, 1, &completion, NULL))
		__atomic_fetch_add(&walk->failed, 1, __ATOMIC_RELAXED);
}

static int wait_some(struct combine_walk *walk, struct weir_queue *queue)
{
	struct weir_event events[DEPTH];
	int i, got = weir_queue_wait(queue, events, DEPTH, WAIT_MS);

	if (!got)
		__atomic_fetch_add(&walk->failed, 1, __ATOMIC_RELAXED);
	for (i = 0; i < got; i++)
		__atomic_fetch_add(&walk->failed, events[i].status != 0, __ATOMIC_RELAXED);
	return got;
}

static void *write_pages(void *arg)
{
	struct combine_walk *walk = arg;
	struct weir_queue *queue;
	int page, under_way = 0, got = 1;

	pthread_barrier_wait(&walk->begin);
	if (weir_queue_create(&queue))
		return NULL;
	while (got && (page = __atomic_fetch_add(&walk->next, 1, __ATOMIC_RELAXED)) < PAGES) {
		submit(walk, queue, page);
		if (++under_way == DEPTH)
			under_way -= got = wait_some(walk, queue);
	}
	while (got && under_way)
		under_way -= got = wait_some(walk, queue);
	weir_queue_destroy(queue);
	return NULL;
}

/* The walk whose threads meet at the next posted read; atomic. The device's own post function. */
static struct combine_walk *meeting;
static int (*device_post)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/*
 * The posting thread holds the NIC's lock, so all requests submitted meanwhile are left to this
 * thread.
 */
static int post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct combine_walk *walk = NULL;

	if (wr->opcode == IBV_WR_RDMA_READ)
		walk = __atomic_exchange_n(&meeting, NULL, __ATOMIC_ACQ_REL);
	if (walk) {
		pthread_barrier_wait(&walk->begin);
		pthread_barrier_wait(&walk->begin);
	}
	return device_post(qp, wr, bad);
}

/*
 * Like write_pages(), but in steps of DEPTH single requests. The barrier stands where all
 * finished the last step, where a thread holds the lock, and where all have submitted.
 */
static void *write_at_meetings(void *arg)
{
	struct combine_walk *walk = arg;
	struct weir_queue *queue = NULL;
	int i, got, step, failed = weir_queue_create(&queue);

	__atomic_fetch_add(&walk->failed, failed != 0, __ATOMIC_RELAXED);
	for (step = 0; step < MEETINGS; step++) {
		pthread_barrier_wait(&walk->begin);
		pthread_barrier_wait(&walk->begin);
		for (i = 0; !failed && i < DEPTH; i++)
			submit(walk, queue, __atomic_fetch_add(&walk->next, 1, __ATOMIC_RELAXED));
		pthread_barrier_wait(&walk->begin);
		for (got = 1; !failed && got && i; i -= got)
			got = wait_some(walk, queue);
	}
	weir_queue_destroy(queue);
	return NULL;
}

static void submit_row(struct combine_walk *walk, struct weir_queue *queue, int page, int count)
{
	struct weir_transfer transfers[DEPTH];
	struct weir_iov iov[DEPTH];
	int i;

	for (i = 0; i < count; i++) {
		iov[i] = (struct weir_iov){ walk->pages + (page + i) * PAGE, PAGE, walk->memory };
		transfers[i] = (struct weir_transfer){
			.direction = WEIR_WRITE,
			.region = walk->region,
			.offset = (uint64_t)(page + i) * PAGE,
			.iov = &iov[i],
			.iovcnt = 1,
			.completion = { .queue = queue },
		};
	}
	if (weir_transfer_async(transfers, (unsigned int)count, NULL))
		__atomic_fetch_add(&walk->failed, 1, __ATOMIC_RELAXED);
}

/* Like write_pages(), but each thread submits DEPTH pages with one call. */
static void *write_rows(void *arg)
{
	struct combine_walk *walk = arg;
	struct weir_queue *queue;
	int page, under_way = 0, got = 1;

	pthread_barrier_wait(&walk->begin);
	if (weir_queue_create(&queue))
		return NULL;
	while (got && (page = __atomic_fetch_add(&walk->next, DEPTH, __ATOMIC_RELAXED)) < PAGES) {
		submit_row(walk, queue, page, DEPTH);
		for (under_way = DEPTH; got && under_way; under_way -= got)
			got = wait_some(walk, queue);
	}
	weir_queue_destroy(queue);
	return NULL;
}

static void begin_threads(struct combine_walk *walk, pthread_t *threads, void *(*run)(void *walk))
{
	int i;

	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run, walk), 0);
}

static void end_threads(pthread_t *threads)
{
	int i;

	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* Each thread submits DEPTH pages with one call. */
static void run_rows(struct weir_session *session, struct combine_walk *walk)
{
	pthread_t threads[THREADS];

	(void)session;
	pthread_barrier_init(&walk->begin, NULL, THREADS);
	begin_threads(walk, threads, write_rows);
	end_threads(threads);
	pthread_barrier_destroy(&walk->begin);
}

/* The threads meet at reads of a page without writers. */
static void run_meetings(struct weir_session *session, struct combine_walk *walk)
{
	struct weir_region *beside = region_of(session, PAGE);
	struct ibv_context *device;
	pthread_t threads[THREADS];
	struct ibv_qp *qp;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	char page[PAGE];
	int i;

	assert_int_equal(weir_session_verbs(session, 0, &pd, &cq, &qp), 0);
	device = qp->context;
	device_post = device->ops.post_send;
	device->ops.post_send = post;
	pthread_barrier_init(&walk->begin, NULL, THREADS + 1);
	begin_threads(walk, threads, write_at_meetings);
	for (i = 0; i < MEETINGS; i++) {
		pthread_barrier_wait(&walk->begin);
		__atomic_store_n(&meeting, walk, __ATOMIC_RELEASE);
		__atomic_fetch_add(&walk->failed, weir_read(beside, 0, page, sizeof(page)) != 0,
				   __ATOMIC_RELAXED);
	}
	end_threads(threads);
	device->ops.post_send = device_post;
	pthread_barrier_destroy(&walk->begin);
}

static void check_pages(struct combine_walk *walk)
{
	char *found = malloc(PAGES * PAGE);

	assert_non_null(found);
	assert_int_equal(weir_read(walk->region, 0, found, PAGES * PAGE), 0);
	assert_memory_equal(found, walk->pages, PAGES * PAGE);
	free(found);
}

typedef void run_fn(struct weir_session *session, struct combine_walk *walk);

/* Return: the number of writes posted to the device. */
static uint64_t walk_with(const struct donor_process *donor, enum weir_batching batching,
			  uint64_t window_bytes, run_fn *run)
{
	const struct weir_session_options options = { .timeout_ns = WAIT_MS * 1000000ull,
						      TUNING(.batching = batching,
							     .window_bytes = window_bytes) };
	struct weir_session *session = session_to(donor, &options);
	struct combine_walk walk = { .region = region_of(session, PAGES * PAGE) };
	struct verbs_counters before, after;
	uint64_t seed = batching;
	size_t i;

	walk.pages = malloc(PAGES * PAGE);
	assert_non_null(walk.pages);
	for (i = 0; i < PAGES * PAGE; i += sizeof(seed))
		*(uint64_t *)(walk.pages + i) = weir_rng_next(&seed);
	assert_int_equal(
		weir_memory_register(session, walk.pages, PAGES * PAGE, &walk.memory, NULL), 0);
	verbs_count_read(&before);
	run(session, &walk);
	verbs_count_read(&after);
	assert_int_equal(walk.failed, 0);
	assert_int_equal(after.posted_write_bytes - before.posted_write_bytes, PAGES * PAGE);
	check_pages(&walk);
	weir_session_close(session);
	free(walk.pages);
	return after.posted_writes - before.posted_writes;
}

static void check_fewer(const struct donor_process *donor, uint64_t window_bytes, run_fn *run)
{
	uint64_t single = walk_with(donor, WEIR_BATCHING_SINGLE, window_bytes, run);
	uint64_t hybrid = walk_with(donor, WEIR_BATCHING_HYBRID, window_bytes, run);

	assert_int_equal(single, PAGES);
	if (hybrid * FEWER > single)
		fail_msg("%llu work requests for %d neighbours", (unsigned long long)hybrid, PAGES);
	print_message("single %llu, hybrid %llu work requests\n", (unsigned long long)single,
		      (unsigned long long)hybrid);
}

static void neighbours_of_many_threads_become_few_work_requests(void **in)
{
	check_fewer(*in, WINDOW_BYTES, run_meetings);
}

/* The window has its default size, and the speed of the device does not matter. */
static void neighbours_that_are_submitted_together_do_so_in_any_window(void **in)
{
	check_fewer(*in, 0, run_rows);
}

/*
 * Two sessions meet at one NIC: a thread of one session may find requests of the other, and
 * must post those too.
 */
static void sessions_of_one_nic_leave_nobody_behind(void **in)
{
	struct combine_walk walks[2];
	struct weir_session *sessions[2];
	pthread_t threads[2 * THREADS];
	int i;

	for (i = 0; i < 2; i++) {
		sessions[i] = session_to(*in, NULL);
		walks[i] = (struct combine_walk){ .region = region_of(sessions[i], PAGES * PAGE) };
		walks[i].pages = calloc(PAGES, PAGE);
		assert_non_null(walks[i].pages);
		memset(walks[i].pages, 1 + i, PAGES * PAGE);
		assert_int_equal(weir_memory_register(sessions[i], walks[i].pages, PAGES * PAGE,
						      &walks[i].memory, NULL),
				 0);
		pthread_barrier_init(&walks[i].begin, NULL, THREADS);
	}
	for (i = 0; i < 2 * THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_pages, &walks[i % 2]), 0);
	for (i = 0; i < 2 * THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < 2; i++) {
		assert_int_equal(walks[i].failed, 0);
		check_pages(&walks[i]);
		weir_session_close(sessions[i]);
		pthread_barrier_destroy(&walks[i].begin);
		free(walks[i].pages);
	}
}

static int start(void **in)
{
	static struct donor_process donor;

	donor_process_start(&donor, "67108864", NULL);
	*in = &donor;
	return 0;
}

static int stop(void **in)
{
	donor_process_stop(*in);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_of_many_threads_become_few_work_requests),
		cmocka_unit_test(neighbours_that_are_submitted_together_do_so_in_any_window),
		cmocka_unit_test(sessions_of_one_nic_leave_nobody_behind),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
