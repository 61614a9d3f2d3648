/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: donor memory worker; suites: wire; timeout: 120 */
/* The thread that populates and zeroes memory: keys and jobs take turns, slice by slice. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/donor/memory_worker.h"
#include "tests/support/donor_fixture.h"

#define JOBS_MAX 4
#define LARGE (64u << 20)

static struct weir_arena arena;
static struct weir_memory_worker worker;
static struct weir_memory_job jobs[JOBS_MAX];
static struct weir_arena_extent *extents[JOBS_MAX];
static int wake_fd;

static int setup(void **state)
{
	(void)state;
	memset(jobs, 0, sizeof(jobs));
	assert_int_equal(weir_arena_init(&arena, 4 * LARGE, false, NULL), 0);
	assert_int_equal(weir_memory_worker_init(&worker, &arena, 2), 0);
	wake_fd = eventfd(0, EFD_CLOEXEC);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	weir_memory_worker_stop(&worker);
	weir_memory_worker_fini(&worker);
	weir_arena_fini(&arena);
	close(wake_fd);
	return 0;
}

static struct weir_memory_job *job_make(unsigned int i, unsigned int key, uint64_t length)
{
	assert_int_equal(weir_arena_take(&arena, length, &extents[i]), 0);
	jobs[i].extent = extents[i];
	jobs[i].key = key;
	weir_list_init(&jobs[i].link);
	return &jobs[i];
}

/* Return: index of the next job that the worker finishes. */
static unsigned int next_finished(void)
{
	struct weir_memory_job *job = NULL;

	assert_soon((job = weir_memory_worker_finished(&worker)));
	return job - jobs;
}

static void start(void)
{
	assert_int_equal(weir_memory_worker_start(&worker, wake_fd, NULL), 0);
}

static void a_small_job_is_not_behind_a_large_one(void **state)
{
	(void)state;
	weir_memory_worker_populate(&worker, job_make(0, 0, LARGE));
	weir_memory_worker_populate(&worker, job_make(1, 0, LARGE));
	weir_memory_worker_populate(&worker, job_make(2, 0, WEIR_ARENA_PAGE));
	weir_memory_worker_populate(&worker, job_make(3, 1, 2 * WEIR_MEMORY_SLICE));
	start();
	/* Key 1's second slice is the fourth in all; key 0's small job is its third. */
	assert_int_equal(next_finished(), 3);
	assert_int_equal(next_finished(), 2);
	assert_int_equal(next_finished(), 0);
	assert_int_equal(next_finished(), 1);
	assert_int_equal(jobs[1].done, LARGE);
}

static void one_key_with_many_jobs_takes_no_more_turns(void **state)
{
	(void)state;
	weir_memory_worker_populate(&worker, job_make(0, 0, 8 * WEIR_MEMORY_SLICE));
	weir_memory_worker_populate(&worker, job_make(1, 0, 8 * WEIR_MEMORY_SLICE));
	weir_memory_worker_populate(&worker, job_make(2, 0, 8 * WEIR_MEMORY_SLICE));
	weir_memory_worker_populate(&worker, job_make(3, 1, 12 * WEIR_MEMORY_SLICE));
	start();
	/* Of 24 and 12 slices, the first 12 turns of each key alternate. */
	assert_int_equal(next_finished(), 3);
}

static void zeroing_replaces_populating_and_leaves_only_zeroes(void **state)
{
	struct weir_memory_job *job;
	uint64_t i;

	(void)state;
	weir_memory_worker_populate(&worker, job_make(0, 0, LARGE));
	memset(extents[0]->addr, 0xa5, LARGE);
	start();
	assert_soon(weir_memory_worker_finished(&worker));
	weir_memory_worker_populate(&worker, job_make(1, 1, LARGE));
	memset(extents[1]->addr, 0x5a, LARGE);
	weir_memory_worker_zero(&worker, &jobs[1]);
	assert_soon((job = weir_memory_worker_finished(&worker)) && job->zeroes);
	assert_null(weir_memory_worker_finished(&worker));
	for (i = 0; i < LARGE; i++)
		if (extents[1]->addr[i])
			fail_msg("byte %llu is not zero", (unsigned long long)i);
}

static void a_cancelled_job_ends_early(void **state)
{
	(void)state;
	weir_memory_worker_populate(&worker, job_make(0, 0, LARGE));
	weir_memory_worker_cancel(&worker, &jobs[0]);
	start();
	assert_int_equal(next_finished(), 0);
	assert_int_equal(jobs[0].status, -ECANCELED);
	assert_true(jobs[0].done <= WEIR_MEMORY_SLICE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_small_job_is_not_behind_a_large_one, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_key_with_many_jobs_takes_no_more_turns, setup,
						teardown),
		cmocka_unit_test_setup_teardown(zeroing_replaces_populating_and_leaves_only_zeroes,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_cancelled_job_ends_early, setup, teardown),
	};

	return cmocka_run_group_tests_name("memory worker", tests, NULL, NULL);
}
