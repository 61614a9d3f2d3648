// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic slot takeover; devices: softnic; timeout: 120 */
/*
 * A process takes a slot before softnic learns that the last holder has ended. The test plays
 * both with plain sockets: softnic knows a holder only by its socket.
 */
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "tests/support/datagram_pair.h"
#include "tests/support/silent_slot.h"
#include "softnic/shm/guard.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp/qp.h"
#include "softnic/rq/rq.h"

enum { LENGTH = 64, FIRST = 1, SECOND = 2 };

/* A holder that knows a queue pair of the test, to send datagrams to. */
struct slot_sender {
	int fd;
	uint32_t qpn;
	struct shared_qp *shared;
	size_t size;
	struct copy_guard guard;
	struct arrivals arrivals;
	struct rq rq;
	struct rq_receive receive;
};

static void hear(int fd, struct shm_msg *m, int *fds)
{
	struct pollfd p = { fd, POLLIN, 0 };

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(shm_msg_receive(fd, m, fds), 0);
}

static void call(struct slot_sender *s, uint32_t slot)
{
	const struct shm_msg hello = { .type = MSG_HELLO, .value = slot };
	struct sockaddr_un addr;
	socklen_t len = shared_address(nic.slot, &addr);
	int fds[SHM_MSG_FDS_MAX];
	struct shm_msg m;

	s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(s->fd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(shm_msg_send(s->fd, &hello, NULL, 0), 0);
	hear(s->fd, &m, fds);
	assert_int_equal(m.type, MSG_WELCOME);
	shm_msg_close_fds(fds);
}

static void ask_for(struct slot_sender *s, const struct endpoint *e, uint32_t from)
{
	const struct shm_msg ask = { .type = MSG_ASK_QP, .qpn = e->qp->qp_num, .from = from };
	int fds[SHM_MSG_FDS_MAX];
	struct copy_guards guards;
	struct shm_msg m;
	uint8_t *rest;
	void *map;

	s->qpn = from;
	assert_int_equal(shm_msg_send(s->fd, &ask, NULL, 0), 0);
	hear(s->fd, &m, fds);
	assert_int_equal(m.type, MSG_QP);
	assert_int_equal(m.value, 0);
	assert_int_equal(
		shared_map(fds[0], sizeof(*s->shared), PROT_READ | PROT_WRITE, &map, &s->size), 0);
	shm_msg_close_fds(fds);
	s->shared = map;
	guards = (struct copy_guards){ (void *)s->shared->rest, s->shared->guards };
	assert_true(guard_claim(&s->guard, &guards, from));
	rest = s->shared->rest + guards.num * sizeof(*guards.at);
	assert_int_equal(arrivals_map(&s->arrivals, rest, s->size, s->shared->arrivals), 0);
	rest += arrivals_bytes(s->arrivals.size);
	assert_int_equal(rq_map(&s->rq, rest, s->size, NULL, 0), 0);
}

static void take(struct slot_sender *s)
{
	assert_int_equal(rq_peek(&s->rq, &s->receive), 0);
	assert_true(rq_take(&s->rq, &s->receive, s->qpn));
}

static bool finish(struct slot_sender *s, const struct endpoint *e)
{
	const struct rq_result result = {
		.opcode = IBV_WC_RECV,
		.byte_len = LENGTH,
		.src_qp = s->qpn,
		.dest_qp = e->qp->qp_num,
	};

	return rq_finish(&s->rq, &s->receive, s->qpn, &result, &s->arrivals);
}

static void unmap(struct slot_sender *s)
{
	munmap(s->shared, s->size);
}

/*
 * Wait until softnic has heard everything said or closed before: its engine takes sockets in
 * turn.
 */
static void let_it_hear(const struct slot_sender *s)
{
	const struct shm_msg nonsense = { .type = MSG_SET_FAULT, .qpn = UINT32_MAX };
	struct shm_msg m;
	int i;

	for (i = 0; i < 2; i++) {
		assert_int_equal(shm_msg_send(s->fd, &nonsense, NULL, 0), 0);
		hear(s->fd, &m, NULL);
		assert_int_equal(m.type, MSG_FAULT_SET);
	}
}

static void receiver_up(struct endpoint *base, struct endpoint *e)
{
	end_open(base, ALL_ACCESS);
	endpoint_open_unreliable(e, base, IBV_QPT_UD, 0);
	to_init(e);
	to_ready(e, 0);
	assert_int_equal(post_recv(e, FIRST, 0, LENGTH), 0);
	assert_int_equal(post_recv(e, SECOND, LENGTH, LENGTH), 0);
}

/* The second holder begins before the first is known to have ended; then softnic learns so. */
static void test_only_receives_of_the_dead_return(void **state)
{
	struct slot_sender dead, living;
	struct endpoint base, e;
	struct ibv_wc wc;
	uint32_t slot;
	int listening;

	(void)state;
	receiver_up(&base, &e);
	listening = claim_slot(&slot);
	assert_true(listening >= 0);
	call(&dead, slot);
	ask_for(&dead, &e, slot << SOFTNIC_QP_INDEX_BITS | 1);
	take(&dead);
	call(&living, slot);
	ask_for(&living, &e, slot << SOFTNIC_QP_INDEX_BITS | 2);
	take(&living);
	close(dead.fd);
	let_it_hear(&living);
	assert_true(finish(&living, &e));
	wc = wait_wc(&e);
	assert_int_equal(wc.wr_id, SECOND);
	assert_int_equal(wc.src_qp, living.qpn);
	assert_false(finish(&dead, &e));
	take(&living);
	assert_true(finish(&living, &e));
	assert_int_equal(wait_wc(&e).wr_id, FIRST);
	unmap(&dead);
	unmap(&living);
	close(living.fd);
	close(listening);
	end_close(&e);
	end_close(&base);
}

enum { WORDS = 64 }; /* more than softnic reads before the next holder's greeting */

static void test_the_slots_former_owners_last_message_is_received(void **state)
{
	struct shm_msg m = { .type = MSG_FILES }; /* ignored there */
	struct slot_sender dead, living;
	struct ibv_async_event event;
	struct endpoint base, e;
	struct pollfd p;
	uint32_t slot;
	int listening, i;

	(void)state;
	receiver_up(&base, &e);
	listening = claim_slot(&slot);
	assert_true(listening >= 0);
	call(&dead, slot);
	ask_for(&dead, &e, slot << SOFTNIC_QP_INDEX_BITS | 1);
	for (i = 0; i < WORDS; i++)
		assert_int_equal(shm_msg_send(dead.fd, &m, NULL, 0), 0);
	m = (struct shm_msg){
		.type = MSG_QP_ERROR,
		.qpn = e.qp->qp_num,
		.from = dead.qpn,
		.value = 1 + IBV_EVENT_QP_ACCESS_ERR,
	};
	assert_int_equal(shm_msg_send(dead.fd, &m, NULL, 0), 0);
	call(&living, slot);
	p = (struct pollfd){ base.ctx->async_fd, POLLIN, 0 };
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(ibv_get_async_event(base.ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(event.element.qp, e.qp);
	ibv_ack_async_event(&event);
	unmap(&dead);
	close(dead.fd);
	close(living.fd);
	close(listening);
	end_close(&e);
	end_close(&base);
}

/*
 * Whether the caller is softnic in this test. Parallel tests that set faults call every slot to
 * find the holder, and say nothing.
 */
static bool is_ours(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };
	struct shm_msg m;

	return poll(&p, 1, PATIENCE_MS) == 1 && !shm_msg_receive(fd, &m, NULL) &&
	       m.type == MSG_HELLO && m.value == nic.slot;
}

/* Read softnic's greeting, and hang up. */
static void turn_away(int listening)
{
	struct pollfd p = { listening, POLLIN, 0 };
	bool was_ours = false;
	int fd;

	while (!was_ours) {
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
		assert_true(fd >= 0);
		was_ours = is_ours(fd);
		close(fd);
	}
}

static void assert_we_do_not_call(int listening)
{
	struct pollfd p = { listening, POLLIN, 0 };
	int fd;

	while (poll(&p, 1, 0) == 1) {
		fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
		assert_true(fd >= 0);
		assert_false(is_ours(fd));
		close(fd);
	}
}

/*
 * A holder that hangs up may have ended, and another process may hold the slot. Softnic asks
 * the second holder, and no third.
 */
static void test_a_datagram_survives_the_slots_former_owner(void **state)
{
	struct endpoint base, e;
	uint32_t slot;
	struct test_wr w;
	int third;

	(void)state;
	receiver_up(&base, &e);
	third = claim_slot(&slot);
	assert_true(third >= 0);
	wr_make(&w, &e, IBV_WR_SEND, 0, LENGTH, 0);
	w.wr.wr.ud.ah = make_ah(&e, "::ffff:127.0.0.1");
	assert_non_null(w.wr.wr.ud.ah);
	w.wr.wr.ud.remote_qpn = slot << SOFTNIC_QP_INDEX_BITS | 1;
	w.wr.wr.ud.remote_qkey = QKEY;
	assert_int_equal(post(&e, &w), 0);
	turn_away(third);
	turn_away(third);
	assert_int_equal(wait_wc(&e).status, IBV_WC_SUCCESS);
	assert_we_do_not_call(third);
	assert_int_equal(ibv_destroy_ah(w.wr.wr.ud.ah), 0);
	close(third);
	end_close(&e);
	end_close(&base);
}

/* The timer may expire between the news of the absence and its handling. */
static void test_an_absent_peer_is_not_asked_again(void **state)
{
	struct endpoint base, e;
	struct remote_qp *r;
	struct qp *qp;
	uint32_t slot;
	int listening;

	(void)state;
	receiver_up(&base, &e);
	listening = claim_slot(&slot);
	assert_true(listening >= 0);
	qp = to_qp(e.qp);
	pthread_mutex_lock(&nic.lock);
	pthread_mutex_lock(&qp->lock);
	r = remote_qp_get(qp, slot << SOFTNIC_QP_INDEX_BITS | 1);
	r->is_refused = true;
	qp->to = r;
	remote_qp_request(qp);
	assert_null(r->peer);
	r->is_refused = false;
	remote_qp_request(qp);
	assert_non_null(r->peer);
	pthread_mutex_unlock(&qp->lock);
	pthread_mutex_unlock(&nic.lock);
	close(listening);
	end_close(&e);
	end_close(&base);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_only_receives_of_the_dead_return),
		cmocka_unit_test(test_the_slots_former_owners_last_message_is_received),
		cmocka_unit_test(test_a_datagram_survives_the_slots_former_owner),
		cmocka_unit_test(test_an_absent_peer_is_not_asked_again),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
