/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib bounce; devices: softnic rxe; timeout: 180 */
/* Requests on unregistered memory: copied, or registered for the time in flight. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/rng.h"
#include "tests/support/libweir_fixture.h"

#define KIB 1024u
#define REGION_BYTES (4 * MIB)

static struct weir_session *session_with(enum weir_mr mr, size_t mr_dyn_bytes)
{
	const struct weir_session_options options = { TUNING(.mr = mr,
							     .mr_dyn_bytes = mr_dyn_bytes) };

	return session_to(&group_donor, &options);
}

static void fill(char *bytes, size_t length, uint64_t seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		bytes[i] = (char)weir_rng_next(&seed);
}

static void transfer(struct weir_region *region, bool write, const struct weir_iov *iov,
		     unsigned int iovcnt)
{
	struct completion_tally tally = { 0 };
	struct weir_completion completion = { .done = tally_done, .arg = &tally };
	int rc;

	rc = write ? weir_write_async(region, 3, iov, iovcnt, &completion, NULL) :
		     weir_read_async(region, 3, iov, iovcnt, &completion, NULL);
	assert_int_equal(rc, 0);
	tally_wait(&tally, 1);
	assert_int_equal(tally.status, 0);
}

static void every_length_arrives(void **in)
{
	static const size_t lengths[] = {
		1, 8, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 512 * KIB, 512 * KIB + 1, 2 * MIB
	};
	char *to = malloc(REGION_BYTES), *from = malloc(REGION_BYTES);
	enum weir_mr mr;
	unsigned int i;

	(void)in;
	for (mr = WEIR_MR_DEFAULT; mr <= WEIR_MR_DYN; mr++) {
		struct weir_session *session = session_with(mr, 0);
		struct weir_region *region = region_of(session, REGION_BYTES);

		for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			struct weir_iov iov = { to, lengths[i], NULL };

			fill(to, lengths[i], i);
			transfer(region, true, &iov, 1);
			iov.addr = from;
			transfer(region, false, &iov, 1);
			assert_memory_equal(to, from, lengths[i]);
			assert_int_equal(weir_write(region, 7, from, lengths[i]), 0);
			memset(from, 0, lengths[i]);
			assert_int_equal(weir_read(region, 7, from, lengths[i]), 0);
			assert_memory_equal(to, from, lengths[i]);
		}
		weir_session_close(session);
	}
	free(to);
	free(from);
}

/* Mixed pieces, so that copies begin and end inside buffers. */
static void registered_and_other_pieces_mix(void **in)
{
	static char to[300000], from[300000];
	enum weir_mr mr;

	(void)in;
	for (mr = WEIR_MR_PRE; mr <= WEIR_MR_DYN; mr++) {
		struct weir_session *session = session_with(mr, 0);
		struct weir_region *region = region_of(session, REGION_BYTES);
		struct weir_memory *memory;
		struct weir_iov iov[3];

		fill(to, sizeof(to), mr);
		assert_int_equal(weir_memory_register(session, from, sizeof(from), &memory, NULL),
				 0);
		iov[0] = (struct weir_iov){ to, 100001, NULL };
		iov[1] = (struct weir_iov){ to + 100001, 70000, NULL };
		iov[2] = (struct weir_iov){ to + 170001, 129999, NULL };
		transfer(region, true, iov, 3);
		memset(from, 0, sizeof(from));
		iov[0] = (struct weir_iov){ from, 1, memory };
		iov[1] = (struct weir_iov){ from + 1, 199999, NULL };
		iov[2] = (struct weir_iov){ from + 200000, 100000, memory };
		transfer(region, false, iov, 3);
		assert_memory_equal(to, from, sizeof(to));
		weir_memory_deregister(memory);
		weir_session_close(session);
	}
}

static struct weir_session_info after_a_write_of(enum weir_mr mr, size_t mr_dyn_bytes,
						 size_t length)
{
	struct weir_session *session = session_with(mr, mr_dyn_bytes);
	struct weir_region *region = region_of(session, REGION_BYTES);
	char *bytes = calloc(1, length);
	struct weir_session_info info;

	assert_int_equal(weir_write(region, 0, bytes, length), 0);
	weir_session_info(session, &info, sizeof(info));
	weir_session_close(session);
	free(bytes);
	return info;
}

static void the_length_decides(void **in)
{
	struct weir_session_info info;

	(void)in;
	info = after_a_write_of(WEIR_MR_AUTO, 10000, 9999);
	assert_int_equal(info.mr_dyn_bytes, 10000);
	assert_int_equal(info.pre, 1);
	assert_int_equal(info.dyn, 0);
	info = after_a_write_of(WEIR_MR_AUTO, 10000, 10000);
	assert_int_equal(info.pre, 0);
	assert_int_equal(info.dyn, 1);
	info = after_a_write_of(WEIR_MR_DYN, 10000, 1);
	assert_int_equal(info.mr_dyn_bytes, 0);
	assert_int_equal(info.dyn, 1);
	info = after_a_write_of(WEIR_MR_PRE, 10000, 1200 * KIB);
	assert_int_equal(info.mr_dyn_bytes, 512 * KIB + 1);
	assert_int_equal(info.pre, 3);
	info = after_a_write_of(WEIR_MR_DEFAULT, 0, 8);
	assert_in_range(info.mr_dyn_bytes, 4 * KIB, 512 * KIB);
	assert_int_equal(info.pre, 1);
}

/*
 * Without a thread, requests submitted in a callback are delivered after the callback. Until
 * then no buffer comes back.
 */
#define PIECE 512

struct many {
	struct weir_region *region;
	char *bytes;
	int count;
	size_t length;
	struct completion_tally tally;
};

static void submit_many(void *arg, int status)
{
	struct many *many = arg;
	struct weir_completion completion = { .done = tally_done, .arg = &many->tally };
	struct weir_iov iov = { .length = many->length };
	int i;

	assert_int_equal(status, 0);
	for (i = 0; i < many->count; i++) {
		size_t at = (size_t)i * PIECE;

		iov.addr = many->bytes + at;
		assert_int_equal(weir_write_async(many->region, at, &iov, 1, &completion, NULL), 0);
	}
}

/* Write @many at once. Return: the session's counters by then. */
static struct weir_session_info write_many(struct weir_session *session, struct many *many)
{
	struct weir_completion completion = { .done = submit_many, .arg = many };
	struct weir_session_info info;

	many->tally = (struct completion_tally){ 0 };
	assert_int_equal(weir_barrier_async(session, &completion), 0);
	while (many->tally.done < many->count)
		weir_session_process(session);
	assert_int_equal(many->tally.status, 0);
	weir_session_info(session, &info, sizeof(info));
	return info;
}

static struct weir_session *session_without_thread(enum weir_mr mr)
{
	const struct weir_session_options options = {
		.timeout_ns = 60 * SECOND_NS, /* for thousands of writes at once on a bad network */
		.no_thread = true,
		TUNING(.mr = mr, .mr_dyn_bytes = mr == WEIR_MR_AUTO ? MIB : 0)
	};

	return session_to(&group_donor, &options);
}

/* More than the first buffers hold: the session makes further buffers. */
static void what_is_to_be_copied_is_never_registered(void **in)
{
	struct weir_session *session = session_without_thread(WEIR_MR_PRE);
	struct many many = {
		.region = region_of(session, REGION_BYTES),
		.bytes = malloc(REGION_BYTES),
		.count = 3000,
		.length = PIECE,
	};
	size_t length = (size_t)many.count * PIECE;
	char *back = malloc(length);
	struct weir_session_info info;

	(void)in;
	fill(many.bytes, length, 1);
	info = write_many(session, &many);
	assert_int_equal(info.pre, 3000);
	assert_int_equal(info.dyn, 0);
	assert_int_equal(weir_read(many.region, 0, back, length), 0);
	assert_memory_equal(back, many.bytes, length);
	free(many.bytes);
	free(back);
	weir_session_close(session);
}

/* 16 MiB are for copies: 4096 of the smallest or 32 of the largest, whatever came before. */
static void without_a_free_buffer_memory_is_registered(void **in)
{
	struct weir_session *session = session_without_thread(WEIR_MR_AUTO);
	struct many many = {
		.region = region_of(session, REGION_BYTES),
		.bytes = malloc(REGION_BYTES),
		.length = PIECE,
	};
	char *back = malloc(512 * KIB);
	struct weir_session_info info;

	(void)in;
	fill(many.bytes, REGION_BYTES, 2);
	many.count = 4096;
	info = write_many(session, &many);
	assert_int_equal(info.pre, 4096);
	assert_int_equal(info.dyn, 0);
	many.count = 32;
	many.length = 512 * KIB;
	info = write_many(session, &many);
	assert_int_equal(info.pre, 4096 + 32);
	assert_int_equal(info.dyn, 0);
	many.count = 40;
	info = write_many(session, &many);
	assert_int_equal(info.pre, 4096 + 32 + 32);
	assert_int_equal(info.dyn, 8);
	assert_int_equal(weir_read(many.region, 0, back, 512 * KIB), 0);
	assert_memory_equal(back, many.bytes, 512 * KIB);
	free(many.bytes);
	free(back);
	weir_session_close(session);
}

/* As if no memory were left for buffers. */
static bool pools_fail;

int __real_weir_pool_create(struct weir_session *session, size_t size, unsigned int count,
			    struct weir_pool **pool, struct weir_error *error);
int __wrap_weir_pool_create(struct weir_session *session, size_t size, unsigned int count,
			    struct weir_pool **pool, struct weir_error *error);

int __wrap_weir_pool_create(struct weir_session *session, size_t size, unsigned int count,
			    struct weir_pool **pool, struct weir_error *error)
{
	return pools_fail ? -ENOMEM : __real_weir_pool_create(session, size, count, pool, error);
}

/* Memory is available again; the session does not retry at each write. */
static void await_buffers(struct weir_session *session)
{
	struct weir_region *region = region_of(session, 4096);
	struct weir_session_info info;
	char byte = 'c';
	int rc;

	do
		rc = weir_write(region, 0, &byte, 1);
	while (rc == -ENOMEM);
	assert_int_equal(rc, 0);
	weir_session_info(session, &info, sizeof(info));
	assert_int_equal(info.pre, 1);
	assert_int_equal(info.dyn, 0);
}

static void without_buffers_only_what_may_be_registered_is(void **in)
{
	struct weir_session *session;
	struct weir_session_info info;
	char byte = 'b';

	(void)in;
	pools_fail = true;
	session = session_with(WEIR_MR_AUTO, MIB);
	assert_int_equal(weir_write(region_of(session, 4096), 0, &byte, 1), 0);
	weir_session_info(session, &info, sizeof(info));
	assert_int_equal(info.pre, 0);
	assert_int_equal(info.dyn, 1);
	weir_session_close(session);

	session = session_with(WEIR_MR_PRE, 0);
	assert_int_equal(weir_write(region_of(session, 4096), 0, &byte, 1), -ENOMEM);
	weir_session_info(session, &info, sizeof(info));
	assert_int_equal(info.pre + info.dyn, 0);
	pools_fail = false;
	await_buffers(session);
	weir_session_close(session);
}

static void constants_can_be_written_from(void **in)
{
	static const char constant[] = "nobody may write to this";
	enum weir_mr mr;

	(void)in;
	for (mr = WEIR_MR_PRE; mr <= WEIR_MR_DYN; mr++) {
		struct weir_session *session = session_with(mr, 0);
		struct weir_region *region = region_of(session, 4096);
		char back[sizeof(constant)];

		assert_int_equal(weir_write(region, 0, constant, sizeof(constant)), 0);
		assert_int_equal(weir_read(region, 0, back, sizeof(back)), 0);
		assert_string_equal(back, constant);
		weir_session_close(session);
	}
}

static void atomics_leave_the_old_value_anywhere(void **in)
{
	enum weir_mr mr;

	(void)in;
	for (mr = WEIR_MR_PRE; mr <= WEIR_MR_DYN; mr++) {
		struct weir_session *session = session_with(mr, 0);
		struct weir_region *region = region_of(session, 4096);
		struct completion_tally tally = { 0 };
		struct weir_completion completion = { .done = tally_done, .arg = &tally };
		uint64_t old = 99;

		assert_int_equal(weir_fetch_add(region, 8, 5, NULL), 0);
		assert_int_equal(weir_fetch_add_async(region, 8, 2, &old, NULL, &completion, NULL),
				 0);
		tally_wait(&tally, 1);
		assert_int_equal(old, 5);
		assert_int_equal(weir_compare_swap(region, 8, 7, 1, &old), 0);
		assert_int_equal(old, 7);
		assert_int_equal(weir_compare_swap_async(region, 8, 7, 3, &old, NULL, &completion,
							 NULL), 0);
		tally_wait(&tally, 2);
		assert_int_equal(old, 1); /* not 7: nothing has changed */
		assert_int_equal(weir_compare_swap_async(region, 8, 1, 3, &old, NULL, &completion,
							 NULL), 0);
		tally_wait(&tally, 3);
		assert_int_equal(weir_fetch_add(region, 8, 0, &old), 0);
		assert_int_equal(old, 3);
		assert_int_equal(weir_compare_swap_async(region, 12, 0, 1, &old, NULL, &completion,
							 NULL), -EINVAL);
		weir_session_close(session);
	}
}

static void what_never_began_gives_all_back(void **in)
{
	struct weir_session *session = session_with(WEIR_MR_PRE, 0);
	struct weir_region *region = region_of(session, 4096);
	struct weir_completion completion = { .done = tally_done };
	struct weir_session_info info;
	char bytes[64] = { 0 };
	struct weir_iov iov = { bytes, 64, NULL };
	int i;

	(void)in;
	for (i = 0; i < 200; i++)
		assert_int_equal(weir_write_async(region, 4095, &iov, 1, &completion, NULL),
				 -EINVAL);
	assert_int_equal(weir_write(region, 0, bytes, 64), 0);
	weir_session_info(session, &info, sizeof(info));
	assert_int_equal(info.pre, 1);
	weir_session_close(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_arrives),
		cmocka_unit_test(registered_and_other_pieces_mix),
		cmocka_unit_test(the_length_decides),
		cmocka_unit_test(what_is_to_be_copied_is_never_registered),
		cmocka_unit_test(without_a_free_buffer_memory_is_registered),
		cmocka_unit_test(without_buffers_only_what_may_be_registered_is),
		cmocka_unit_test(constants_can_be_written_from),
		cmocka_unit_test(atomics_leave_the_old_value_anywhere),
		cmocka_unit_test(what_never_began_gives_all_back),
	};

	return cmocka_run_group_tests(tests, group_donor_start, group_donor_stop);
}
