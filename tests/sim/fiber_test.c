/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fibers: each resumes where it left, with its own stack and registers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/event/fiber.h"

#define FIBERS 50

struct walker {
	struct sim_fiber fiber;
	int number, steps;
	double sum;
};

/* Recurse deeply, with data at each level that must survive. */
static int descend(struct walker *w, int depth)
{
	char mine[200];
	size_t i;

	memset(mine, depth + w->number, sizeof(mine));
	w->steps++;
	sim_fiber_leave(&w->fiber);
	if (depth)
		descend(w, depth - 1);
	for (i = 0; i < sizeof(mine); i++)
		assert_int_equal(mine[i], (char)(depth + w->number));
	return depth;
}

static void walk(void *arg)
{
	struct walker *w = arg;
	double half = w->number + 0.5; /* perhaps in a callee-saved register */

	assert_int_equal((uintptr_t)__builtin_frame_address(0) % 16, 0);
	descend(w, 20);
	w->sum += half;
}

static void many_take_turns(void **state)
{
	static struct walker walkers[FIBERS];
	int i, turn;

	(void)state;
	for (i = 0; i < FIBERS; i++) {
		walkers[i] = (struct walker){ .number = i };
		assert_int_equal(sim_fiber_init(&walkers[i].fiber, walk, &walkers[i]), 0);
	}
	for (turn = 0; turn < 22; turn++) {
		for (i = 0; i < FIBERS; i++) {
			assert_false(walkers[i].fiber.is_over);
			sim_fiber_enter(&walkers[i].fiber);
			assert_int_equal(walkers[i].steps, turn < 21 ? turn + 1 : 21);
		}
	}
	for (i = 0; i < FIBERS; i++) {
		assert_true(walkers[i].fiber.is_over);
		assert_true(walkers[i].sum == i + 0.5);
		sim_fiber_fini(&walkers[i].fiber);
	}
}

static void one_can_be_given_up_anywhere(void **state)
{
	struct walker begun = { .number = 1 }, not_begun = { .number = 2 };

	(void)state;
	assert_int_equal(sim_fiber_init(&begun.fiber, walk, &begun), 0);
	assert_int_equal(sim_fiber_init(&not_begun.fiber, walk, &not_begun), 0);
	sim_fiber_enter(&begun.fiber);
	sim_fiber_fini(&begun.fiber);
	sim_fiber_fini(&not_begun.fiber);
	assert_int_equal(begun.steps, 1);
	assert_int_equal(not_begun.steps, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_take_turns),
		cmocka_unit_test(one_can_be_given_up_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
