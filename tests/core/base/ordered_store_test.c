/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is written for who watches: words whole, in order, and nothing beside them. */
#include <pthread.h>
#include <sched.h>

#include "core/base/ordered_store.h"
#include "tests/support/engine_bench.h"

#define LENGTH_MAX 40u
#define MESSAGES 200000u

/* Every aligned word of @bytes that lies within is part of one that is stored at once. */
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

/* Twelve bytes: a word of eight, and one of four that says that it is there. */
struct stored_message {
	uint64_t number;
	uint32_t flag; /* the number's last byte, four times */
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

/* Between two looks at the number, which are near enough to each other to be told apart by a byte. */
static void expect_flag(uint64_t before, uint32_t flag, uint64_t after)
{
	uint8_t ahead = (uint8_t)(flag - (before - 1));

	assert_int_equal(flag, (flag & 0xff) * 0x01010101u);
	if (after - before < 255)
		assert_true(ahead <= after - before + 1);
}

static void who_watches_the_end_sees_it_whole_and_all_before_it(void **state)
{
	static struct stored_message m; /* the writer outlives a failure */
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
		cmocka_unit_test(who_watches_the_end_sees_it_whole_and_all_before_it),
	};

	return cmocka_run_group_tests_name("core store", tests, NULL, NULL);
}
