/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The window: a table of short scripts. Their names say which waiter may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/sched/window.h"

#define WAITERS 3
#define NOBODY -1

enum verb { END, TAKE, GIVE, LEAVE, CALL, LIMIT };

/* One step: @who does @verb with @bytes and gets @expect. LIMIT sets a policy's limit. */
struct window_step {
	enum verb verb;
	int who;
	uint32_t bytes;
	int expect;
};

struct script {
	const char *sentence;
	uint64_t bytes_max;
	uint32_t wrs_max;
	struct window_step step[12];
};

static const struct script scripts[] = {
	{ "what fits exactly is let through", 100, 9, { { TAKE, 0, 100, 0 } } },
	{ "one byte over is refused", 100, 9, { { TAKE, 0, 60, 0 }, { TAKE, 0, 41, -EAGAIN } } },
	{ "one work request over is refused",
	  100,
	  2,
	  { { TAKE, 0, 1, 0 }, { TAKE, 0, 1, 0 }, { TAKE, 0, 1, -EAGAIN } } },
	{ "an empty message takes a work request and no bytes",
	  100,
	  2,
	  { { TAKE, 0, 100, 0 }, { TAKE, 0, 0, 0 }, { TAKE, 0, 0, -EAGAIN } } },
	{ "what can never fit is told so, and does not wait",
	  100,
	  9,
	  { { TAKE, 0, 101, -EMSGSIZE }, { TAKE, 1, 100, 0 } } },
	{ "what was given can be taken again",
	  100,
	  9,
	  { { TAKE, 0, 100, 0 }, { GIVE, 0, 100, 0 }, { TAKE, 0, 100, 0 } } },
	{ "nobody is called while the window is full",
	  100,
	  9,
	  { { TAKE, 0, 100, 0 }, { TAKE, 1, 1, -EAGAIN }, { CALL, 0, 0, NOBODY } } },
	{ "the first that was refused is called first",
	  100,
	  9,
	  { { TAKE, 0, 100, 0 },
	    { TAKE, 1, 1, -EAGAIN },
	    { TAKE, 2, 1, -EAGAIN },
	    { GIVE, 0, 100, 0 },
	    { CALL, 0, 0, 1 } } },
	{ "who was called is not called again before it tried",
	  100,
	  9,
	  { { TAKE, 0, 100, 0 },
	    { TAKE, 1, 1, -EAGAIN },
	    { GIVE, 0, 100, 0 },
	    { CALL, 0, 0, 1 },
	    { CALL, 0, 0, NOBODY } } },
	{ "who was called and still does not fit is called again later",
	  100,
	  9,
	  { { TAKE, 0, 50, 0 },
	    { TAKE, 0, 50, 0 },
	    { TAKE, 1, 50, -EAGAIN },
	    { GIVE, 0, 50, 0 },
	    { CALL, 0, 0, 1 },
	    { TAKE, 1, 60, -EAGAIN },
	    { CALL, 0, 0, NOBODY },
	    { GIVE, 0, 50, 0 },
	    { CALL, 0, 0, 1 } } },
	{ "who was called, and found that the limit had fallen, is called when it rises again",
	  100,
	  9,
	  { { TAKE, 0, 100, 0 },
	    { TAKE, 1, 60, -EAGAIN },
	    { GIVE, 0, 100, 0 },
	    { CALL, 0, 0, 1 },
	    { LIMIT, 0, 50, 0 },
	    { CALL, 0, 0, NOBODY },
	    { LIMIT, 0, 100, 0 },
	    { CALL, 0, 0, 1 } } },
	{ "a small one does not pass a large one that waits",
	  100,
	  9,
	  { { TAKE, 0, 50, 0 },
	    { TAKE, 1, 80, -EAGAIN },
	    { TAKE, 2, 10, -EAGAIN },
	    { TAKE, 0, 10, -EAGAIN } } },
	{ "who has its turn may take more than once",
	  100,
	  9,
	  { { TAKE, 0, 100, 0 },
	    { TAKE, 1, 10, -EAGAIN },
	    { TAKE, 2, 10, -EAGAIN },
	    { GIVE, 0, 100, 0 },
	    { TAKE, 1, 10, 0 },
	    { TAKE, 1, 10, 0 } } },
	{ "the next is called when who had its turn leaves",
	  100,
	  9,
	  { { TAKE, 0, 100, 0 },
	    { TAKE, 1, 10, -EAGAIN },
	    { TAKE, 2, 10, -EAGAIN },
	    { GIVE, 0, 100, 0 },
	    { TAKE, 1, 10, 0 },
	    { LEAVE, 1, 0, 0 },
	    { CALL, 0, 0, 2 } } },
	{ "who leaves from the middle of the line is not called",
	  100,
	  9,
	  { { TAKE, 0, 100, 0 },
	    { TAKE, 1, 10, -EAGAIN },
	    { TAKE, 2, 10, -EAGAIN },
	    { LEAVE, 1, 0, 0 },
	    { GIVE, 0, 100, 0 },
	    { CALL, 0, 0, 2 } } },
	{ "leaving twice does no harm", 100, 9, { { LEAVE, 0, 0, 0 }, { LEAVE, 0, 0, 0 } } },
};

static int do_step(struct weir_window *w, struct weir_window_waiter *waiter,
		   const struct window_step *s)
{
	struct weir_window_waiter *called;

	switch (s->verb) {
	case TAKE:
		return weir_window_take(w, &waiter[s->who], s->bytes);
	case GIVE:
		weir_window_give(w, s->bytes);
		return 0;
	case LEAVE:
		weir_window_leave(&waiter[s->who]);
		return 0;
	case LIMIT:
		w->bytes_max = s->bytes;
		return 0;
	default:
		called = weir_window_next_waiter(w);
		return called ? (int)(called - waiter) : NOBODY;
	}
}

static void play(void **state)
{
	const struct script *script = *state;
	struct weir_window_waiter waiter[WAITERS];
	struct weir_window w;
	int i;

	assert_int_equal(weir_window_init(&w, script->bytes_max, script->wrs_max), 0);
	for (i = 0; i < WAITERS; i++)
		weir_window_waiter_init(&waiter[i]);
	for (i = 0; script->step[i].verb != END; i++)
		assert_int_equal(do_step(&w, waiter, &script->step[i]), script->step[i].expect);
}

static void refuses_zero(void **state)
{
	struct weir_window w;

	(void)state;
	assert_int_equal(weir_window_init(&w, 0, 1), -EINVAL);
	assert_int_equal(weir_window_init(&w, 1, 0), -EINVAL);
}

#define NR_SCRIPTS (sizeof(scripts) / sizeof(*scripts))

int main(void)
{
	struct CMUnitTest tests[NR_SCRIPTS + 1] = {
		{ "a window without room is refused", refuses_zero, NULL, NULL, NULL },
	};
	size_t i;

	for (i = 0; i < NR_SCRIPTS; i++)
		tests[i + 1] = (struct CMUnitTest){ scripts[i].sentence, play, NULL, NULL,
						    (void *)&scripts[i] };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
