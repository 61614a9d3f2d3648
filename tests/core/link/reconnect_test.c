/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reconnecting: which errors are final, how long to pause, when to give up. */
#include "core/link/reconnect.h"
#include "tests/support/engine_bench.h"

#define MS 1000000u

static void some_errors_are_final(void **state)
{
	static const struct {
		const char *sentence;
		int status;
		bool is_final;
	} cases[] = {
		{ "the donor has forgotten the session", -ESTALE, true },
		{ "no donor listens there", -ECONNREFUSED, true },
		{ "the donor has another key", -EKEYREJECTED, true },
		{ "the donor speaks another protocol", -EPROTONOSUPPORT, true },
		{ "the session ends", -ECANCELED, true },
		{ "the donor may answer later", -ETIMEDOUT, false },
		{ "the route may come back", -EHOSTUNREACH, false },
		{ "the route may lead to our device again", -ENODEV, false },
		{ "memory may be freed", -ENOMEM, false },
		{ "the donor refuses for now", -EAGAIN, false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct weir_reconnect r;

		weir_reconnect_begin(&r, 100 * MS, 0);
		if (weir_reconnect_failed(&r, cases[i].status, 0, 0) == cases[i].is_final)
			fail_msg("%s", cases[i].sentence);
	}
}

static void pauses_grow_to_a_second(void **state)
{
	static const unsigned int halves_ms[] = { 5, 10, 20, 40, 80, 160, 320, 500, 500 };
	struct weir_reconnect r;
	uint64_t now_ns = 7;
	size_t i;

	(void)state;
	weir_reconnect_begin(&r, UINT64_MAX, now_ns);
	assert_int_equal(r.next_ns, now_ns);
	for (i = 0; i < sizeof(halves_ms) / sizeof(*halves_ms); i++) {
		now_ns = r.next_ns;
		assert_true(weir_reconnect_failed(&r, -ETIMEDOUT, 0, now_ns));
		assert_int_equal(r.next_ns, now_ns + halves_ms[i] * MS);
	}
}

static void half_a_pause_is_random(void **state)
{
	static const uint32_t draws[] = { 0, 1, 4999999, 5000000, UINT32_MAX };
	static const uint32_t offsets[] = { 0, 1, 4999999, 0, UINT32_MAX % 5000000 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(draws) / sizeof(*draws); i++) {
		struct weir_reconnect r;

		weir_reconnect_begin(&r, UINT64_MAX, 0);
		assert_true(weir_reconnect_failed(&r, -ETIMEDOUT, draws[i], 0));
		assert_int_equal(r.next_ns, 5 * MS + offsets[i]);
	}
}

static void no_attempt_begins_too_late(void **state)
{
	struct weir_reconnect r;

	(void)state;
	weir_reconnect_begin(&r, 100 * MS, 0);
	assert_true(weir_reconnect_failed(&r, -ETIMEDOUT, UINT32_MAX, 100 * MS - 1));
	assert_int_equal(r.next_ns, 100 * MS);
	assert_false(weir_reconnect_failed(&r, -ETIMEDOUT, 0, 100 * MS));
}

/* A store of a pool refuses connections while it starts again. */
static void a_pause_does_not_depend_on_the_error(void **state)
{
	struct weir_reconnect r;

	(void)state;
	weir_reconnect_begin(&r, UINT64_MAX, 0);
	for (uint32_t ms = 5; ms <= 40; ms *= 2) {
		weir_reconnect_pause(&r, 0, 7);
		assert_int_equal(r.next_ns, 7 + (uint64_t)ms * MS);
	}
	weir_reconnect_begin(&r, 8, 0);
	weir_reconnect_pause(&r, 0, 7);
	assert_int_equal(r.next_ns, 8);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		SAYS("some errors are final", some_errors_are_final),
		SAYS("pauses double from 10 ms to a second", pauses_grow_to_a_second),
		SAYS("half of each pause is random", half_a_pause_is_random),
		SAYS("no attempt begins after the time to give up", no_attempt_begins_too_late),
		SAYS("a pause does not depend on the error", a_pause_does_not_depend_on_the_error),
	};

	return cmocka_run_group_tests_name("reconnect", tests, NULL, NULL);
}
