/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A link on a modelled QP: which WRs it signals, and how it handles completions. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/engine/fastpath.h"
#include "lib/client/channel/session_link_fastpath.h"
#include "lib/client/session.h"

#define REQS 8

/* The modelled device: accepts @accepts more WRs, and completes as @wcs says. */
static struct {
	int accepts;
	bool in_error;
	struct ibv_send_wr posted[64];
	int nr_posted;
	struct ibv_wc wcs[64];
	int nr_wcs;
} nic;

static struct ibv_context context;
static struct ibv_qp qp;
static struct ibv_cq cq;
static struct weir_cq send_cq;
static struct rdma_cm_id id;
static struct weir_window window;
static struct weir_wr wrs[REQS];
static struct weir_req reqs[REQS];
static struct weir_stats_shm stats_shm;
static struct weir_session session;
static struct weir_session_link *link = &session.links[0];

static int post_send(struct ibv_qp *to, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)to;
	for (; wr; wr = wr->next) {
		if (!nic.accepts--) {
			*bad = wr;
			return ENOMEM;
		}
		nic.posted[nic.nr_posted++] = *wr;
	}
	return 0;
}

static int poll_cq(struct ibv_cq *of, int max, struct ibv_wc *wcs)
{
	int got = max < nic.nr_wcs ? max : nic.nr_wcs;

	(void)of;
	memcpy(wcs, nic.wcs, sizeof(*wcs) * (size_t)got);
	nic.nr_wcs -= got;
	memmove(nic.wcs, nic.wcs + got, sizeof(*wcs) * (size_t)nic.nr_wcs);
	return got;
}

int ibv_modify_qp(struct ibv_qp *of, struct ibv_qp_attr *attr, int mask)
{
	(void)of;
	(void)mask;
	nic.in_error = attr->qp_state == IBV_QPS_ERR;
	return 0;
}

static void set_up(unsigned int depth)
{
	const struct weir_engine_config config = {
		.fragment_bytes = 1u << 20,
		.chain_max = WEIR_BATCH_MAX,
		.sge_max = WEIR_SGE_MAX,
	};

	memset(&nic, 0, sizeof(nic));
	memset(&session, 0, sizeof(session));
	memset(&stats_shm, 0, sizeof(stats_shm));
	session.stats_shm = &stats_shm;
	session.counters = &stats_shm.counters;
	nic.accepts = 64;
	context.ops.post_send = post_send;
	context.ops.poll_cq = poll_cq;
	qp.context = cq.context = &context;
	id.qp = &qp;
	session.tuning.depth = depth;
	link->session = &session;
	link->id = &id;
	send_cq = (struct weir_cq){ .ibv = &cq, .wcs_max = 4 };
	link->cq = &send_cq;
	session.nr_links = 1;
	link->core.state = WEIR_LINK_UP;
	link->inline_max = 64;
	weir_window_init(&window, 8u << 20, 64);
	assert_int_equal(weir_engine_init(&session.engine, &config, &window, wrs, REQS), 0);
	assert_int_equal(weir_engine_channel_up(&session.engine, 0, depth), 0);
}

/* Submit @count requests without conflicts, and post the resulting chain. */
static void post(unsigned int count, enum weir_op op, uint32_t length)
{
	struct weir_action action;
	unsigned int i;

	for (i = 0; i < count; i++) {
		reqs[i] = (struct weir_req){
			.op = op,
			.nr_sge = 1,
			.remote = 4096 * (2 * i + 1),
			.length = length,
			.deadline_ns = WEIR_NEVER,
			.sge = { { 4096 * (2 * i + 1), length, 0 } },
		};
		assert_int_equal(weir_engine_submit(&session.engine, &reqs[i], 0), 0);
	}
	assert_true(weir_engine_next(&session.engine, &action));
	assert_int_equal(action.type, WEIR_ACTION_POST);
	assert_int_equal(action.count, count);
	weir_session_link_post(link, action.wr);
}

/* WR number @posted completes. */
static void complete(int posted, enum ibv_wc_status status)
{
	nic.wcs[nic.nr_wcs++] = (struct ibv_wc){
		.wr_id = nic.posted[posted].wr_id,
		.status = status,
	};
}

static bool is_signalled(int posted)
{
	return nic.posted[posted].send_flags & IBV_SEND_SIGNALED;
}

static bool is_inline(int posted)
{
	return (nic.posted[posted].send_flags & IBV_SEND_INLINE) != 0;
}

/* Do what the engine asks, and count finished requests. */
static int pull(void)
{
	struct weir_action action;
	int done = 0;

	while (weir_engine_next(&session.engine, &action)) {
		assert_int_not_equal(action.type, WEIR_ACTION_POST);
		if (action.type == WEIR_ACTION_FAIL)
			weir_session_link_fail(link);
		done += action.type == WEIR_ACTION_DONE;
	}
	return done;
}

static void one_that_comes_alone_is_signalled(void **state)
{
	(void)state;
	set_up(128);
	post(1, WEIR_OP_READ, 4096);
	assert_true(is_signalled(0));
}

static void one_completion_tells_of_a_chain(void **state)
{
	int i;

	(void)state;
	set_up(128);
	post(5, WEIR_OP_WRITE, 4096);
	assert_int_equal(nic.nr_posted, 5);
	for (i = 0; i < 4; i++)
		assert_false(is_signalled(i));
	assert_true(is_signalled(4));
	complete(4, IBV_WC_SUCCESS);
	assert_int_equal(weir_session_links_poll(&session, &send_cq, 0), 5);
	assert_int_equal(pull(), 5);
	for (i = 0; i < 5; i++)
		assert_int_equal(reqs[i].status, 0);
	assert_int_equal(session.counters->completions, 1);
	assert_int_equal(session.counters->bytes_written, 5 * 4096);
}

static void a_chain_is_signalled_every_half_queue(void **state)
{
	(void)state;
	set_up(8);
	post(7, WEIR_OP_READ, 4096);
	assert_false(is_signalled(2));
	assert_true(is_signalled(3));
	assert_false(is_signalled(5));
	assert_true(is_signalled(6));
	complete(3, IBV_WC_SUCCESS);
	assert_int_equal(weir_session_links_poll(&session, &send_cq, 0), 4);
	assert_int_equal(pull(), 4);
	assert_int_equal(link->core.in_flight.count, 3);
	complete(6, IBV_WC_SUCCESS);
	assert_int_equal(weir_session_links_poll(&session, &send_cq, 0), 3);
	assert_int_equal(pull(), 3);
}

static void what_stands_before_a_failure_has_succeeded(void **state)
{
	static const int expected[] = { 0, 0, -EACCES, -ECONNRESET, -ECONNRESET };
	int i;

	(void)state;
	set_up(128);
	post(5, WEIR_OP_WRITE, 4096);
	complete(2, IBV_WC_REM_ACCESS_ERR);
	complete(3, IBV_WC_WR_FLUSH_ERR);
	complete(4, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(weir_session_links_poll(&session, &send_cq, 0), 5);
	assert_int_equal(pull(), 3);
	assert_true(nic.in_error);
	assert_true(weir_session_link_settle(link, false));
	assert_int_equal(pull(), 2);
	for (i = 0; i < 5; i++)
		assert_int_equal(reqs[i].status, expected[i]);
}

/* A request in flight when the network failed may be retried; a refused request may not. */
static void what_breaks_a_link_is_no_fault_of_a_request(void **state)
{
	static const struct {
		enum ibv_wc_status said;
		int meant;
	} cases[] = {
		{ IBV_WC_WR_FLUSH_ERR, -ECONNRESET },
		{ IBV_WC_RETRY_EXC_ERR, -ECONNRESET },
		{ IBV_WC_RNR_RETRY_EXC_ERR, -ECONNRESET },
		{ IBV_WC_REM_ABORT_ERR, -ECONNRESET },
		{ IBV_WC_RESP_TIMEOUT_ERR, -ECONNRESET },
		{ IBV_WC_LOC_QP_OP_ERR, -ECONNRESET },
		{ IBV_WC_REM_ACCESS_ERR, -EACCES },
		{ IBV_WC_LOC_PROT_ERR, -EFAULT },
		{ IBV_WC_LOC_LEN_ERR, -EIO },
		{ IBV_WC_REM_OP_ERR, -EIO },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_up(128);
		post(1, WEIR_OP_WRITE, 4096);
		complete(0, cases[i].said);
		assert_int_equal(weir_session_links_poll(&session, &send_cq, 0), 1);
		pull();
		weir_session_link_settle(link, false);
		pull();
		assert_int_equal(reqs[0].status, cases[i].meant);
	}
}

static void what_a_half_posted_chain_left_is_drained(void **state)
{
	(void)state;
	set_up(128);
	nic.accepts = 2;
	post(5, WEIR_OP_WRITE, 4096);
	nic.accepts = 1;
	assert_int_equal(pull(), 0);
	assert_true(nic.in_error);
	assert_int_equal(nic.nr_posted, 3);
	assert_true(is_signalled(2));
	assert_false(weir_session_link_settle(link, false));

	complete(1, IBV_WC_WR_FLUSH_ERR);
	complete(2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(weir_session_links_poll(&session, &send_cq, 0), 2);
	assert_int_equal(pull(), 1);
	assert_int_equal(reqs[0].status, 0);
	assert_true(weir_session_link_settle(link, false));
	assert_int_equal(pull(), 4);
	assert_int_equal(reqs[1].status, -ECONNRESET);
	assert_int_equal(reqs[4].status, -ENOTCONN);
}

static void a_drain_tells_of_those_that_succeeded_in_silence(void **state)
{
	(void)state;
	set_up(128);
	nic.accepts = 2;
	post(5, WEIR_OP_WRITE, 4096);
	nic.accepts = 1;
	pull();
	complete(2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(weir_session_links_poll(&session, &send_cq, 0), 2);
	assert_int_equal(pull(), 2);
	assert_int_equal(reqs[0].status, 0);
	assert_int_equal(reqs[1].status, 0);
	assert_true(weir_session_link_settle(link, false));
}

static void without_a_qp_all_outcomes_are_unknown(void **state)
{
	(void)state;
	set_up(128);
	post(3, WEIR_OP_READ, 4096);
	weir_session_link_forget(link);
	assert_int_equal(pull(), 3);
	assert_int_equal(reqs[0].status, -ECONNRESET);
	assert_int_equal(link->core.in_flight.count, 0);
}

static void small_writes_and_messages_bring_their_data(void **state)
{
	static const struct {
		enum weir_op op;
		uint32_t length;
		bool is_inline;
	} cases[] = {
		{ WEIR_OP_WRITE, 64, true }, { WEIR_OP_WRITE, 65, false },
		{ WEIR_OP_READ, 8, false },  { WEIR_OP_FADD, 8, false },
		{ WEIR_OP_SEND, 40, true },
	};
	int i;

	(void)state;
	set_up(128);
	for (i = 0; i < 5; i++) {
		post(1, cases[i].op, cases[i].length);
		assert_int_equal(is_inline(i), cases[i].is_inline);
		complete(i, IBV_WC_SUCCESS);
		weir_session_links_poll(&session, &send_cq, 0);
		assert_int_equal(pull(), 1);
	}
	assert_int_equal(session.counters->inlined, 2);
}

/* Write @length bytes on the fast path. */
static bool post_alone(uint32_t length)
{
	struct weir_wr *wr;

	reqs[0] = (struct weir_req){ .op = WEIR_OP_WRITE,
				     .nr_sge = 1,
				     .remote = 4096,
				     .rkey = 7,
				     .length = length,
				     .deadline_ns = WEIR_NEVER,
				     .sge = { { 8192, length, 9 } } };
	wr = weir_fastpath_post(&session.engine, &reqs[0]);
	assert_non_null(wr);
	return weir_session_link_post_one(link, wr);
}

static void what_goes_the_short_way_is_a_work_request_as_any(void **state)
{
	const struct ibv_send_wr *wr = &nic.posted[0];

	(void)state;
	set_up(128);
	assert_true(post_alone(4096));
	assert_int_equal(wr->opcode, IBV_WR_RDMA_WRITE);
	assert_int_equal(wr->wr.rdma.remote_addr, 4096);
	assert_int_equal(wr->wr.rdma.rkey, 7);
	assert_int_equal(wr->num_sge, 1);
	assert_true(is_signalled(0) && !is_inline(0));
	complete(0, IBV_WC_SUCCESS);
	assert_int_equal(weir_session_links_poll(&session, &send_cq, 0), 1);
	assert_int_equal(pull(), 1);

	assert_true(post_alone(64));
	assert_true(is_signalled(1) && is_inline(1));
	complete(1, IBV_WC_SUCCESS);
	assert_int_equal(weir_session_links_poll(&session, &send_cq, 0), 1);
	assert_int_equal(pull(), 1);
	assert_int_equal(session.counters->doorbells, 2);
	assert_int_equal(session.counters->work_requests, 2);
}

static void what_went_alone_and_has_succeeded_is_known_at_a_glance(void **state)
{
	const struct ibv_wc success = { .status = IBV_WC_SUCCESS, .qp_num = 5 };
	struct ibv_wc others[3] = { success, success, success };
	struct ibv_wc mine[2] = { success };
	unsigned int i;

	(void)state;
	set_up(128);
	link->qp_num = 5;
	assert_true(post_alone(4096));
	mine[0].wr_id = nic.posted[0].wr_id;
	others[0].wr_id = others[1].wr_id = nic.posted[0].wr_id;
	others[0].status = IBV_WC_REM_ACCESS_ERR;
	others[1].qp_num = 4; /* of a destroyed QP */
	others[2].wr_id = WEIR_KEEPALIVE_WR;
	for (i = 0; i < 3; i++)
		assert_false(weir_session_link_has_one_success(link, &others[i], 1));
	assert_false(weir_session_link_has_one_success(link, mine, 0));
	/* another completion has arrived too */
	assert_false(weir_session_link_has_one_success(link, mine, 2));
	assert_int_equal(link->core.in_flight.count, 1);
	assert_int_equal(pull(), 0);

	assert_true(weir_session_link_has_one_success(link, mine, 1));
	assert_int_equal(link->core.in_flight.count, 0);
	assert_int_equal(send_cq.in_flight, 0);
	assert_int_equal(session.counters->completions, 1);
	assert_int_equal(reqs[0].state, WEIR_REQ_DONE);
	assert_int_equal(reqs[0].status, 0);
	assert_int_equal(pull(), 0); /* the completion was handed back */
	assert_true(weir_engine_is_idle(&session.engine));
	assert_int_equal(session.engine.window->bytes, 0);
}

static void what_the_device_refuses_is_not_in_flight(void **state)
{
	(void)state;
	set_up(128);
	nic.accepts = 0;
	assert_false(post_alone(4096));
	assert_int_equal(link->core.in_flight.count, 0);
	assert_int_equal(send_cq.in_flight, 0);
	assert_int_equal(session.counters->work_requests, 0);
}

/* A keep-alive is due now. */
static void set_up_quiet(void)
{
	set_up(128);
	session.options.channels = 1;
	weir_keepalive_init(&session.keepalive, 100, 1000);
	weir_keepalive_start(&session.keepalive, 0, 0);
	assert_int_equal(session.keepalive.due_ns, 100);
}

static void a_link_with_nothing_to_do_is_asked(void **state)
{
	(void)state;
	set_up_quiet();
	weir_session_keepalive_check(&session, 100);
	assert_int_equal(nic.nr_posted, 1);
	assert_int_equal(nic.posted[0].opcode, IBV_WR_RDMA_WRITE);
	assert_int_equal(nic.posted[0].num_sge, 0);
	assert_true(is_signalled(0));
	assert_int_equal(send_cq.in_flight, 1); /* the poller polls, or arms the CQ */
	assert_int_equal(session.keepalive.due_ns, 1100);
	complete(0, IBV_WC_SUCCESS);
	assert_int_equal(weir_session_links_poll(&session, &send_cq, 500), 0);
	assert_int_equal(send_cq.in_flight, 0);
	assert_int_equal(link->core.state, WEIR_LINK_UP);
	assert_int_equal(session.keepalive.due_ns, 600);
}

static void a_session_that_posts_is_not_asked(void **state)
{
	(void)state;
	set_up_quiet();
	post(1, WEIR_OP_READ, 4096);
	weir_session_keepalive_check(&session, 100);
	weir_session_keepalive_check(&session, 200); /* still in flight */
	assert_int_equal(nic.nr_posted, 1);
	complete(0, IBV_WC_SUCCESS);
	assert_int_equal(weir_session_links_poll(&session, &send_cq, 0), 1);
	assert_int_equal(pull(), 1);
	weir_session_keepalive_check(&session, 300);
	assert_int_equal(nic.nr_posted, 2);
	complete(1, IBV_WC_SUCCESS);
	weir_session_links_poll(&session, &send_cq, 0);
}

static void what_the_transport_gives_up_breaks_the_link(void **state)
{
	(void)state;
	set_up_quiet();
	weir_session_keepalive_check(&session, 100);
	complete(0, IBV_WC_RETRY_EXC_ERR);
	weir_session_links_poll(&session, &send_cq, 500);
	assert_true(nic.in_error);
	assert_true(weir_session_link_settle(link, true));
	assert_int_equal(link->core.state, WEIR_LINK_BROKEN);
	assert_int_equal(session.counters->errors, 1);
	assert_int_equal(stats_shm.failures[WEIR_STATS_SHM_NO_ANSWER], 1);
}

static void each_failure_has_one_cause(void **state)
{
	static const struct {
		int status;
		enum ibv_wc_status verbs;
		enum weir_stats_shm_cause cause;
	} cases[] = {
		{ -ECONNRESET, IBV_WC_WR_FLUSH_ERR, WEIR_STATS_SHM_FLUSHED },
		{ -ECONNRESET, IBV_WC_SUCCESS, WEIR_STATS_SHM_FLUSHED }, /* given up by weir */
		{ -ECONNRESET, IBV_WC_RETRY_EXC_ERR, WEIR_STATS_SHM_NO_ANSWER },
		{ -ECONNRESET, IBV_WC_RNR_RETRY_EXC_ERR, WEIR_STATS_SHM_NO_BUFFER },
		{ -EACCES, IBV_WC_REM_ACCESS_ERR, WEIR_STATS_SHM_REFUSED },
		{ -EACCES, IBV_WC_SUCCESS, WEIR_STATS_SHM_REFUSED }, /* an unloaded write */
		{ -EFAULT, IBV_WC_LOC_PROT_ERR, WEIR_STATS_SHM_LOCAL_MEMORY },
		{ -EIO, IBV_WC_GENERAL_ERR, WEIR_STATS_SHM_OTHER },
		{ -EPROTO, IBV_WC_SUCCESS, WEIR_STATS_SHM_OTHER },
	};
	uint64_t expected[WEIR_STATS_SHM_CAUSES] = { 0 };

	(void)state;
	set_up_quiet();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		weir_stats_shm_failed(&stats_shm, cases[i].status, cases[i].verbs);
		expected[cases[i].cause]++;
		assert_int_equal(stats_shm.counters.errors, i + 1);
		assert_memory_equal(stats_shm.failures, expected, sizeof(expected));
	}
}

/* A later request waits for the same flush. */
static void what_is_not_answered_in_time_breaks_the_link(void **state)
{
	(void)state;
	set_up_quiet();
	weir_session_keepalive_check(&session, 100);
	post(1, WEIR_OP_READ, 4096);
	weir_session_keepalive_check(&session, 1100);
	assert_true(nic.in_error);
	assert_false(weir_session_link_settle(link, true));
	complete(0, IBV_WC_WR_FLUSH_ERR);
	complete(1, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(weir_session_links_poll(&session, &send_cq, 1200), 1);
	assert_true(weir_session_link_settle(link, true));
	assert_int_equal(send_cq.in_flight, 0);
}

static void a_link_that_cannot_be_asked_is_broken(void **state)
{
	(void)state;
	set_up_quiet();
	nic.accepts = 0;
	weir_session_keepalive_check(&session, 100);
	assert_int_equal(send_cq.in_flight, 0);
	assert_true(weir_session_link_settle(link, true));
}

static void without_a_qp_nothing_is_asked_any_more(void **state)
{
	(void)state;
	set_up_quiet();
	weir_session_keepalive_check(&session, 100);
	weir_session_link_forget(link);
	assert_int_equal(send_cq.in_flight, 0);
	assert_int_equal(session.keepalive.unanswered, 0);
	session.state = WEIR_SESSION_DOWN;
	weir_session_keepalive_check(&session, 1100);
	assert_int_equal(session.keepalive.due_ns, UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_comes_alone_is_signalled),
		cmocka_unit_test(one_completion_tells_of_a_chain),
		cmocka_unit_test(a_chain_is_signalled_every_half_queue),
		cmocka_unit_test(what_stands_before_a_failure_has_succeeded),
		cmocka_unit_test(what_breaks_a_link_is_no_fault_of_a_request),
		cmocka_unit_test(what_a_half_posted_chain_left_is_drained),
		cmocka_unit_test(a_drain_tells_of_those_that_succeeded_in_silence),
		cmocka_unit_test(without_a_qp_all_outcomes_are_unknown),
		cmocka_unit_test(small_writes_and_messages_bring_their_data),
		cmocka_unit_test(what_goes_the_short_way_is_a_work_request_as_any),
		cmocka_unit_test(what_went_alone_and_has_succeeded_is_known_at_a_glance),
		cmocka_unit_test(what_the_device_refuses_is_not_in_flight),
		cmocka_unit_test(a_link_with_nothing_to_do_is_asked),
		cmocka_unit_test(a_session_that_posts_is_not_asked),
		cmocka_unit_test(what_the_transport_gives_up_breaks_the_link),
		cmocka_unit_test(each_failure_has_one_cause),
		cmocka_unit_test(what_is_not_answered_in_time_breaks_the_link),
		cmocka_unit_test(a_link_that_cannot_be_asked_is_broken),
		cmocka_unit_test(without_a_qp_nothing_is_asked_any_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
