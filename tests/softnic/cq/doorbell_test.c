// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic doorbell; devices: softnic; timeout: 120 */
/*
 * Doorbells rung by clients. The clients are threads of the queue's own process, because a
 * sanitizer sees only one side of two processes.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include "softnic/cq/comp_channel.h"
#include "softnic/cq/wakeup.h"
#include "softnic/cq/cq.h"
#include "softnic/verbs/nic.h"
#include "tests/support/verbs_puppet.h"

enum {
	GUESTS = 3,
	RINGERS = GUESTS + 1,
	RINGS = 2000, /* per ringer */
	CAPACITY = 31,
	ROOM = CAPACITY / RINGERS,
	BATCH = 4,
	PATIENCE_S = 100,
};

/* A ringer completes WRs: a client, or, for the first ringer, the CQ's own process. */
struct doorbell_ringer {
	struct cq *cq;
	uint32_t qpn;
	struct shm_doorbell_page *doorbell_page;
	struct waker pull; /* for a client */
	struct cq_doorbell *doorbell;
	struct cq_source source;
	uint32_t rung, taken;
	uint32_t values[RINGS]; /* each value is stored before its ring */
	pthread_t thread;
};

static uint32_t value_of(uint32_t n)
{
	return ~n;
}

static int take(struct qp *self, struct ibv_wc *wc, int room)
{
	struct doorbell_ringer *r = (struct doorbell_ringer *)self;
	uint32_t at = r->taken;
	int n;

	for (n = 0; n < room && at != load_acquire(&r->rung); n++, at++)
		wc[n] = (struct ibv_wc){ .wr_id = at, .byte_len = r->values[at] };
	store_release(&r->taken, at);
	return n;
}

static uint32_t waiting(struct qp *self)
{
	struct doorbell_ringer *r = (struct doorbell_ringer *)self;

	return load_acquire(&r->rung) - r->taken;
}

static void ringer_begin(struct doorbell_ringer *r, struct ibv_cq *cq)
{
	static uint32_t num;

	r->qpn = num++;
	r->cq = to_cq(cq);
	r->source = (struct cq_source){ take, waiting, (struct qp *)r };
	cq_add(r->cq, &r->source, r->qpn);
}

/* A client attaches. */
static void come(struct doorbell_ringer *r)
{
	struct wakeup *wakeup;
	int fd;

	r->doorbell_page = doorbell_page_create(&fd);
	assert_non_null(r->doorbell_page);
	close(fd);
	pthread_mutex_lock(&nic.lock);
	assert_int_equal(doorbell_attach(r->doorbell_page, r->cq), 0);
	assert_int_equal(wakeup_get(r->doorbell_page, to_comp_channel(r->cq->ibv.channel), &wakeup),
			 0);
	r->pull.fd = dup(wakeup->far_fd); /* another process has a descriptor of its own */
	pthread_mutex_unlock(&nic.lock);
}

static void leave(struct doorbell_ringer *r)
{
	pthread_mutex_lock(&nic.lock);
	doorbell_detach_all(r->doorbell_page);
	pthread_mutex_unlock(&nic.lock);
	close(r->pull.fd);
}

static bool has_room(const struct doorbell_ringer *r)
{
	return r->rung - load_acquire(&r->taken) < ROOM;
}

static void complete(struct doorbell_ringer *r)
{
	r->values[r->rung] = value_of(r->rung);
	store_release(&r->rung, r->rung + 1);
}

/* Ring for the next completion. Every fourth is solicited. */
static void ring(struct doorbell_ringer *r, struct shared_cq *at)
{
	uint32_t n = r->rung;
	bool solicited = n % 4 == 3;

	while (!has_room(r))
		sched_yield();
	complete(r);
	if (!r->doorbell_page)
		cq_ring_own(r->cq, r->qpn, 1, solicited);
	else if (!cq_ring(at, r->qpn, &r->pull, solicited))
		cq_may_have_overrun(r->cq); /* as the client would report */
}

static void *ring_all(void *arg)
{
	struct doorbell_ringer *r = arg;

	while (r->rung < RINGS)
		ring(r, r->doorbell->at);
	return NULL;
}

static void sleep_until_event(struct ibv_comp_channel *channel)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(poll(&p, 1, PATIENCE_S * 1000), 1);
	assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
}

static int poll_some(struct ibv_cq *cq)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(cq, BATCH, wc), i;

	for (i = 0; i < n; i++)
		assert_int_equal(wc[i].byte_len, value_of(wc[i].wr_id));
	return n;
}

/* Sleep whenever the CQ is empty, in turn for any completion and for a solicited one. */
static void take_all(struct ibv_cq *cq, uint32_t total)
{
	uint32_t taken = 0, sleeps = 0, n;

	while (taken < total) {
		n = poll_some(cq);
		if (!n) {
			assert_int_equal(ibv_req_notify_cq(cq, sleeps % 2), 0);
			n = poll_some(cq);
		}
		if (!n) {
			sleep_until_event(cq->channel);
			sleeps++;
		}
		taken += n;
	}
	assert_int_equal(poll_some(cq), 0);
	assert_false(to_cq(cq)->has_overrun);
	print_message("# slept %u times\n", sleeps);
}

static struct ibv_cq *create_cq_of(const struct endpoint *e, int cqe)
{
	struct ibv_cq *cq = ibv_create_cq(e->ctx, cqe, NULL, e->channel, 0);

	assert_non_null(cq);
	return cq;
}

static struct ibv_cq *create_cq(const struct endpoint *e)
{
	struct ibv_cq *cq = create_cq_of(e, CAPACITY);

	assert_int_equal(cq->cqe, CAPACITY);
	return cq;
}

/* Each completion is taken once, whole, and no thread sleeps beside one. */
static void test_concurrent_doorbells_are_taken_once(void **state)
{
	static struct doorbell_ringer ringers[RINGERS];
	struct ibv_cq *cq;
	struct endpoint e;
	int i;

	(void)state;
	end_open(&e, ALL_ACCESS);
	cq = create_cq(&e);
	for (i = 0; i < RINGERS; i++) {
		struct doorbell_ringer *r = &ringers[i];

		ringer_begin(r, cq);
		if (i)
			come(r);
		r->doorbell = i ? r->doorbell_page->doorbells : &r->cq->doorbell;
	}
	for (i = 0; i < RINGERS; i++)
		assert_int_equal(pthread_create(&ringers[i].thread, NULL, ring_all, &ringers[i]),
				 0);
	take_all(cq, RINGERS * RINGS);
	for (i = 0; i < RINGERS; i++) {
		pthread_join(ringers[i].thread, NULL);
		cq_del(to_cq(cq), &ringers[i].source);
	}
	for (i = 1; i < RINGERS - 1; i++)
		leave(&ringers[i]);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	leave(&ringers[RINGERS - 1]); /* the client goes before its queue */
	end_close(&e);
}

enum { VISIT = 8 };

static void *come_and_go(void *arg)
{
	struct doorbell_ringer *r = arg;
	struct shared_cq *at;
	int n;

	while (r->rung < RINGS) {
		come(r);
		at = &r->doorbell_page->shared->cqs[r->cq->ibv.handle];
		for (n = 0; n < VISIT; n++)
			ring(r, at);
		leave(r);
	}
	return NULL;
}

static void test_a_clients_doorbells_count_after_it_left(void **state)
{
	static struct doorbell_ringer ringers[GUESTS];
	struct ibv_cq *cq;
	struct endpoint e;
	int i;

	(void)state;
	end_open(&e, ALL_ACCESS);
	cq = create_cq_of(&e, GUESTS * RINGS); /* a returning client finds new room */
	for (i = 0; i < GUESTS; i++)
		ringer_begin(&ringers[i], cq);
	for (i = 0; i < GUESTS; i++)
		assert_int_equal(pthread_create(&ringers[i].thread, NULL, come_and_go, &ringers[i]),
				 0);
	take_all(cq, GUESTS * RINGS);
	for (i = 0; i < GUESTS; i++) {
		pthread_join(ringers[i].thread, NULL);
		cq_del(to_cq(cq), &ringers[i].source);
	}
	poll_some(cq);
	assert_null(to_cq(cq)->doorbell.next); /* all clients that ended are forgotten */
	assert_int_equal(ibv_destroy_cq(cq), 0);
	end_close(&e);
}

/* Otherwise the next arm would take a new completion for an old one. */
static void test_unheard_doorbells_of_a_client_that_left_hide_nothing(void **state)
{
	static struct doorbell_ringer own, client;
	struct ibv_cq *cq;
	struct endpoint e;

	(void)state;
	end_open(&e, ALL_ACCESS);
	cq = create_cq(&e);
	ringer_begin(&own, cq);
	ringer_begin(&client, cq);
	come(&client);
	while (client.rung < BATCH)
		ring(&client, &client.doorbell_page->shared->cqs[cq->handle]);
	leave(&client);
	assert_null(to_cq(cq)->doorbell.next);
	assert_int_equal(poll_some(cq), BATCH);
	assert_int_equal(poll_some(cq), 0);
	ring(&own, to_cq(cq)->doorbell.at);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(poll(&(struct pollfd){ e.channel->fd, POLLIN, 0 }, 1, 0), 1);
	sleep_until_event(e.channel);
	assert_int_equal(poll_some(cq), 1);
	cq_del(to_cq(cq), &own.source);
	cq_del(to_cq(cq), &client.source);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	end_close(&e);
}

static bool is_readable(const struct ibv_comp_channel *channel)
{
	return poll(&(struct pollfd){ channel->fd, POLLIN, 0 }, 1, 0) == 1;
}

static void guests_begin(struct doorbell_ringer *clients, struct ibv_cq *cq)
{
	for (int i = 0; i < GUESTS; i++) {
		ringer_begin(&clients[i], cq);
		come(&clients[i]);
		clients[i].doorbell = clients[i].doorbell_page->doorbells;
	}
}

static void guests_end(struct doorbell_ringer *clients, struct ibv_cq *cq)
{
	for (int i = 0; i < GUESTS; i++) {
		leave(&clients[i]);
		cq_del(to_cq(cq), &clients[i].source);
	}
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* Each ringer consumes the arm it sees, and wakes the sleeper. */
static void test_one_arm_gives_one_event_however_many_ring(void **state)
{
	static struct doorbell_ringer clients[GUESTS];
	struct ibv_cq *cq;
	struct endpoint e;
	int i, times;

	(void)state;
	end_open(&e, ALL_ACCESS);
	cq = create_cq(&e);
	guests_begin(clients, cq);
	for (times = 0; times < 3; times++) {
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		for (i = 0; i < GUESTS; i++)
			ring(&clients[i], clients[i].doorbell->at);
		sleep_until_event(e.channel);
		assert_false(is_readable(e.channel));
		assert_int_equal(poll_some(cq), GUESTS);
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		assert_false(is_readable(e.channel));
		cq_ring_own(to_cq(cq), 0, 1, false);
		sleep_until_event(e.channel);
	}
	guests_end(clients, cq);
	end_close(&e);
}

/*
 * A late or spurious wake-up. A thread that finds the channel readable may wait for an event,
 * and must get one.
 */
static void test_a_pull_for_nothing_gives_no_more_events_than_arms(void **state)
{
	static struct doorbell_ringer clients[GUESTS];
	struct ibv_cq *cq, *idle;
	struct endpoint e;
	int i, n;

	(void)state;
	end_open(&e, ALL_ACCESS);
	idle = create_cq(&e);
	cq = create_cq(&e);
	guests_begin(clients, cq);
	for (i = 0; i < GUESTS; i++)
		for (n = 0; n < 1000; n++) /* more than the socket holds */
			waker_wake(&clients[i].pull);
	assert_false(is_readable(e.channel));
	for (n = 0; n < 3; n++) {
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		waker_wake(&clients[n % GUESTS].pull);
		sleep_until_event(e.channel);
		assert_false(is_readable(e.channel));
		waker_wake(&clients[n % GUESTS].pull);
		assert_false(is_readable(e.channel));
	}
	assert_int_equal(ibv_destroy_cq(idle), 0);
	guests_end(clients, cq);
	end_close(&e);
}

/* When the wake-up socket is full, its content still announces the event. */
static void test_a_pull_that_found_no_room_is_no_lost_event(void **state)
{
	static struct doorbell_ringer clients[GUESTS];
	struct ibv_cq *cq;
	struct endpoint e;
	int n;

	(void)state;
	end_open(&e, ALL_ACCESS);
	cq = create_cq(&e);
	guests_begin(clients, cq);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	for (n = 0; n < 1000; n++)
		waker_wake(&clients[0].pull);
	ring(&clients[0], clients[0].doorbell->at);
	sleep_until_event(e.channel);
	assert_int_equal(poll_some(cq), 1);
	assert_false(is_readable(e.channel));
	guests_end(clients, cq);
	end_close(&e);
}

static void test_rung_packets_of_a_client_that_left_raise_an_event(void **state)
{
	static struct doorbell_ringer client;
	struct ibv_cq *cq;
	struct endpoint e;

	(void)state;
	end_open(&e, ALL_ACCESS);
	cq = create_cq(&e);
	ringer_begin(&client, cq);
	come(&client);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	ring(&client, &client.doorbell_page->shared->cqs[cq->handle]);
	leave(&client);
	sleep_until_event(e.channel);
	assert_false(is_readable(e.channel));
	assert_int_equal(poll_some(cq), 1);
	cq_del(to_cq(cq), &client.source);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	end_close(&e);
}

/* The client was killed before marking the ready list, or between mark and ring. */
static void test_unrung_packets_of_a_client_that_left_are_found(void **state)
{
	static struct doorbell_ringer client;
	struct ibv_cq *cq;
	struct endpoint e;
	int marks;

	(void)state;
	end_open(&e, ALL_ACCESS);
	cq = create_cq(&e);
	ringer_begin(&client, cq);
	for (marks = 0; marks < 2; marks++) {
		come(&client);
		complete(&client);
		if (marks)
			ready_list_mark(&client.doorbell_page->shared->cqs[cq->handle], client.qpn);
		assert_int_equal(poll_some(cq), 0);
		leave(&client);
		assert_int_equal(poll_some(cq), 1);
	}
	cq_del(to_cq(cq), &client.source);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	end_close(&e);
}

enum { SOURCES = 1000 };

/* An empty queue that counts polls. */
struct observed_cq {
	struct cq_source source;
	uint32_t times;
};

static int count_look(struct qp *self, struct ibv_wc *wc, int room)
{
	struct observed_cq *l = (struct observed_cq *)self;

	(void)wc;
	(void)room;
	l->times++;
	return 0;
}

static uint32_t none_waiting(struct qp *self)
{
	(void)self;
	return 0;
}

static uint32_t all_looks(const struct observed_cq *all)
{
	uint32_t n = 0, i;

	for (i = 0; i < SOURCES; i++)
		n += all[i].times;
	return n;
}

/* For any QP numbers: a program may put every 64th QP on the same CQ. */
static void test_a_poll_looks_only_at_a_few_that_may_have_something(void **state)
{
	static const uint32_t strides[] = { 1, 2, 3, 16, 64, 100, 233, 256 };
	struct observed_cq *all = calloc(SOURCES, sizeof(*all));
	struct ibv_cq *cq;
	struct endpoint e;
	uint32_t s, i, before;

	(void)state;
	end_open(&e, ALL_ACCESS);
	cq = create_cq(&e);
	for (s = 0; s < sizeof(strides) / sizeof(strides[0]); s++) {
		for (i = 0; i < SOURCES; i++) {
			all[i] = (struct observed_cq){
				.source = { count_look, none_waiting, (struct qp *)&all[i] },
			};
			cq_add(to_cq(cq), &all[i].source, 1 + i * strides[s]);
		}
		for (i = 0; i < SOURCES; i++) {
			before = all_looks(all);
			cq_ring_own(to_cq(cq), 1 + i * strides[s], 1, false);
			assert_int_equal(poll_some(cq), 0);
			assert_true(all[i].times > 0);
			assert_in_range(all_looks(all) - before, 1, 16);
		}
		before = all_looks(all);
		assert_int_equal(poll_some(cq), 0);
		assert_int_equal(all_looks(all), before);
		for (i = 0; i < SOURCES; i++)
			cq_del(to_cq(cq), &all[i].source);
	}
	assert_int_equal(ibv_destroy_cq(cq), 0);
	free(all);
	end_close(&e);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_concurrent_doorbells_are_taken_once),
		cmocka_unit_test(test_a_clients_doorbells_count_after_it_left),
		cmocka_unit_test(test_unheard_doorbells_of_a_client_that_left_hide_nothing),
		cmocka_unit_test(test_one_arm_gives_one_event_however_many_ring),
		cmocka_unit_test(test_a_pull_for_nothing_gives_no_more_events_than_arms),
		cmocka_unit_test(test_a_pull_that_found_no_room_is_no_lost_event),
		cmocka_unit_test(test_rung_packets_of_a_client_that_left_raise_an_event),
		cmocka_unit_test(test_unrung_packets_of_a_client_that_left_are_found),
		cmocka_unit_test(test_a_poll_looks_only_at_a_few_that_may_have_something),
	};

	alarm(PATIENCE_S);
	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
