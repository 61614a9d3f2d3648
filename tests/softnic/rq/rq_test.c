// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic rq; devices: softnic; timeout: 120 */
/*
 * The receive queue: both sides in one process, competing threads, and takers in processes
 * killed while taking.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "softnic/rq/rq.h"

enum { SIZE = 16, SGES = 2, TAKERS = 4, PATIENCE_S = 100 };

/* The owner's side; takers in other processes share the memory. */
struct rq_sides {
	struct rq rq;
	struct arrivals arrivals;
	uint8_t *memory;
	uint32_t tail, polled;
	uint32_t position[SIZE]; /* of each receive */
	bool out[SIZE];
};

static size_t queue_bytes(void)
{
	return rq_own_bytes(SIZE, SGES) + rq_bytes(SIZE);
}

static void ring_init(struct rq_sides *ring)
{
	size_t arrivals = arrivals_bytes(arrivals_size_for(SIZE));

	memset(ring, 0, sizeof(*ring));
	ring->memory = mmap(NULL, arrivals + queue_bytes(), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(ring->memory != MAP_FAILED);
	arrivals_format(&ring->arrivals, ring->memory, arrivals_size_for(SIZE));
	rq_format(&ring->rq, ring->memory + arrivals, NULL, SIZE, SGES, 1);
	ring->tail = rq_first_position(&ring->rq);
	ring->polled = arrivals_first_position(&ring->arrivals);
}

static void ring_fini(struct rq_sides *ring)
{
	munmap(ring->memory, arrivals_bytes(arrivals_size_for(SIZE)) + queue_bytes());
}

/* Each buffer holds the position twice, to expose a torn copy. */
static void post(struct rq_sides *ring, uint32_t index)
{
	struct ibv_sge sges[SGES] = {
		{ ring->tail, index, ~ring->tail },
		{ ~(uint64_t)ring->tail, 1, ring->tail },
	};

	ring->position[index] = ring->tail;
	ring->out[index] = true;
	rq_post(&ring->rq, ring->tail++, index, sges, SGES);
}

static bool is_whole(const struct rq_receive *r)
{
	return r->num_sge == SGES && r->sges[0].addr == r->position &&
	       r->sges[0].length == r->index && r->sges[0].lkey == ~r->position &&
	       r->sges[1].addr == ~(uint64_t)r->position && r->sges[1].lkey == r->position;
}

/*
 * Take a receive with pauses, and put the taker in the result. Return: false if the queue is
 * empty.
 */
static bool take_slowly(const struct rq_sides *ring, uint32_t taker, uint32_t yields)
{
	struct rq_receive r;
	int rc = rq_peek(&ring->rq, &r);

	if (rc == -EAGAIN)
		return false;
	if (rc)
		abort();
	if (!rq_take(&ring->rq, &r, taker))
		return true;
	if (!is_whole(&r))
		abort();
	while (yields--)
		sched_yield();
	rq_finish(&ring->rq, &r, taker,
		  &(struct rq_result){ .byte_len = r.position, .src_qp = taker }, &ring->arrivals);
	return true;
}

static bool take_one(const struct rq_sides *ring, uint32_t taker)
{
	return take_slowly(ring, taker, 0);
}

/* Poll a receive. Return: its index, or -1. */
static int poll_one(struct rq_sides *ring, struct rq_result *result)
{
	uint32_t index;
	bool done;

	while (arrivals_next(&ring->arrivals, ring->polled, &index)) {
		ring->polled++;
		assert_true(index < SIZE);
		if (!ring->out[index] ||
		    !rq_taker(&ring->rq, ring->position[index], index, &done) || !done)
			continue;
		rq_result(&ring->rq, index, result);
		assert_int_equal(result->byte_len, ring->position[index]);
		ring->out[index] = false;
		return index;
	}
	return -1;
}

static void test_receives_are_taken_in_the_order_posted(void **state)
{
	struct rq_result result;
	struct rq_sides ring;
	uint32_t i;

	(void)state;
	ring_init(&ring);
	assert_false(take_one(&ring, 1));
	for (i = 0; i < SIZE; i++)
		post(&ring, SIZE - 1 - i);
	for (i = 0; i < SIZE; i++)
		assert_true(take_one(&ring, 1));
	assert_false(take_one(&ring, 1));
	for (i = 0; i < SIZE; i++)
		assert_int_equal(poll_one(&ring, &result), SIZE - 1 - i);
	assert_int_equal(poll_one(&ring, &result), -1);
	ring_fini(&ring);
}

static void test_positions_that_wrap_around_go_on(void **state)
{
	struct rq_result result;
	struct rq_sides ring;
	uint32_t i;

	(void)state;
	ring_init(&ring);
	ring.tail = ring.rq.shared->head = UINT32_MAX - 2;
	ring.polled = ring.arrivals.shared->tail = UINT32_MAX - 1;
	/* Leftovers of the round before. */
	for (i = 0; i < SIZE; i++)
		ring.rq.shared->posted[i] = (uint64_t)(UINT32_MAX - 2 * SIZE) << 32;
	for (i = 0; i < ring.arrivals.size; i++)
		ring.arrivals.shared->at[i] = (uint64_t)(UINT32_MAX - 2 * SIZE) << 32;
	for (i = 0; i < 5 * SIZE; i++) {
		post(&ring, i % SIZE);
		assert_true(take_one(&ring, 1));
		assert_int_equal(poll_one(&ring, &result), i % SIZE);
		assert_false(take_one(&ring, 1));
	}
	ring_fini(&ring);
}

static void test_a_late_taker_takes_nothing(void **state)
{
	struct rq_receive first, second;
	struct rq_result result;
	struct rq_sides ring;

	(void)state;
	ring_init(&ring);
	post(&ring, 0);
	assert_int_equal(rq_peek(&ring.rq, &first), 0);
	assert_int_equal(rq_peek(&ring.rq, &second), 0);
	assert_true(rq_take(&ring.rq, &first, 1));
	assert_false(rq_take(&ring.rq, &second, 2));
	assert_true(rq_finish(&ring.rq, &first, 1,
			      &(struct rq_result){ .byte_len = first.position }, &ring.arrivals));
	assert_int_equal(poll_one(&ring, &result), 0);
	post(&ring, 0); /* the same slot, another position */
	assert_false(rq_take(&ring.rq, &second, 2));
	assert_true(take_one(&ring, 3));
	ring_fini(&ring);
}

/* The owner gave up on a taker, which then goes on. */
static void test_a_revoked_receive_is_not_completed(void **state)
{
	struct rq_result result;
	struct rq_receive r;
	struct rq_sides ring;

	(void)state;
	ring_init(&ring);
	post(&ring, 0);
	assert_int_equal(rq_peek(&ring.rq, &r), 0);
	assert_true(rq_take(&ring.rq, &r, 1));
	post(&ring, 0);
	assert_false(rq_finish(&ring.rq, &r, 1, &(struct rq_result){ 0 }, &ring.arrivals));
	assert_int_equal(poll_one(&ring, &result), -1);
	assert_true(take_one(&ring, 2));
	assert_int_equal(poll_one(&ring, &result), 0);
	assert_int_equal(result.src_qp, 2);
	ring_fini(&ring);
}

/* A dying taker leaves the head or tail hint behind; the next taker moves the hint. */
static void test_a_stale_hint_stops_no_peer(void **state)
{
	struct rq_result result;
	struct rq_sides ring;

	(void)state;
	ring_init(&ring);
	post(&ring, 0);
	post(&ring, 1);
	post(&ring, 2);
	assert_true(take_one(&ring, 1));
	ring.rq.shared->head--;
	ring.arrivals.shared->tail--;
	assert_true(take_one(&ring, 2));
	ring.rq.shared->head--;
	ring.arrivals.shared->tail--;
	assert_int_equal(poll_one(&ring, &result), 0);
	assert_int_equal(poll_one(&ring, &result), 1);
	assert_true(take_one(&ring, 3));
	assert_int_equal(poll_one(&ring, &result), 2);
	ring_fini(&ring);
}

static void test_the_first_to_find_too_few_left_tells(void **state)
{
	struct rq_sides ring;

	(void)state;
	ring_init(&ring);
	post(&ring, 0);
	post(&ring, 1);
	rq_set_limit(&ring.rq, 2);
	assert_false(rq_is_below_limit(&ring.rq));
	assert_false(rq_should_tell(&ring.rq));
	assert_true(take_one(&ring, 1));
	assert_true(rq_should_tell(&ring.rq));
	assert_false(rq_should_tell(&ring.rq));
	assert_true(rq_is_below_limit(&ring.rq));
	rq_set_limit(&ring.rq, 0);
	assert_false(rq_is_below_limit(&ring.rq));
	ring_fini(&ring);
}

static void test_nonsense_is_refused_and_ends(void **state)
{
	struct rq_receive r;
	struct rq_sides ring;
	struct rq rq;
	const size_t own = rq_own_bytes(SIZE, SGES), room = rq_bytes(SIZE);
	uint32_t i;

	(void)state;
	ring_init(&ring);
	post(&ring, 0);
	ring.rq.shared->posted[ring.rq.shared->head % SIZE] |= UINT32_MAX;
	assert_int_equal(rq_peek(&ring.rq, &r), -EPROTO);
	for (i = 0; i < SIZE; i++)
		ring.rq.shared->posted[i] = (uint64_t)i << 32;
	ring.rq.shared->head = 77;
	assert_int_equal(rq_peek(&ring.rq, &r), -EAGAIN);
	for (i = 0; i < ring.arrivals.size; i++)
		ring.arrivals.shared->at[i] = UINT64_MAX / 2;
	arrivals_add(&ring.arrivals, 0);
	assert_true(arrivals_are_overrun(&ring.arrivals, ring.polled));
	ring.rq.own->size = 3;
	assert_int_equal(rq_map(&rq, ring.rq.own, queue_bytes(), NULL, 0), -EPROTO);
	ring.rq.own->size = 2 * SIZE;
	assert_int_equal(rq_map(&rq, ring.rq.own, queue_bytes(), NULL, 0), -EPROTO);
	ring.rq.own->size = SIZE;
	assert_int_equal(rq_map(&rq, ring.rq.own, queue_bytes() - 1, NULL, 0), -EPROTO);
	assert_int_equal(rq_map(&rq, ring.rq.own, queue_bytes(), NULL, 0), 0);
	assert_int_equal(rq_map(&rq, ring.rq.own, own, ring.rq.shared, room - 1), -EPROTO);
	assert_int_equal(rq_map(&rq, ring.rq.own, own - 1, ring.rq.shared, room), -EPROTO);
	assert_int_equal(rq_map(&rq, ring.rq.own, own, ring.rq.shared, room), 0);
	ring_fini(&ring);
}

struct rq_takers {
	struct rq_sides *ring;
	uint32_t taker;
	bool *stop;
};

static void *take_for_ever(void *arg)
{
	struct rq_takers *c = arg;

	while (!load_relaxed(c->stop))
		if (!take_one(c->ring, c->taker))
			sched_yield();
	return NULL;
}

/* Each position arrives exactly once, as posted. */
static void test_many_threads_take_each_receive_once(void **state)
{
	const uint32_t rounds = 20000;
	struct rq_takers crowd[TAKERS];
	pthread_t threads[TAKERS];
	struct rq_result result;
	bool stop = false, *seen = calloc(rounds + 2 * SIZE, sizeof(*seen));
	struct rq_sides ring;
	uint32_t i, n;
	int index;

	(void)state;
	ring_init(&ring);
	for (i = 0; i < SIZE; i++)
		post(&ring, i);
	for (i = 0; i < TAKERS; i++) {
		crowd[i] = (struct rq_takers){ &ring, i + 1, &stop };
		assert_int_equal(pthread_create(&threads[i], NULL, take_for_ever, &crowd[i]), 0);
	}
	for (n = 0; n < rounds;) {
		index = poll_one(&ring, &result);
		if (index < 0) {
			sched_yield();
			continue;
		}
		assert_false(seen[result.byte_len - SIZE]);
		seen[result.byte_len - SIZE] = true;
		post(&ring, index);
		n++;
	}
	store_relaxed(&stop, true);
	for (i = 0; i < TAKERS; i++)
		pthread_join(threads[i], NULL);
	free(seen);
	ring_fini(&ring);
}

static pid_t start_taker(struct rq_sides *ring, uint32_t taker)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	while (!pid)
		take_slowly(ring, taker, taker % 8);
	return pid;
}

static bool has_arrived(const struct rq_sides *ring, uint32_t index)
{
	uint32_t at, i;

	for (at = ring->polled; arrivals_next(&ring->arrivals, at, &i); at++)
		if (i == index)
			return true;
	return false;
}

/* Post again the receives of a dead taker. Return: their number. */
static uint32_t take_back(struct rq_sides *ring, uint32_t taker)
{
	uint32_t i, n = 0;
	bool done;

	for (i = 0; i < SIZE; i++) {
		if (!ring->out[i] || rq_taker(&ring->rq, ring->position[i], i, &done) != taker ||
		    (done && has_arrived(ring, i)))
			continue;
		post(ring, i);
		n++;
	}
	return n;
}

/* The taker holds the receive, is about to pass it on, or has just passed it on. */
static void test_a_dead_takers_receives_are_found_by_its_name(void **state)
{
	struct rq_result result;
	struct rq_receive r;
	struct arrivals nowhere = { 0 };
	struct rq_sides ring;
	uint32_t i;

	(void)state;
	ring_init(&ring);
	for (i = 0; i < 3; i++)
		post(&ring, i);
	assert_int_equal(rq_peek(&ring.rq, &r), 0);
	assert_true(rq_take(&ring.rq, &r, 7));
	assert_int_equal(rq_peek(&ring.rq, &r), 0);
	assert_true(rq_take(&ring.rq, &r, 7));
	assert_true(rq_finish(&ring.rq, &r, 7, &(struct rq_result){ 0 }, &nowhere));
	assert_true(take_one(&ring, 7));
	assert_int_equal(take_back(&ring, 8), 0);
	assert_int_equal(take_back(&ring, 7), 2);
	assert_int_equal(poll_one(&ring, &result), 2);
	assert_int_equal(poll_one(&ring, &result), -1);
	assert_true(take_one(&ring, 8));
	assert_true(take_one(&ring, 8));
	assert_false(take_one(&ring, 8));
	assert_int_equal(poll_one(&ring, &result), 0);
	assert_int_equal(poll_one(&ring, &result), 1);
	ring_fini(&ring);
}

/*
 * Takers are killed at random points all the time. The survivors go on, and no receive is lost
 * or arrives twice.
 */
static void test_takers_that_are_killed_cost_nothing(void **state)
{
	pid_t pids[TAKERS];
	struct rq_result result;
	struct rq_sides ring;
	uint32_t i, n, kills, next = 1, names[TAKERS], left = 0;
	int index;

	(void)state;
	ring_init(&ring);
	for (i = 0; i < SIZE; i++)
		post(&ring, i);
	for (i = 0; i < TAKERS; i++)
		pids[i] = start_taker(&ring, names[i] = next++);
	for (kills = 0; kills < 64; kills++) {
		for (n = 0; n < 20 + kills % 20;) {
			index = poll_one(&ring, &result);
			if (index >= 0) {
				post(&ring, index);
				n++;
			} else {
				sched_yield();
			}
		}
		i = kills % TAKERS;
		kill(pids[i], SIGKILL);
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
		left += take_back(&ring, names[i]);
		pids[i] = start_taker(&ring, names[i] = next++);
	}
	for (i = 0; i < TAKERS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
		left += take_back(&ring, names[i]);
	}
	print_message("# %u receives were left behind\n", left);
	while (take_one(&ring, next))
		;
	for (n = 0; poll_one(&ring, &result) >= 0; n++)
		;
	assert_int_equal(n, SIZE);
	ring_fini(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_receives_are_taken_in_the_order_posted),
		cmocka_unit_test(test_positions_that_wrap_around_go_on),
		cmocka_unit_test(test_a_late_taker_takes_nothing),
		cmocka_unit_test(test_a_revoked_receive_is_not_completed),
		cmocka_unit_test(test_a_stale_hint_stops_no_peer),
		cmocka_unit_test(test_the_first_to_find_too_few_left_tells),
		cmocka_unit_test(test_nonsense_is_refused_and_ends),
		cmocka_unit_test(test_many_threads_take_each_receive_once),
		cmocka_unit_test(test_a_dead_takers_receives_are_found_by_its_name),
		cmocka_unit_test(test_takers_that_are_killed_cost_nothing),
	};

	alarm(PATIENCE_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
