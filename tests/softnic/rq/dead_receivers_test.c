// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic dead receivers; devices: softnic; timeout: 120 */
/*
 * Receives taken by processes that died, in the largest number possible. Each receive comes
 * back or is flushed, once, in about as many steps as there are receives. A walk over all
 * receives for each one would exceed the test's time.
 */
#include <poll.h>

#include "tests/support/datagram_pair.h"
#include "tests/support/silent_slot.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp/qp.h"

enum { MANY = SHARED_WRS_MAX };

/* A queue pair with many receives, its own or an SRQ's. The test itself plays the peer. */
struct recv_sink {
	struct endpoint base, e;
	struct ibv_srq *srq;
	struct qp *qp;
	uint32_t slot, taker; /* the peer's */
	int slot_fd;
	uint8_t seen[MANY];
};

static void open_queue_pair(struct endpoint *e, struct recv_sink *s, enum ibv_qp_type type,
			    uint32_t receives)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type,
		.srq = s->srq,
		.cap = { 1, s->srq ? 0 : receives, 1, 1, 0 },
	};

	end_open_sharing(e, &s->base);
	assert_int_equal(ibv_destroy_qp(e->qp), 0);
	assert_int_equal(ibv_resize_cq(e->cq, 2 * MANY), 0);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	assert_non_null(e->qp);
}

static void open_srq(struct recv_sink *s, uint32_t receives)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = receives, .max_sge = 1 } };

	s->srq = ibv_create_srq(s->base.pd, &init);
	assert_non_null(s->srq);
}

static struct recv_sink *sink_open(enum ibv_qp_type type, bool shares, uint32_t receives)
{
	struct recv_sink *s = calloc(1, sizeof(*s));
	struct endpoint_name name = { 0 };

	end_open(&s->base, ALL_ACCESS);
	s->slot = take_slot(&s->slot_fd);
	s->taker = s->slot << SOFTNIC_QP_INDEX_BITS | 5;
	if (shares)
		open_srq(s, receives);
	open_queue_pair(&s->e, s, type, receives);
	s->qp = to_qp(s->e.qp);
	if (type == IBV_QPT_UD) {
		to_init(&s->e);
		to_ready(&s->e, 0);
		store_release(&s->qp->segment.guards.at[0].user, s->taker);
	} else {
		name.qpn = s->taker;
		end_connect(&s->e, &name, &plain);
	}
	return s;
}

static void sink_close(struct recv_sink *s)
{
	if (s->e.qp)
		end_close(&s->e);
	if (s->srq)
		assert_int_equal(ibv_destroy_srq(s->srq), 0);
	end_close(&s->base);
	close(s->slot_fd);
	free(s);
}

static void post_one(struct recv_sink *s, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)s->base.buf, MANY, s->base.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (s->srq)
		assert_int_equal(ibv_post_srq_recv(s->srq, &wr, &bad), 0);
	else
		assert_int_equal(ibv_post_recv(s->e.qp, &wr, &bad), 0);
}

static void post_many(struct recv_sink *s)
{
	uint64_t id;

	for (id = 0; id < MANY; id++)
		post_one(s, id);
}

/*
 * The peer takes the oldest receive and passes it on; or does not, like a process killed
 * before.
 */
static void take_one(struct qp *qp, uint32_t taker, uint32_t byte_len, bool passes_on)
{
	const struct rq_result result = {
		.status = IBV_WC_SUCCESS,
		.opcode = IBV_WC_RECV,
		.byte_len = byte_len,
		.src_qp = taker,
		.dest_qp = qp->ibv.qp_num,
	};
	const struct arrivals nowhere = { 0 };
	struct rq_receive r;

	assert_int_equal(rq_peek(&qp->rq->ring, &r), 0);
	assert_true(rq_take(&qp->rq->ring, &r, taker));
	assert_true(rq_finish(&qp->rq->ring, &r, taker, &result,
			      passes_on ? &qp->arrivals.ring : &nowhere));
}

/* The peer takes all posted receives and passes on every second. */
static void take_many(struct recv_sink *s)
{
	uint32_t i;

	for (i = 0; i < MANY; i++)
		take_one(s->qp, s->taker, i, i % 2 == 0);
}

static void ring(struct endpoint *e)
{
	cq_ring_for_dead_peer(to_cq(e->cq), e->qp->qp_num);
}

static bool is_over(const struct timespec *until)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > until->tv_sec;
}

/*
 * Poll until @wanted completions have come with @status. Each receive completes at most once.
 * Another thread may hold the CQ's lock for a moment.
 */
static void expect_many(struct recv_sink *s, enum ibv_wc_status status, uint32_t wanted)
{
	struct timespec until;
	struct ibv_wc wc[64];
	uint32_t n = 0;
	int i, got;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_MS / 1000;
	do {
		got = ibv_poll_cq(s->e.cq, 64, wc);
		for (i = 0; i < got; i++) {
			assert_in_range(wc[i].wr_id, 0, MANY - 1);
			assert_false(s->seen[wc[i].wr_id]++);
			if (wc[i].status == IBV_WC_SUCCESS)
				assert_int_equal(wc[i].byte_len, wc[i].wr_id);
			n += wc[i].status == status;
		}
	} while (got > 0 || (n < wanted && !is_over(&until)));
	assert_int_equal(n, wanted);
}

static void test_a_dead_processs_slots_of_a_full_queue_return(void **state)
{
	struct recv_sink *s = sink_open(IBV_QPT_UD, false, MANY);
	uint32_t i;

	(void)state;
	post_many(s);
	take_many(s);
	qp_client_ended(NULL, s->slot);
	expect_many(s, IBV_WC_SUCCESS, MANY / 2);
	for (i = 1; i < MANY; i += 2) {
		assert_false(s->seen[i]);
		take_one(s->qp, s->taker, i, true);
	}
	ring(&s->e);
	expect_many(s, IBV_WC_SUCCESS, MANY / 2);
	sink_close(s);
}

/* The earlier arrival of a receive must not count as a new arrival. */
static void test_a_dead_processs_slots_return_after_it_arrived(void **state)
{
	struct recv_sink *s = sink_open(IBV_QPT_UD, false, 8);

	(void)state;
	post_one(s, 0);
	take_one(s->qp, s->taker, 0, true);
	qp_client_ended(NULL, s->slot);
	expect_many(s, IBV_WC_SUCCESS, 1);
	post_one(s, 1);
	store_release(&s->qp->segment.guards.at[0].user, s->taker);
	take_one(s->qp, s->taker, 1, false);
	qp_client_ended(NULL, s->slot);
	take_one(s->qp, s->taker, 1, true);
	ring(&s->e);
	expect_many(s, IBV_WC_SUCCESS, 1);
	sink_close(s);
}

static void to_error(struct recv_sink *s)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct pollfd p = { .fd = s->base.ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	assert_int_equal(ibv_modify_qp(s->e.qp, &error, IBV_QP_STATE), 0);
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(ibv_get_async_event(s->base.ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	ibv_ack_async_event(&event);
}

/*
 * An SRQ whose receives the peer has all taken. The device may notice first that the peer does
 * not exist, and end the queue pair: then try again.
 */
static struct recv_sink *sink_open_taken(void)
{
	struct ibv_async_event event;
	struct pollfd p = { .events = POLLIN };
	struct recv_sink *s;

	for (;;) {
		s = sink_open(IBV_QPT_RC, true, MANY);
		post_many(s);
		take_many(s);
		p.fd = s->base.ctx->async_fd;
		if (!poll(&p, 1, 0))
			return s;
		assert_int_equal(ibv_get_async_event(s->base.ctx, &event), 0);
		ibv_ack_async_event(&event);
		sink_close(s);
	}
}

static void test_a_peers_receives_of_a_full_srq_are_flushed(void **state)
{
	struct recv_sink *s = sink_open_taken();
	uint32_t i;

	(void)state;
	to_error(s);
	expect_many(s, IBV_WC_WR_FLUSH_ERR, MANY / 2);
	for (i = 0; i < MANY; i++)
		assert_true(s->seen[i]);
	post_many(s);
	sink_close(s);
}

static void test_unpolled_receives_return_to_a_full_srq(void **state)
{
	struct recv_sink *s = sink_open_taken();
	struct timespec until;
	struct ibv_wc wc;
	int got;

	(void)state;
	to_error(s);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_MS / 1000;
	while (!(got = ibv_poll_cq(s->e.cq, 1, &wc)))
		assert_false(is_over(&until));
	assert_int_equal(got, 1);
	end_close(&s->e);
	s->e.qp = NULL;
	post_many(s);
	sink_close(s);
}

/* A process sent to two queue pairs of one SRQ. */
static void test_a_message_for_another_queue_pair_stays_there(void **state)
{
	struct recv_sink *s = sink_open(IBV_QPT_UD, true, 2);
	struct rq_receive r;
	struct endpoint other;
	struct ibv_wc wc;
	struct qp *qp;

	(void)state;
	open_queue_pair(&other, s, IBV_QPT_UD, 0);
	to_init(&other);
	to_ready(&other, 0);
	qp = to_qp(other.qp);
	post_one(s, 7);
	assert_int_equal(rq_peek(&qp->rq->ring, &r), 0);
	take_one(qp, s->taker, 64, true);
	arrivals_add(&s->qp->arrivals.ring, r.index); /* a false arrival */
	ring(&s->e);
	assert_nothing(&s->e);
	qp_client_ended(NULL, s->slot);
	ring(&other);
	assert_int_equal(ibv_poll_cq(other.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.qp_num, other.qp->qp_num);
	assert_int_equal(rq_peek(&qp->rq->ring, &r), -EAGAIN);
	end_close(&other);
	sink_close(s);
}

/* A peer adds as many false arrivals as possible; messages of an honest peer still arrive. */
static void test_messages_after_an_invalid_one_are_polled(void **state)
{
	struct recv_sink *s = sink_open(IBV_QPT_UD, false, 8);
	uint32_t i;

	(void)state;
	post_one(s, 3);
	for (i = 0; i < s->qp->arrivals.ring.size; i++)
		arrivals_add(&s->qp->arrivals.ring, MANY);
	ring(&s->e);
	assert_nothing(&s->e);
	take_one(s->qp, s->taker, 3, true);
	ring(&s->e);
	expect_many(s, IBV_WC_SUCCESS, 1);
	sink_close(s);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_a_dead_processs_slots_of_a_full_queue_return),
		cmocka_unit_test(test_a_dead_processs_slots_return_after_it_arrived),
		cmocka_unit_test(test_a_peers_receives_of_a_full_srq_are_flushed),
		cmocka_unit_test(test_unpolled_receives_return_to_a_full_srq),
		cmocka_unit_test(test_a_message_for_another_queue_pair_stays_there),
		cmocka_unit_test(test_messages_after_an_invalid_one_are_polled),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
