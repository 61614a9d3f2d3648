/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib posting; suites: lib parallel; devices: softnic; timeout: 180 */
/*
 * Long chains posted without the NIC's lock: a device that takes long to post holds up the posting
 * thread and no other. The test holds a thread inside the device's post function, or refuses half
 * of the chain there. A row is a chain of pages, every second page of a range, so that none are
 * merged.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/client/channel/pump.h"
#include "lib/client/session.h"
#include "tests/support/libweir_fixture.h"

#define PAGE 4096u
#define ROW 32u
#define ROW_BYTES ((size_t)ROW * PAGE)
#define THREADS 4
#define ROUNDS 150
#define WAIT_MS 60000
#define LOCK_NS 5000000000ull
#define FAILURES 3 /* as many as a request's retries */
#define CROWD 1000000 /* more chains than this test posts */

typedef int post_fn(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/* The way in which the device treats the next row; atomic. */
static struct {
	post_fn *real;
	bool holds, refuses;
	sem_t held, go;
	int posts;
} device;

static size_t bytes_of(const struct ibv_send_wr *wr)
{
	size_t bytes = 0;
	int i;

	for (; wr; wr = wr->next) {
		for (i = 0; i < wr->num_sge; i++)
			bytes += wr->sg_list[i].length;
	}
	return bytes;
}

/* The WRs posted have no completion of their own: only the last of a chain is signalled. */
static int post_half(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_send_wr *last = wr, *rest;
	unsigned int i;
	int rc;

	for (i = 1; i < ROW / 2; i++)
		last = last->next;
	rest = last->next;
	last->next = NULL;
	rc = device.real(qp, wr, bad);
	last->next = rest;
	if (rc)
		return rc;
	*bad = rest;
	return ENOMEM;
}

static void hold(void)
{
	if (!__atomic_exchange_n(&device.holds, false, __ATOMIC_ACQ_REL))
		return;
	sem_post(&device.held);
	sem_wait(&device.go);
}

static int post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	bool is_row = bytes_of(wr) == ROW_BYTES;
	int rc;

	__atomic_fetch_add(&device.posts, 1, __ATOMIC_RELAXED);
	if (is_row && __atomic_exchange_n(&device.refuses, false, __ATOMIC_ACQ_REL)) {
		rc = post_half(qp, wr, bad);
		hold();
		return rc;
	}
	if (is_row)
		hold();
	return device.real(qp, wr, bad);
}

struct posting_fixture {
	struct donor_process donor;
	struct weir_session *session;
	struct weir_region *region;
	struct weir_memory *memory;
	struct weir_queue *queue;
	pthread_t poster;
	char pages[THREADS][ROW_BYTES];
	unsigned int rounds; /* of all workers; atomic */
};

/* The threads of a crowd, which have no lanes. */
static void be_crowded(struct posting_fixture *s)
{
	__atomic_store_n(&s->session->lanes.loans.paused, CROWD, __ATOMIC_RELAXED);
	__atomic_store_n(&s->session->nic->crowd, CROWD, __ATOMIC_RELAXED);
}

static struct posting_fixture *open_with(unsigned int channels)
{
	const struct weir_session_options options = { .size = sizeof(options),
						      .channels = channels };
	struct posting_fixture *s = calloc(1, sizeof(*s));
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	assert_non_null(s);
	donor_process_start(&s->donor, "16777216", NULL);
	s->session = session_to(&s->donor, &options);
	assert_int_equal(weir_region_create(s->session, NULL, MIB, WEIR_REGION_EXCLUSIVE,
					    &s->region, NULL),
			 0);
	assert_int_equal(
		weir_memory_register(s->session, s->pages, sizeof(s->pages), &s->memory, NULL), 0);
	assert_int_equal(weir_queue_create(&s->queue), 0);
	assert_int_equal(weir_session_verbs(s->session, 0, &pd, &cq, &qp), 0);
	if (pd->context->ops.post_send != post) { /* stays: a channel may be coming up at the end */
		device.real = pd->context->ops.post_send;
		pd->context->ops.post_send = post;
	}
	be_crowded(s);
	return s;
}

static void close_all(struct posting_fixture *s)
{
	weir_memory_deregister(s->memory);
	weir_region_close(s->region);
	weir_session_close(s->session);
	weir_queue_destroy(s->queue);
	donor_process_stop(&s->donor);
	free(s);
}

static size_t page_offset(size_t row, size_t page)
{
	return (2 * (row * ROW + page)) * PAGE;
}

/* Writes or reads row @row, one request a page. */
static void submit_row(struct posting_fixture *s, struct weir_queue *queue, bool reads, char *pages,
		       size_t row)
{
	struct weir_transfer transfers[ROW];
	struct weir_iov iov[ROW];
	unsigned int i;

	for (i = 0; i < ROW; i++) {
		iov[i] = (struct weir_iov){ pages + (size_t)i * PAGE, PAGE, s->memory };
		transfers[i] = (struct weir_transfer){
			.direction = reads ? WEIR_READ : WEIR_WRITE,
			.region = s->region,
			.offset = page_offset(row, i),
			.iov = &iov[i],
			.iovcnt = 1,
			.completion = { .queue = queue },
		};
	}
	assert_int_equal(weir_transfer_async(transfers, ROW, NULL), 0);
}

/* Waits for a row. Return: how many of its requests failed. */
static unsigned int wait_for_row(struct weir_queue *queue)
{
	struct weir_event events[ROW];
	unsigned int done = 0, failed = 0;
	int i, got;

	while (done < ROW) {
		got = weir_queue_wait(queue, events, ROW, WAIT_MS);
		assert_true(got > 0);
		for (i = 0; i < got; i++)
			failed += events[i].status != 0;
		done += (unsigned int)got;
	}
	assert_int_equal(done, ROW);
	return failed;
}

static void *write_first_row(void *arg)
{
	struct weir_queue *queue;
	struct posting_fixture *s = arg;

	assert_int_equal(weir_queue_create(&queue), 0);
	submit_row(s, queue, false, s->pages[0], 0);
	assert_int_equal(wait_for_row(queue), 0);
	weir_queue_destroy(queue);
	return NULL;
}

/*
 * Returns when a thread that writes row 0 is inside the device's post function, which has posted
 * nothing, or with @refuses half of the row.
 */
static void hold_up(struct posting_fixture *s, bool refuses)
{
	memset(s->pages[0], 'a', ROW_BYTES);
	memset(s->pages[1], 'b', ROW_BYTES);
	sem_init(&device.held, 0, 0);
	sem_init(&device.go, 0, 0);
	__atomic_store_n(&device.holds, true, __ATOMIC_RELEASE);
	__atomic_store_n(&device.refuses, refuses, __ATOMIC_RELEASE);
	assert_int_equal(pthread_create(&s->poster, NULL, write_first_row, s), 0);
	sem_wait(&device.held);
	be_crowded(s);
}

static void let_go(struct posting_fixture *s)
{
	sem_post(&device.go);
	pthread_join(s->poster, NULL);
	sem_destroy(&device.held);
	sem_destroy(&device.go);
}

static void expect_row(struct posting_fixture *s, size_t row, char c)
{
	char expected[PAGE], found[PAGE];
	size_t i;

	memset(expected, c, PAGE);
	for (i = 0; i < ROW; i++) {
		assert_int_equal(weir_read(s->region, page_offset(row, i), found, PAGE), 0);
		assert_memory_equal(found, expected, PAGE);
	}
}

static void other_threads_use_another_channel(void **state)
{
	struct weir_session_info info;
	struct posting_fixture *s = open_with(2);
	char byte = 'x', found = 0;

	(void)state;
	hold_up(s, false);
	assert_int_equal(weir_write(s->region, page_offset(2, 0), &byte, 1), 0);
	assert_int_equal(weir_read(s->region, page_offset(2, 0), &found, 1), 0);
	assert_int_equal(found, 'x');
	submit_row(s, s->queue, false, s->pages[1], 1);
	assert_int_equal(wait_for_row(s->queue), 0);
	let_go(s);
	expect_row(s, 0, 'a');
	expect_row(s, 1, 'b');
	assert_int_equal(weir_session_info(s->session, &info, sizeof(info)), 0);
	assert_true(info.unlocked >= 2);
	close_all(s);
}

/* A round of the session's thread, which holds the lock while a row comes. */
static void *poll_once(void *arg)
{
	struct posting_fixture *s = arg;
	struct weir_nic *nic = s->session->nic;

	weir_session_lock(s->session);
	sem_post(&device.held);
	while (!weir_inbox_may_have(&nic->combine.inbox))
		sched_yield();
	weir_combine_drain_inbox(nic);
	weir_pump_poll(s->session, weir_now_ns());
	weir_dispatch(s->session);
	return NULL;
}

/* Others may hold the lock, but not for long. */
static bool is_lock_free(struct weir_nic *nic)
{
	uint64_t until_ns = weir_now_ns() + LOCK_NS;

	while (!weir_mutex_trylock(&nic->lock)) {
		if (weir_now_ns() > until_ns)
			return false;
		sched_yield();
	}
	weir_mutex_unlock(&nic->lock);
	return true;
}

static void a_thread_that_polls_posts_without_the_lock_too(void **state)
{
	struct posting_fixture *s = open_with(2);
	pthread_t poller;

	(void)state;
	sem_init(&device.held, 0, 0);
	assert_int_equal(pthread_create(&poller, NULL, poll_once, s), 0);
	sem_wait(&device.held);
	hold_up(s, false);
	assert_true(is_lock_free(s->session->nic));
	let_go(s);
	pthread_join(poller, NULL);
	expect_row(s, 0, 'a');
	close_all(s);
}

static void an_overlapping_request_waits_for_the_post(void **state)
{
	struct posting_fixture *s = open_with(2);

	(void)state;
	hold_up(s, false);
	submit_row(s, s->queue, false, s->pages[1], 0);
	let_go(s);
	assert_int_equal(wait_for_row(s->queue), 0);
	expect_row(s, 0, 'b');
	close_all(s);
}

/* The posting thread finds the requests when it is back. */
static void with_one_channel_requests_gather(void **state)
{
	struct posting_fixture *s = open_with(1);
	int posts;

	(void)state;
	hold_up(s, false);
	posts = __atomic_load_n(&device.posts, __ATOMIC_RELAXED);
	submit_row(s, s->queue, false, s->pages[1], 1);
	assert_int_equal(__atomic_load_n(&device.posts, __ATOMIC_RELAXED), posts);
	let_go(s);
	assert_int_equal(wait_for_row(s->queue), 0);
	assert_int_equal(__atomic_load_n(&device.posts, __ATOMIC_RELAXED), posts + 1);
	expect_row(s, 0, 'a');
	expect_row(s, 1, 'b');
	close_all(s);
}

/* The other half was never posted, so it goes by the other channel. */
static void a_chain_refused_in_half_is_posted_elsewhere(void **state)
{
	struct posting_fixture *s = open_with(2);

	(void)state;
	hold_up(s, true);
	let_go(s);
	expect_row(s, 0, 'a');
	close_all(s);
}

/* Fails the link that a thread posts to. Return: its number. */
static unsigned int fail_posting_link(struct posting_fixture *s)
{
	unsigned int i;

	weir_session_lock(s->session);
	for (i = 0; i < s->session->nr_links && !s->session->links[i].core.is_posting; i++)
		;
	assert_true(i < s->session->nr_links);
	weir_session_link_fail(&s->session->links[i]);
	weir_session_unlock(s->session);
	return i;
}

/* The requests must not end as if the device had done them. */
static void a_chain_refused_by_a_failed_link_is_posted_elsewhere(void **state)
{
	struct posting_fixture *s = open_with(2);

	(void)state;
	hold_up(s, true);
	fail_posting_link(s);
	let_go(s);
	expect_row(s, 0, 'a');
	close_all(s);
}

/* The device takes the chain, and flushes it. The region is exclusive, so weir posts it again. */
static void a_chain_flushed_by_a_failed_link_is_posted_again(void **state)
{
	struct posting_fixture *s = open_with(2);
	unsigned int failed;

	(void)state;
	hold_up(s, false);
	failed = fail_posting_link(s);
	weir_session_lock(s->session);
	assert_int_equal(s->session->links[failed].core.state, WEIR_LINK_FAILING);
	weir_session_unlock(s->session);
	let_go(s);
	expect_row(s, 0, 'a');
	assert_int_equal(weir_flush(s->session), 0);
	close_all(s);
}

struct posting_worker {
	struct posting_fixture *s;
	unsigned int number;
	unsigned int wrong;
	pthread_t thread;
};

/* Overwrites the same row again and again, and reads it back. */
static void *rewrite_row(void *arg)
{
	struct posting_worker *w = arg;
	char *pages = w->s->pages[w->number];
	struct weir_queue *queue;
	unsigned int i, round;

	if (weir_queue_create(&queue)) {
		w->wrong = 1;
		return NULL;
	}
	for (round = 0; round < ROUNDS; round++) {
		memset(pages, (int)(1 + (round + w->number) % 100), ROW_BYTES);
		submit_row(w->s, queue, false, pages, w->number);
		if (round % 2)
			w->wrong += weir_flush(w->s->session) != 0;
		w->wrong += wait_for_row(queue);
		memset(pages, 0, ROW_BYTES);
		submit_row(w->s, queue, true, pages, w->number);
		w->wrong += wait_for_row(queue);
		for (i = 0; i < ROW_BYTES; i++)
			w->wrong += pages[i] != (char)(1 + (round + w->number) % 100);
		__atomic_fetch_add(&w->s->rounds, 1, __ATOMIC_RELAXED);
	}
	weir_queue_destroy(queue);
	return NULL;
}

/* Each request ends once and well, while links fail under the threads that post. */
static void rows_survive_failing_links(void **state)
{
	struct posting_fixture *s = open_with(3);
	struct posting_worker workers[THREADS];
	unsigned int i;

	(void)state;
	for (i = 0; i < THREADS; i++) {
		workers[i] = (struct posting_worker){ .s = s, .number = i };
		assert_int_equal(pthread_create(&workers[i].thread, NULL, rewrite_row, &workers[i]),
				 0);
	}
	for (i = 0; i < FAILURES; i++) {
		while (__atomic_load_n(&s->rounds, __ATOMIC_RELAXED) < i * ROUNDS)
			sched_yield();
		weir_session_lock(s->session);
		weir_session_link_fail(&s->session->links[i % 2 + 1]);
		weir_session_unlock(s->session);
		assert_int_equal(weir_flush(s->session), 0);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].wrong, 0);
	}
	close_all(s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_threads_use_another_channel),
		cmocka_unit_test(a_thread_that_polls_posts_without_the_lock_too),
		cmocka_unit_test(an_overlapping_request_waits_for_the_post),
		cmocka_unit_test(with_one_channel_requests_gather),
		cmocka_unit_test(a_chain_refused_in_half_is_posted_elsewhere),
		cmocka_unit_test(a_chain_refused_by_a_failed_link_is_posted_elsewhere),
		cmocka_unit_test(a_chain_flushed_by_a_failed_link_is_posted_again),
		cmocka_unit_test(rows_survive_failing_links),
	};

	fixture_runs_on("softnic");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
