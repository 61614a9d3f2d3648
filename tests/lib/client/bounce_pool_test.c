/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib bounce pool; devices: softnic; timeout: 180 */
/* Copied requests that find no free buffer: they are refused, or wait. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/libweir_fixture.h"

#define KIB 1024u
#define SLOW_NS (SECOND_NS * 3 / 10) /* of the wire, with the argument "slow" */

/*
 * 4 MiB of buffers hold 8 of the longest copies. Without a thread, no buffer comes back while a
 * callback submits. With a thread buffers may come back, and the loop still ends.
 */
#define FULL 8
#define SUBMITTED_MAX 64

struct full {
	struct weir_region *region;
	char *bytes;
	struct completion_tally tally;
	int submitted, rc;
	pthread_t thread;
	bool is_full; /* (nearly) full, and the fields above are set; atomic */
	int ended;
};

static uint64_t time_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static struct weir_session *session_with_few_buffers(bool no_thread)
{
	const struct weir_session_options options = { .timeout_ns = 100 * SECOND_NS,
						      .no_thread = no_thread,
						      TUNING(.mr = WEIR_MR_PRE,
							     .pool_bytes_max = 4 * MIB) };

	return session_to(&group_donor, &options);
}

static void submit(struct full *full, int status)
{
	struct weir_completion completion = { .done = tally_done, .arg = &full->tally };
	struct weir_iov iov = { full->bytes, 512 * KIB, NULL };

	assert_int_equal(status, 0);
	full->submitted = 0;
	do
		full->rc = weir_write_async(full->region, 0, &iov, 1, &completion, NULL);
	while (!full->rc && ++full->submitted < SUBMITTED_MAX);
}

static void submit_until_refused(void *arg, int status)
{
	struct full *full = arg;

	submit(full, status);
	__atomic_store_n(&full->is_full, true, __ATOMIC_RELEASE);
}

/* Fill the buffers with @fill, and wait until all submitted requests are done. */
static void fill_up(struct weir_session *session, struct full *full, weir_done_fn *fill)
{
	struct weir_completion completion = { .done = fill, .arg = full };

	full->tally = (struct completion_tally){ 0 };
	full->is_full = false;
	assert_int_equal(weir_barrier_async(session, &completion), 0);
	while (!__atomic_load_n(&full->is_full, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&full->tally.done, __ATOMIC_ACQUIRE) < full->submitted)
		weir_session_process(session);
	assert_int_equal(full->tally.status, 0);
}

static void assert_refused_when_full(const struct full *full)
{
	assert_int_equal(full->submitted, FULL);
	assert_int_equal(full->rc, -EAGAIN);
}

static void what_is_copied_has_its_bounds(void **in)
{
	struct weir_session *session = session_with_few_buffers(true);
	struct full full = { .region = region_of(session, MIB), .bytes = calloc(1, 512 * KIB) };
	struct weir_session_info info;
	int i;

	(void)in;
	for (i = 1; i <= 3; i++) {
		fill_up(session, &full, submit_until_refused);
		assert_refused_when_full(&full);
		weir_session_info(session, &info, sizeof(info));
		assert_int_equal(info.pre, i * FULL);
		assert_int_equal(info.dyn, 0);
	}
	weir_session_close(session);
	free(full.bytes);
}

/* A blocking copy, and an atomic, which needs a buffer too. */
static void *block(void *arg)
{
	struct full *full = arg;
	char to[100], back[100] = { 0 };
	uint64_t old = 1;

	memset(to, 'x', sizeof(to));
	full->ended = weir_write(full->region, 600 * KIB, to, sizeof(to));
	if (!full->ended)
		full->ended = weir_fetch_add(full->region, 700 * KIB, 5, &old);
	if (!full->ended)
		full->ended = weir_read(full->region, 600 * KIB, back, sizeof(back));
	if (!full->ended && (old || memcmp(to, back, sizeof(to))))
		full->ended = -EIO;
	return NULL;
}

static void submit_and_have_one_block(void *arg, int status)
{
	struct full *full = arg;

	submit(full, status);
	assert_int_equal(pthread_create(&full->thread, NULL, block, full), 0);
	__atomic_store_n(&full->is_full, true, __ATOMIC_RELEASE);
	/* by now the thread most likely waits; the test also passes if it comes later */
	usleep(50000);
}

static void who_blocks_waits_for_a_buffer(void **in)
{
	int no_thread;

	(void)in;
	for (no_thread = 0; no_thread <= 1; no_thread++) {
		struct weir_session *session = session_with_few_buffers(no_thread);
		struct full full = { .region = region_of(session, MIB),
				     .bytes = calloc(1, 512 * KIB) };
		struct weir_session_info info;

		fill_up(session, &full, submit_and_have_one_block);
		if (no_thread)
			assert_refused_when_full(&full);
		assert_int_equal(pthread_join(full.thread, NULL), 0);
		assert_int_equal(full.ended, 0);
		weir_session_info(session, &info, sizeof(info));
		assert_int_equal(info.pre, full.submitted + 3);
		assert_int_equal(info.dyn, 0);
		weir_session_close(session);
		free(full.bytes);
	}
}

#define MOST 60 /* of the 64 longest buffers in 4 MiB */

/*
 * The wire is slow, so buffers come back late. The request needs eight buffers where four are
 * free.
 */
static void who_waits_for_several_sleeps(void **in)
{
	struct weir_session *session = session_with_few_buffers(false);
	struct weir_region *region = region_of(session, MIB);
	struct completion_tally tally = { 0 };
	struct weir_completion completion = { .done = tally_done, .arg = &tally };
	char *bytes = calloc(1, 512 * KIB);
	struct weir_iov iov = { bytes, 64 * KIB, NULL };
	uint64_t used_ns;
	int i;

	(void)in;
	for (i = 0; i < MOST; i++)
		assert_int_equal(weir_write_async(region, 0, &iov, 1, &completion, NULL), 0);
	used_ns = time_of(CLOCK_THREAD_CPUTIME_ID);
	assert_int_equal(weir_write(region, 0, bytes, 512 * KIB), 0);
	used_ns = time_of(CLOCK_THREAD_CPUTIME_ID) - used_ns;
	assert_in_range(used_ns, 0, SLOW_NS / 2);
	tally_wait(&tally, MOST);
	assert_int_equal(tally.status, 0);
	weir_session_close(session);
	free(bytes);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_copied_has_its_bounds),
		cmocka_unit_test(who_blocks_waits_for_a_buffer),
	};
	const struct CMUnitTest slow[] = {
		cmocka_unit_test(who_waits_for_several_sleeps),
	};

	if (argc > 1 && !strcmp(argv[1], "slow"))
		return cmocka_run_group_tests(slow, group_donor_start, group_donor_stop);
	return cmocka_run_group_tests(tests, group_donor_start, group_donor_stop);
}
