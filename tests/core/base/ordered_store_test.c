/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ordered stores for a polling reader: whole words, in order, nothing outside the range. */
#include <pthread.h>
#include <sched.h>

#include "core/base/ordered_store.h"
#include "tests/support/engine_bench.h"

#define LENGTH_MAX 40u
#define MESSAGES 200000u

/* Every aligned word of @bytes inside the range is written by a single store. */
static void expect_whole(uintptr_t addr, uint32_t length, uint32_t bytes)
{
	uintptr_t at = addr, word, end = addr + length;
	uint32_t stored;

	for (; at < end; at += stored) {
		stored = weir_ordered_store_bytes(at, (uint32_t)(end - at));
		assert_int_equal(at % stored, 0);
		word = at - at % bytes;
		if (word >= addr && word + bytes <= end)
			assert_true(stored >= bytes);
	}
	assert_int_equal(at, end);
}

static void an_aligned_word_is_stored_whole(void **state)
{
	uint32_t offset, length, bytes;

	(void)state;
	for (offset = 0; offset < 8; offset++)
		for (length = 1; length <= LENGTH_MAX; length++)
			for (bytes = 2; bytes <= 8; bytes *= 2)
				expect_whole(4096 + offset, length, bytes);
}

static void as_many_bytes_as_there_are_and_no_more(void **state)
{
	_Alignas(8) uint8_t to[LENGTH_MAX + 16];
	uint8_t from[LENGTH_MAX];
	uint32_t offset, length, i;

	(void)state;
	for (i = 0; i < LENGTH_MAX; i++)
		from[i] = (uint8_t)(i + 1);
	for (offset = 0; offset < 8; offset++)
		for (length = 0; length <= LENGTH_MAX; length++) {
			memset(to, 0xee, sizeof(to));
			weir_ordered_store(to + offset, from, length);
			assert_memory_equal(to + offset, from, length);
			for (i = 0; i < sizeof(to); i++)
				if (i < offset || i >= offset + length)
					assert_int_equal(to[i], 0xee);
		}
}

/* Twelve bytes: the number, then a four-byte flag to mark the message as complete. */
struct stored_message {
	uint64_t number;
	uint32_t flag; /* the last byte of the number, four times */
} __attribute__((aligned(8)));

#define MESSAGE_BYTES 12

static void *writer(void *arg)
{
	struct stored_message *watched = arg, m;
	uint64_t i;

	for (i = 1; i <= MESSAGES; i++) {
		m.number = i;
		m.flag = (i & 0xff) * 0x01010101u;
		weir_ordered_store(watched, &m, MESSAGE_BYTES);
		if (i % 64 == 0)
			sched_yield();
	}
	return NULL;
}

/*
 * @before and @after are two readings of the number around @flag, close enough to differ in the
 * last byte.
 */
static void expect_flag(uint64_t before, uint32_t flag, uint64_t after)
{
	uint8_t ahead = (uint8_t)(flag - (before - 1));

	assert_int_equal(flag, (flag & 0xff) * 0x01010101u);
	if (after - before < 255)
		assert_true(ahead <= after - before + 1);
}

static void a_poller_of_the_last_byte_sees_the_whole_store(void **state)
{
	/* static, because the writer thread outlives a failed assertion */
	static struct stored_message m;
	uint64_t before, after = 0;
	pthread_t thread;
	uint32_t flag;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, writer, &m), 0);
	while (after < MESSAGES) {
		before = weir_load_acquire(&m.number);
		flag = weir_load_acquire(&m.flag);
		after = weir_load_acquire(&m.number);
		if (before)
			expect_flag(before, flag, after);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_aligned_word_is_stored_whole),
		cmocka_unit_test(as_many_bytes_as_there_are_and_no_more),
		cmocka_unit_test(a_poller_of_the_last_byte_sees_the_whole_store),
	};

	return cmocka_run_group_tests_name("core store", tests, NULL, NULL);
}
