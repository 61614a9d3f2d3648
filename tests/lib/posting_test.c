/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A device that takes long to be posted to: who posts is held up there, and the others are not. What is
 * posted is small or a row of pages; it is the rows that are held up.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "fixture.h"

#define PAGE 4096u
#define ROW 32u /* pages: long to post */
#define ROW_BYTES ((size_t)ROW * PAGE)

typedef int post_fn(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/* What the device does with the next row. */
static struct {
	post_fn *real;
	bool holds, fails; /* atomic */
	sem_t held, go;
	int posts; /* of anything; atomic */
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

static int post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	__atomic_fetch_add(&device.posts, 1, __ATOMIC_RELAXED);
	if (bytes_of(wr) < ROW_BYTES)
		return device.real(qp, wr, bad);
	if (__atomic_exchange_n(&device.holds, false, __ATOMIC_ACQ_REL)) {
		sem_post(&device.held);
		sem_wait(&device.go);
	}
	if (__atomic_exchange_n(&device.fails, false, __ATOMIC_ACQ_REL)) {
		*bad = wr;
		return ENOMEM;
	}
	return device.real(qp, wr, bad);
}

struct state {
	struct donor donor;
	struct weir_session *session;
	struct weir_region *region;
	struct weir_memory *memory;
	struct weir_queue *queue;
	pthread_t poster;
	char pages[2][ROW_BYTES]; /* the poster's row, and ours */
};

static struct state *open_with(unsigned int channels)
{
	const struct weir_session_options options = { .channels = channels };
	struct state *s = calloc(1, sizeof(*s));
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	assert_non_null(s);
	donor_start(&s->donor, "16777216", NULL);
	s->session = session_to(&s->donor, &options);
	s->region = region_of(s->session, MIB);
	assert_int_equal(weir_memory_register(s->session, s->pages, sizeof(s->pages), &s->memory, NULL), 0);
	assert_int_equal(weir_queue_create(&s->queue), 0);
	assert_int_equal(weir_session_verbs(s->session, 0, &pd, &cq, &qp), 0);
	if (pd->context->ops.post_send != post) { /* it stays: a channel may be coming up when we go */
		device.real = pd->context->ops.post_send;
		pd->context->ops.post_send = post;
	}
	return s;
}

static void close_all(struct state *s)
{
	weir_memory_deregister(s->memory);
	weir_region_close(s->region);
	weir_session_close(s->session);
	weir_queue_destroy(s->queue);
	donor_stop(&s->donor);
	free(s);
}

/* Writes @pages, one request for each, to the same place of row @row. */
static void write_row(struct state *s, struct weir_queue *queue, const char *pages, unsigned int row)
{
	struct weir_transfer transfers[ROW];
	struct weir_iov iov[ROW];
	unsigned int i;

	for (i = 0; i < ROW; i++) {
		iov[i] = (struct weir_iov){ (char *)pages + (size_t)i * PAGE, PAGE, s->memory };
		transfers[i] = (struct weir_transfer){
			.direction = WEIR_WRITE,
			.region = s->region,
			.offset = row * ROW_BYTES + (size_t)i * PAGE,
			.iov = &iov[i],
			.iovcnt = 1,
			.completion = { .queue = queue },
		};
	}
	assert_int_equal(weir_transfer_async(transfers, ROW, NULL), 0);
}

static void await_row(struct weir_queue *queue)
{
	struct weir_event events[ROW];
	unsigned int done = 0;
	int i, got;

	while (done < ROW) {
		got = weir_queue_wait(queue, events, ROW, 60000);
		assert_true(got > 0);
		for (i = 0; i < got; i++)
			assert_int_equal(events[i].status, 0);
		done += (unsigned int)got;
	}
}

static void *write_first_row(void *arg)
{
	struct weir_queue *queue;
	struct state *s = arg;

	assert_int_equal(weir_queue_create(&queue), 0);
	write_row(s, queue, s->pages[0], 0);
	await_row(queue);
	weir_queue_destroy(queue);
	return NULL;
}

/* Returns when a thread that writes the first row is held up where that is posted. */
static void hold_up(struct state *s)
{
	memset(s->pages[0], 'a', ROW_BYTES);
	memset(s->pages[1], 'b', ROW_BYTES);
	sem_init(&device.held, 0, 0);
	sem_init(&device.go, 0, 0);
	__atomic_store_n(&device.holds, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_create(&s->poster, NULL, write_first_row, s), 0);
	sem_wait(&device.held);
}

static void let_go(struct state *s)
{
	sem_post(&device.go);
	pthread_join(s->poster, NULL);
	sem_destroy(&device.held);
	sem_destroy(&device.go);
}

static void expect_row(struct state *s, unsigned int row, char c)
{
	char expected[PAGE], found[PAGE];
	size_t at;

	memset(expected, c, PAGE);
	for (at = 0; at < ROW_BYTES; at += PAGE) {
		assert_int_equal(weir_read(s->region, row * ROW_BYTES + at, found, PAGE), 0);
		assert_memory_equal(found, expected, PAGE);
	}
}

static void who_submits_goes_another_way_meanwhile(void **state)
{
	struct state *s = open_with(2);
	char byte = 'x', found = 0;

	(void)state;
	hold_up(s);
	assert_int_equal(weir_write(s->region, 2 * ROW_BYTES, &byte, 1), 0);
	assert_int_equal(weir_read(s->region, 2 * ROW_BYTES, &found, 1), 0);
	assert_int_equal(found, 'x');
	write_row(s, s->queue, s->pages[1], 1);
	await_row(s->queue);
	let_go(s);
	expect_row(s, 0, 'a');
	expect_row(s, 1, 'b');
	close_all(s);
}

/* What overlaps what is being posted is behind it, as always. */
static void what_overlaps_waits_for_it(void **state)
{
	struct state *s = open_with(2);

	(void)state;
	hold_up(s);
	write_row(s, s->queue, s->pages[1], 0);
	let_go(s);
	await_row(s->queue);
	expect_row(s, 0, 'b');
	close_all(s);
}

/* With one way only, it gathers, and goes when who posted is back: in one, for it is one row. */
static void with_no_other_way_what_is_submitted_gathers(void **state)
{
	struct state *s = open_with(1);
	int posts;

	(void)state;
	hold_up(s);
	posts = __atomic_load_n(&device.posts, __ATOMIC_RELAXED);
	write_row(s, s->queue, s->pages[1], 1);
	assert_int_equal(weir_queue_wait(s->queue, &(struct weir_event){ 0 }, 1, 20), 0);
	assert_int_equal(__atomic_load_n(&device.posts, __ATOMIC_RELAXED), posts);
	let_go(s);
	await_row(s->queue);
	assert_int_equal(__atomic_load_n(&device.posts, __ATOMIC_RELAXED), posts + 1);
	expect_row(s, 0, 'a');
	expect_row(s, 1, 'b');
	close_all(s);
}

/* It was never posted: it is tried again, on the channel that is left. */
static void what_cannot_be_posted_then_is_posted_elsewhere(void **state)
{
	struct state *s = open_with(2);

	(void)state;
	hold_up(s);
	__atomic_store_n(&device.fails, true, __ATOMIC_RELEASE);
	let_go(s);
	expect_row(s, 0, 'a');
	close_all(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_submits_goes_another_way_meanwhile),
		cmocka_unit_test(what_overlaps_waits_for_it),
		cmocka_unit_test(with_no_other_way_what_is_submitted_gathers),
		cmocka_unit_test(what_cannot_be_posted_then_is_posted_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
