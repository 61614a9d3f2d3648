/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine: channels that hold the window without progress, and their reset. */
#include "core/engine/fastpath.h"
#include "tests/support/engine_bench.h"

#define PATIENCE 500
#define TIMEOUT (2 * PATIENCE)
#define STEP (PATIENCE / 8 + 1) /* time until the second check */
#define CHANNELS 2
#define WINDOW (8 * KIB) /* room for two requests */

struct stall_fixture {
	struct engine_bench *b;
	struct weir_req req[8];
	int nr_reqs;
	struct weir_window_waiter other;
};

static void begin_with(struct stall_fixture *f, uint64_t stall_timeout_ns)
{
	const struct weir_engine_config config = { .fragment_bytes = 4 * KIB,
						   .chain_max = 1,
						   .sge_max = WEIR_SGE_MAX,
						   .stall_timeout_ns = stall_timeout_ns };

	memset(f, 0, sizeof(*f));
	f->b = bench_new_with(&config, WINDOW, CHANNELS);
	weir_window_waiter_init(&f->other);
}

static void begin(struct stall_fixture *f)
{
	begin_with(f, PATIENCE);
}

static void submit_until(struct stall_fixture *f, uint64_t now_ns, uint64_t deadline_ns)
{
	struct weir_req *req = &f->req[f->nr_reqs];

	*req = bench_req(WEIR_OP_READ, (uint64_t)f->nr_reqs++ * 4 * KIB, 4 * KIB);
	req->deadline_ns = deadline_ns;
	assert_int_equal(weir_engine_submit(&f->b->engine, req, now_ns), 0);
	bench_pull(f->b);
}

static void submit_at(struct stall_fixture *f, uint64_t now_ns)
{
	submit_until(f, now_ns, now_ns + TIMEOUT);
}

/* Another engine on the same NIC waits for window space. */
static void another_waits(struct stall_fixture *f)
{
	assert_int_equal(weir_window_take(&f->b->window, &f->other, 4 * KIB), -EAGAIN);
}

static void expire(struct stall_fixture *f, uint64_t now_ns)
{
	weir_engine_expired(&f->b->engine, now_ns);
	bench_pull(f->b);
}

/* WR number @i has succeeded. */
static void answer_at(struct stall_fixture *f, unsigned int i, uint64_t now_ns)
{
	const struct weir_wc wc = { .wr = f->b->posted[i] };

	weir_engine_completed(&f->b->engine, &wc, now_ns);
	bench_pull(f->b);
}

/* Everything in flight ends with @status; then the watchdog has no deadline. */
static void end_with(struct stall_fixture *f, int status)
{
	unsigned int i;

	weir_window_leave(&f->other);
	for (i = 0; i < f->b->nr_posted; i++) {
		if (f->b->posted[i]->req)
			bench_complete(f->b, i, status);
	}
	weir_engine_expired(&f->b->engine, WEIR_NEVER - 1);
	bench_free(f->b);
}

static void end(struct stall_fixture *f)
{
	end_with(f, 0);
}

/* No channel comes up again. */
static void lose_all(struct stall_fixture *f)
{
	uint16_t channel;

	for (channel = 0; channel < CHANNELS; channel++)
		weir_engine_channel_down(&f->b->engine, channel);
	end_with(f, -ECONNRESET);
}

static void a_stalled_channel_is_given_up(void **state)
{
	struct stall_fixture f;

	(void)state;
	begin(&f);
	submit_at(&f, 0);
	submit_at(&f, 0);
	another_waits(&f);
	expire(&f, PATIENCE - 1);
	expire(&f, PATIENCE);
	expire(&f, PATIENCE + STEP - 1);
	assert_int_equal(f.b->nr_failed, 0);
	expire(&f, PATIENCE + STEP);
	assert_int_equal(f.b->nr_failed, CHANNELS);
	lose_all(&f);
}

/* The host itself stood still, and may have delayed the completions too. */
static void a_late_watchdog_checks_twice(void **state)
{
	struct stall_fixture f;

	(void)state;
	begin(&f);
	submit_at(&f, 0);
	submit_at(&f, 0);
	another_waits(&f);
	expire(&f, TIMEOUT - 2);
	assert_int_equal(f.b->nr_failed, 0);
	answer_at(&f, 0, TIMEOUT - 2);
	answer_at(&f, 1, TIMEOUT - 2);
	assert_int_equal(f.b->nr_failed, 0);
	end(&f);
}

/* Each channel needs two checks. */
static void one_look_is_not_two_by_another_channel(void **state)
{
	struct stall_fixture f;

	(void)state;
	begin(&f);
	submit_at(&f, 0);
	submit_at(&f, 1);
	another_waits(&f);
	expire(&f, PATIENCE);
	expire(&f, PATIENCE + 1);
	expire(&f, PATIENCE + STEP - 1);
	assert_int_equal(f.b->nr_failed, 0);
	answer_at(&f, 0, PATIENCE + STEP - 1);
	weir_window_leave(&f.other);
	submit_at(&f, PATIENCE + STEP - 1);
	another_waits(&f);
	expire(&f, PATIENCE + STEP);
	assert_int_equal(f.b->nr_failed, 0);
	expire(&f, PATIENCE + STEP + 1);
	assert_int_equal(f.b->nr_failed, 1);
	assert_int_equal(f.b->failed[0], f.b->posted[1]->channel);
	lose_all(&f);
}

/* A completion resets the watchdog; a later stall gets two checks again. */
static void an_answer_ends_the_doubt(void **state)
{
	struct stall_fixture f;

	(void)state;
	begin(&f);
	weir_engine_channel_down(&f.b->engine, 1);
	submit_until(&f, 0, WEIR_NEVER);
	submit_until(&f, 0, WEIR_NEVER);
	expire(&f, PATIENCE);
	answer_at(&f, 0, PATIENCE + 1);
	submit_until(&f, PATIENCE + 1, WEIR_NEVER);
	another_waits(&f);
	expire(&f, 2 * PATIENCE + 1);
	assert_int_equal(f.b->nr_failed, 0);
	expire(&f, 2 * PATIENCE + 1 + STEP);
	assert_int_equal(f.b->nr_failed, 1);
	lose_all(&f);
}

static void without_a_waiter_the_watchdog_waits(void **state)
{
	struct stall_fixture f;
	uint64_t now_ns;

	(void)state;
	begin(&f);
	submit_at(&f, 0);
	submit_at(&f, 0);
	for (now_ns = PATIENCE; now_ns < TIMEOUT - STEP; now_ns += STEP)
		expire(&f, now_ns);
	assert_int_equal(f.b->nr_failed, 0);
	another_waits(&f);
	expire(&f, now_ns);
	assert_int_equal(f.b->nr_failed, CHANNELS);
	lose_all(&f);
}

static void a_sessions_own_turn_stalls_no_other(void **state)
{
	struct stall_fixture f;

	(void)state;
	begin(&f);
	submit_at(&f, 0);
	submit_at(&f, 0);
	submit_at(&f, 0);
	assert_false(weir_list_is_empty(&f.b->window.waiters));
	expire(&f, PATIENCE);
	expire(&f, PATIENCE + STEP);
	assert_int_equal(f.b->nr_failed, 0);
	another_waits(&f);
	expire(&f, PATIENCE + 2 * STEP);
	assert_int_equal(f.b->nr_failed, CHANNELS);
	lose_all(&f);
}

static void for_ever_is_for_ever(void **state)
{
	struct stall_fixture f;

	(void)state;
	begin_with(&f, 0);
	submit_at(&f, 0);
	submit_at(&f, 0);
	another_waits(&f);
	assert_int_equal(weir_engine_deadline_ns(&f.b->engine), TIMEOUT);
	expire(&f, TIMEOUT - 2);
	expire(&f, TIMEOUT - 1);
	assert_int_equal(f.b->nr_failed, 0);
	end(&f);
}

/* Nothing was posted on the idle channel. A retry there would go to the same dead host. */
static void an_idle_channel_goes_with_it(void **state)
{
	struct stall_fixture f;

	(void)state;
	begin(&f);
	submit_at(&f, 0);
	assert_int_equal(weir_window_take(&f.b->window, &f.other, 4 * KIB), 0);
	another_waits(&f);
	expire(&f, PATIENCE);
	expire(&f, PATIENCE + STEP);
	assert_int_equal(f.b->nr_failed, CHANNELS);
	weir_window_give(&f.b->window, 4 * KIB);
	lose_all(&f);
}

/* Only one path may be gone, not the host. */
static void a_channel_that_is_answered_stays(void **state)
{
	struct stall_fixture f;

	(void)state;
	begin(&f);
	submit_at(&f, 0);
	submit_at(&f, 0);
	assert_int_not_equal(f.b->posted[0]->channel, f.b->posted[1]->channel);
	answer_at(&f, 1, STEP + 1);
	submit_at(&f, STEP + 1);
	another_waits(&f);
	expire(&f, PATIENCE);
	expire(&f, PATIENCE + STEP);
	assert_int_equal(f.b->nr_failed, 1);
	assert_int_equal(f.b->failed[0], f.b->posted[0]->channel);
	lose_all(&f);
}

/* A later post is no sign of life: a retry there would be held up for as long. */
static void a_channel_that_has_younger_work_goes(void **state)
{
	struct stall_fixture f;

	(void)state;
	begin(&f);
	submit_at(&f, 0);
	submit_at(&f, PATIENCE - 1);
	another_waits(&f);
	expire(&f, PATIENCE);
	expire(&f, PATIENCE + STEP);
	assert_int_equal(f.b->nr_failed, CHANNELS);
	lose_all(&f);
}

/* In a long queue each request waits long, but completions keep coming. */
static void a_long_queue_is_not_silence(void **state)
{
	struct stall_fixture f;
	uint64_t now_ns = 0;
	unsigned int i;

	(void)state;
	begin(&f);
	weir_engine_channel_down(&f.b->engine, 1);
	submit_at(&f, 0);
	submit_at(&f, 0);
	another_waits(&f);
	for (i = 0; i < 6; i++) {
		now_ns += PATIENCE - 1;
		expire(&f, now_ns);
		answer_at(&f, i, now_ns);
		weir_window_leave(&f.other);
		submit_at(&f, now_ns);
		another_waits(&f);
	}
	assert_int_equal(f.b->nr_failed, 0);
	end(&f);
}

/*
 * The watchdog does not depend on deadlines: a request may wait for an hour, but not block the
 * window.
 */
static void it_is_not_by_deadlines(void **state)
{
	struct stall_fixture f;

	(void)state;
	begin(&f);
	submit_until(&f, 0, WEIR_NEVER);
	submit_until(&f, 0, 100 * TIMEOUT);
	another_waits(&f);
	assert_int_equal(weir_engine_deadline_ns(&f.b->engine), PATIENCE);
	expire(&f, PATIENCE);
	assert_int_equal(weir_engine_deadline_ns(&f.b->engine), PATIENCE + STEP);
	expire(&f, PATIENCE + STEP);
	assert_int_equal(f.b->nr_failed, CHANNELS);
	lose_all(&f);
}

static void it_says_when_to_look(void **state)
{
	struct stall_fixture f;

	(void)state;
	begin(&f);
	assert_int_equal(weir_engine_deadline_ns(&f.b->engine), WEIR_NEVER);
	submit_at(&f, 1000);
	submit_at(&f, 1001);
	assert_int_equal(weir_engine_deadline_ns(&f.b->engine), 1000 + PATIENCE);
	answer_at(&f, 0, 1000 + PATIENCE);
	expire(&f, 1000 + PATIENCE);
	assert_int_equal(weir_engine_deadline_ns(&f.b->engine), 1001 + PATIENCE);
	expire(&f, 1001 + PATIENCE);
	assert_int_equal(weir_engine_deadline_ns(&f.b->engine), 1001 + PATIENCE + STEP);
	answer_at(&f, 1, 1001 + PATIENCE);
	expire(&f, 1001 + PATIENCE + STEP);
	assert_int_equal(weir_engine_deadline_ns(&f.b->engine), WEIR_NEVER);
	end(&f);
}

/* A fast-path request is dated when the host reads the clock, not by the window's older time. */
static void a_fastpath_request_ages_from_its_own_post(void **state)
{
	struct weir_wr *wr;
	struct stall_fixture f;

	(void)state;
	begin(&f);
	f.req[0] = bench_req(WEIR_OP_READ, 0, 4 * KIB);
	wr = weir_fastpath_post(&f.b->engine, &f.req[0]);
	assert_non_null(wr);
	f.b->posted[f.b->nr_posted++] = wr;
	weir_fastpath_start_timer(&f.b->engine, wr, TIMEOUT);
	f.req[0].deadline_ns = 2 * TIMEOUT;
	assert_int_equal(weir_engine_deadline_ns(&f.b->engine), TIMEOUT + PATIENCE);
	assert_int_equal(weir_window_take(&f.b->window, &f.other, 4 * KIB), 0);
	another_waits(&f);
	expire(&f, TIMEOUT + PATIENCE);
	assert_int_equal(f.b->nr_failed, 0);
	expire(&f, TIMEOUT + PATIENCE + STEP);
	assert_int_equal(f.b->nr_failed, CHANNELS);
	weir_window_give(&f.b->window, 4 * KIB);
	lose_all(&f);
}

/*
 * An unloaded write waits for the target's CPU. The target program may be stopped while the
 * host is well.
 */
static void unloaded_writes_are_not_given_up(void **state)
{
	static uint8_t counters[WEIR_PATH_BYTES(WEIR_PATH_COUNTERS_MIN)]
		__attribute__((aligned(8)));
	const struct weir_path_config config = { .policy = WEIR_PATH_POLICY_UNLOAD,
						 .bytes_max = 64,
						 .hot_pages = 1,
						 .nr_counters = WEIR_PATH_COUNTERS_MIN };
	struct weir_path_selector route;
	struct stall_fixture f;

	(void)state;
	begin(&f);
	assert_int_equal(weir_path_init(&route, &config, counters), 0);
	weir_engine_unload(&f.b->engine, &route, CHANNELS);
	assert_int_equal(weir_engine_channel_up(&f.b->engine, CHANNELS, 4), 0);
	f.req[0] = bench_req(WEIR_OP_WRITE, 0, 64);
	f.req[0].deadline_ns = TIMEOUT;
	assert_int_equal(weir_engine_submit(&f.b->engine, &f.req[0], 0), 0);
	bench_pull(f.b);
	assert_int_equal(f.b->posted[0]->channel, CHANNELS);
	assert_int_equal(weir_window_take(&f.b->window, &f.other, 4 * KIB), 0);
	another_waits(&f);
	expire(&f, PATIENCE);
	expire(&f, PATIENCE + STEP);
	assert_int_equal(f.b->nr_failed, 0);
	weir_window_give(&f.b->window, 4 * KIB);
	end(&f);
}

/* A request behind the head of the window's queue waits too, even with enough room. */
static void a_waiter_behind_the_first_waits_too(void **state)
{
	struct stall_fixture f;

	(void)state;
	begin(&f);
	submit_at(&f, 0);
	assert_int_equal(weir_window_take(&f.b->window, &f.other, 2 * KIB), 0);
	submit_at(&f, 0);
	assert_int_equal(weir_window_take(&f.b->window, &f.other, 1 * KIB), -EAGAIN);
	assert_true(weir_window_fits(&f.b->window, 1 * KIB));
	expire(&f, PATIENCE);
	expire(&f, PATIENCE + STEP);
	assert_int_equal(f.b->nr_failed, CHANNELS);
	weir_window_give(&f.b->window, 2 * KIB);
	lose_all(&f);
}

/* The other engine already has room, and lacks only a pull. */
static void a_session_with_room_does_not_wait(void **state)
{
	struct stall_fixture f;

	(void)state;
	begin(&f);
	submit_at(&f, 0);
	submit_at(&f, 0);
	another_waits(&f);
	answer_at(&f, 0, 1);
	expire(&f, 1 + PATIENCE);
	expire(&f, 1 + PATIENCE + STEP);
	assert_int_equal(f.b->nr_failed, 0);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("a stalled channel is given up at half the timeout",
		     a_stalled_channel_is_given_up),
		SAYS("a late watchdog checks twice before it gives up",
		     a_late_watchdog_checks_twice),
		SAYS("one look is not two by another channel",
		     one_look_is_not_two_by_another_channel),
		SAYS("an answer ends the doubt", an_answer_ends_the_doubt),
		SAYS("without a waiter the watchdog waits", without_a_waiter_the_watchdog_waits),
		SAYS("a session's own turn stalls no other session",
		     a_sessions_own_turn_stalls_no_other),
		SAYS("for ever is for ever", for_ever_is_for_ever),
		SAYS("an idle channel goes with it", an_idle_channel_goes_with_it),
		SAYS("a channel that is answered stays", a_channel_that_is_answered_stays),
		SAYS("a channel that has younger work goes", a_channel_that_has_younger_work_goes),
		SAYS("a long queue is not silence", a_long_queue_is_not_silence),
		SAYS("it is not by deadlines", it_is_not_by_deadlines),
		SAYS("it says when to look", it_says_when_to_look),
		SAYS("a fast-path request ages from its own post",
		     a_fastpath_request_ages_from_its_own_post),
		SAYS("unloaded writes are not given up", unloaded_writes_are_not_given_up),
		SAYS("a waiter behind the first waits as well",
		     a_waiter_behind_the_first_waits_too),
		SAYS("a session with room does not wait", a_session_with_room_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
