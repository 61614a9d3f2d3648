// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic question */
/* Questions and answers, and bytes that claim to be one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "softnic/udp/question.h"

enum { ROOM = 2000 };

static void a_question_of_any_size_is_read_as_written(void **state)
{
	static const enum question_kind kinds[] = { QUESTION, ANSWER, QUESTION_SAME_PORT };
	uint8_t bytes[ROOM];
	struct question q;
	size_t size, i;

	(void)state;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (size = QUESTION_BYTES_MIN; size <= ROOM - ROCE_ICRC_BYTES; size += 491) {
			const struct question written = { kinds[i], 0x123456, 7 * size };

			memset(bytes, 0xff, sizeof(bytes));
			question_encode(&written, bytes, size);
			assert_int_equal(bytes[size], 0xff);
			if (size > QUESTION_BYTES_MIN)
				assert_int_equal(bytes[size - 1], 0);
			assert_true(question_is_message(bytes, size + ROCE_ICRC_BYTES));
			assert_true(question_decode(&q, bytes));
			assert_int_equal(q.kind, kinds[i]);
			assert_int_equal(q.nonce, 7 * size);
		}
}

static void a_packet_that_is_too_short_or_another_is_no_question(void **state)
{
	const struct question written = { QUESTION, 1, 1 };
	uint8_t bytes[QUESTION_BYTES_MIN + ROCE_ICRC_BYTES] = { 0 };

	(void)state;
	question_encode(&written, bytes, QUESTION_BYTES_MIN);
	assert_false(question_is_message(bytes, sizeof(bytes) - 1));
	bytes[0]++;
	assert_false(question_is_message(bytes, sizeof(bytes)));
}

static void another_version_or_kind_is_dropped(void **state)
{
	const struct question written = { QUESTION, 1, 1 };
	uint8_t bytes[QUESTION_BYTES_MIN];
	struct question q;
	int value;

	(void)state;
	for (value = 0; value < 256; value++) {
		question_encode(&written, bytes, sizeof(bytes));
		bytes[ROCE_BTH_BYTES] = (uint8_t)value;
		assert_int_equal(question_decode(&q, bytes), value == QUESTION_VERSION);
		bytes[ROCE_BTH_BYTES] = QUESTION_VERSION;
		bytes[ROCE_BTH_BYTES + 1] = (uint8_t)value;
		assert_int_equal(question_decode(&q, bytes), value >= 1 && value <= 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_of_any_size_is_read_as_written),
		cmocka_unit_test(a_packet_that_is_too_short_or_another_is_no_question),
		cmocka_unit_test(another_version_or_kind_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
