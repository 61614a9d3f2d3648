/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: verbs count; suites: verbs; devices: softnic rxe; timeout: 120 */
/* The counters agree on every device, and with softnic's own. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/loopback_pair.h"
#include "softnic/control/stat.h"
#include "preload/count/count.h"
#include "preload/count/wrap.h"

#define PATIENCE_S 20

static struct verbs_counters before;

static int setup(void **out)
{
	struct loopback_pair *pair = malloc(sizeof(*pair));

	pair_open(pair);
	assert_true(pair_connect(pair, NULL));
	verbs_count_read(&before);
	*out = pair;
	return 0;
}

static int teardown(void **in)
{
	pair_close(*in);
	free(*in);
	return 0;
}

static struct verbs_counters counted(void)
{
	struct verbs_counters now;

	verbs_count_read(&now);
#define SINCE(name, help) now.name -= before.name;
	VERBS_COUNTERS(SINCE)
#undef SINCE
	return now;
}

/* All counters except empty polls, whose number depends on timing. */
static void counts_are(struct verbs_counters expected)
{
	struct verbs_counters now = counted();

	expected.polls = now.polls;
	expected.empty_polls = now.empty_polls;
#define IS(name, help)                                                             \
	if (now.name != expected.name)                                             \
		fail_msg(#name " is %llu, not %llu", (unsigned long long)now.name, \
			 (unsigned long long)expected.name);
	VERBS_COUNTERS(IS)
#undef IS
}

static void take(struct loopback_pair *pair, int wanted, enum ibv_wc_status status)
{
	time_t deadline = time(NULL) + PATIENCE_S;
	struct ibv_wc wc;

	while (wanted) {
		int n = ibv_poll_cq(pair->cq, 1, &wc);

		assert_true(n >= 0 && time(NULL) < deadline);
		if (n)
			assert_int_equal(wc.status, status);
		wanted -= n;
	}
}

static void post(struct loopback_pair *pair, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(pair->qp[0], wr, &bad), 0);
}

static void a_chain_is_one_doorbell(void **in)
{
	struct loopback_pair *pair = *in;
	struct ibv_sge sge = pair_sge(pair, 1000);
	struct ibv_send_wr wrs[4];
	int i;

	for (i = 0; i < 4; i++) {
		wrs[i] = pair_wr(pair, IBV_WR_RDMA_WRITE, &sge);
		wrs[i].next = i < 3 ? &wrs[i + 1] : NULL;
		if (i < 3)
			wrs[i].send_flags = 0;
	}
	post(pair, wrs);
	take(pair, 1, IBV_WC_SUCCESS);
	counts_are((struct verbs_counters){ .doorbells = 1,
					    .send_wrs = 4,
					    .completions = 1,
					    .posted_writes = 4,
					    .posted_write_bytes = 4000 });
}

static void each_kind_is_told_apart(void **in)
{
	struct loopback_pair *pair = *in;
	struct ibv_sge sge = pair_sge(pair, 100), word = pair_sge(pair, 8);
	struct ibv_send_wr send = pair_wr(pair, IBV_WR_SEND, &sge);
	struct ibv_send_wr write = pair_wr(pair, IBV_WR_RDMA_WRITE_WITH_IMM, &sge);
	struct ibv_send_wr read = pair_wr(pair, IBV_WR_RDMA_READ, &sge);
	struct ibv_send_wr add = pair_wr(pair, IBV_WR_ATOMIC_FETCH_AND_ADD, &word);

	pair_post_recv(pair, 200);
	pair_post_recv(pair, 200);
	post(pair, &send);
	post(pair, &write);
	post(pair, &read);
	post(pair, &add);
	take(pair, 6, IBV_WC_SUCCESS);
	counts_are((struct verbs_counters){ .doorbells = 6,
					    .send_wrs = 4,
					    .recv_wrs = 2,
					    .completions = 6,
					    .receives = 2,
					    .receive_bytes = 100,
					    .posted_sends = 1,
					    .posted_send_bytes = 100,
					    .posted_writes = 1,
					    .posted_write_bytes = 100,
					    .posted_reads = 1,
					    .posted_read_bytes = 100,
					    .posted_atomics = 1 });
}

/* ibv_bind_mw() posts without ibv_post_send(). */
static void a_window_is_bound_by_a_work_request(void **in)
{
	struct loopback_pair *pair = *in;
	struct ibv_mr *mr = ibv_reg_mr(pair->pd, pair->bytes, 4096,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(pair->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { mr, (uintptr_t)pair->bytes, 4096, IBV_ACCESS_REMOTE_READ },
	};

	assert_non_null(mr);
	assert_non_null(mw);
	assert_int_equal(ibv_bind_mw(pair->qp[0], mw, &bind), 0);
	take(pair, 1, IBV_WC_SUCCESS);
	counts_are((struct verbs_counters){ .doorbells = 1, .send_wrs = 1, .completions = 1 });
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void refused_work_is_not_counted(void **in)
{
	struct loopback_pair *pair = *in;
	struct ibv_sge sge = pair_sge(pair, 10), many[1000] = { { 0 } };
	struct ibv_send_wr good = pair_wr(pair, IBV_WR_RDMA_WRITE, &sge), *where;
	struct ibv_send_wr bad = pair_wr(pair, IBV_WR_RDMA_WRITE, many);

	good.next = &bad;
	bad.num_sge = 1000;
	assert_int_not_equal(ibv_post_send(pair->qp[0], &good, &where), 0);
	assert_ptr_equal(where, &bad);
	take(pair, 1, IBV_WC_SUCCESS);
	counts_are((struct verbs_counters){ .doorbells = 1,
					    .send_wrs = 1,
					    .completions = 1,
					    .posted_writes = 1,
					    .posted_write_bytes = 10 });
}

static void errors_are_counted(void **in)
{
	struct loopback_pair *pair = *in;
	struct ibv_sge sge = pair_sge(pair, 10);
	struct ibv_send_wr read = pair_wr(pair, IBV_WR_RDMA_READ, &sge);

	read.wr.rdma.rkey ^= 0x5a5a00;
	post(pair, &read);
	take(pair, 1, IBV_WC_REM_ACCESS_ERR);
	counts_are((struct verbs_counters){ .doorbells = 1,
					    .send_wrs = 1,
					    .completions = 1,
					    .errors = 1,
					    .posted_reads = 1,
					    .posted_read_bytes = 10 });
}

static void arms_and_events_are_counted(void **in)
{
	struct loopback_pair *pair = *in;
	struct pollfd fd = { .fd = pair->channel->fd, .events = POLLIN };
	struct ibv_sge sge = pair_sge(pair, 10);
	struct ibv_send_wr write = pair_wr(pair, IBV_WR_RDMA_WRITE, &sge);
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(ibv_req_notify_cq(pair->cq, 0), 0);
	post(pair, &write);
	assert_int_equal(poll(&fd, 1, PATIENCE_S * 1000), 1);
	assert_int_equal(ibv_get_cq_event(pair->channel, &cq, &context), 0);
	assert_ptr_equal(cq, pair->cq);
	ibv_ack_cq_events(cq, 1);
	take(pair, 1, IBV_WC_SUCCESS);
	counts_are((struct verbs_counters){ .doorbells = 1,
					    .send_wrs = 1,
					    .completions = 1,
					    .arms = 1,
					    .cq_events = 1,
					    .posted_writes = 1,
					    .posted_write_bytes = 10 });
}

static struct ibv_qp *make_extended(struct loopback_pair *pair, struct ibv_qp_init_attr *plain)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = plain->send_cq,
		.recv_cq = plain->recv_cq,
		.cap = plain->cap,
		.qp_type = plain->qp_type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pair->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND,
	};

	return ibv_create_qp_ex(pair->context, &init);
}

/* Posts a write of two pieces and a send together, then starts and aborts another post. */
static void post_extended(struct loopback_pair *pair)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(pair->qp[0]);
	struct ibv_sge pieces[2] = { pair_sge(pair, 300), pair_sge(pair, 400) };

	ibv_wr_start(qp);
	qp->wr_flags = 0;
	ibv_wr_rdma_write(qp, pair->mr->rkey, (uintptr_t)pair->bytes + PAIR_BYTES);
	ibv_wr_set_sge_list(qp, 2, pieces);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, pair->mr->lkey, (uintptr_t)pair->bytes, 50);
	assert_int_equal(ibv_wr_complete(qp), 0);

	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, pair->mr->lkey, (uintptr_t)pair->bytes, 60);
	ibv_wr_abort(qp);
}

static void take_extended(struct ibv_cq_ex *cq, int wanted)
{
	struct ibv_poll_cq_attr attr = { 0 };
	time_t deadline = time(NULL) + PATIENCE_S;

	while (wanted) {
		int rc = ibv_start_poll(cq, &attr);

		assert_true((!rc || rc == ENOENT) && time(NULL) < deadline);
		if (rc)
			continue;
		do {
			assert_int_equal(cq->status, IBV_WC_SUCCESS);
			wanted--;
		} while (!ibv_next_poll(cq));
		ibv_end_poll(cq);
	}
}

static void the_extended_interfaces_count_alike(void **in)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 4 * PAIR_DEPTH,
					    .wc_flags = IBV_WC_EX_WITH_BYTE_LEN };
	struct ibv_cq_ex *cq;
	struct loopback_pair pair;

	(void)in;
	pair_open(&pair);
	cq = ibv_create_cq_ex(pair.context, &init);
	if (cq)
		pair.cq = ibv_cq_ex_to_cq(cq);
	if (!cq || !pair_connect(&pair, make_extended)) {
		int reason = errno;

		pair_close(&pair);
		if (reason != EOPNOTSUPP && reason != ENOSYS)
			fail_msg("no extended objects: %s", strerror(reason));
		print_message("# the device has no extended objects\n");
		skip();
	}
	verbs_count_read(&before);
	pair_post_recv(&pair, 200);
	post_extended(&pair);
	take_extended(cq, 2);
	counts_are((struct verbs_counters){ .doorbells = 2,
					    .send_wrs = 2,
					    .recv_wrs = 1,
					    .completions = 2,
					    .receives = 1,
					    .receive_bytes = 50,
					    .posted_writes = 1,
					    .posted_write_bytes = 700,
					    .posted_sends = 1,
					    .posted_send_bytes = 50 });
	pair_close(&pair);
}

static const struct softnic_counters *own(const struct softnic_process *list, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (list[i].pid == getpid())
			return &list[i].counters;
	fail_msg("softnic does not know this process");
	return NULL;
}

static void softnics_own_counters_agree(void **in)
{
	static struct softnic_process list[1024];
	const struct softnic_counters *theirs;
	struct verbs_counters ours;
	size_t n;

	(void)in;
	if (strcmp(getenv("WEIR_TEST_DEVICE"), "softnic"))
		skip();
	assert_int_equal(softnic_stat(list, 1024, &n), 0);
	theirs = own(list, n);
	verbs_count_read(&ours);
	assert_int_equal(ours.doorbells, theirs->doorbells);
	assert_int_equal(ours.send_wrs, theirs->send_wrs);
	assert_int_equal(ours.recv_wrs, theirs->recv_wrs);
	assert_int_equal(ours.completions, theirs->completions);
	assert_int_equal(ours.cq_events, theirs->cq_events);
	assert_int_equal(ours.receives, theirs->receives);
	assert_int_equal(ours.receive_bytes, theirs->receive_bytes);
	assert_int_equal(ours.errors, theirs->errors);
	/* Posted and completed, except for the refused read. */
	assert_int_equal(ours.posted_writes, theirs->writes);
	assert_int_equal(ours.posted_write_bytes, theirs->write_bytes);
	assert_int_equal(ours.posted_sends, theirs->sends);
	assert_int_equal(ours.posted_send_bytes, theirs->send_bytes);
	assert_int_equal(ours.posted_reads, theirs->reads + 1);
	assert_int_equal(ours.posted_atomics, theirs->atomics);
}

static struct ibv_srq *shared;

static struct ibv_qp *make_sharing(struct loopback_pair *pair, struct ibv_qp_init_attr *plain)
{
	struct ibv_srq_init_attr of_srq = { .attr = { .max_wr = PAIR_DEPTH, .max_sge = 1 } };
	struct ibv_qp_init_attr init = *plain;

	if (!shared)
		shared = ibv_create_srq(pair->pd, &of_srq);
	assert_non_null(shared);
	init.srq = shared;
	return ibv_create_qp(pair->pd, &init);
}

/* An event that every device supports: the limit of a shared receive queue. */
static void asynchronous_events_are_counted(void **in)
{
	struct pollfd fd = { .events = POLLIN };
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct ibv_recv_wr recv = { 0 }, *bad;
	struct ibv_async_event event;
	struct ibv_send_wr send;
	struct ibv_sge sge;
	struct loopback_pair pair;
	int i;

	(void)in;
	pair_open(&pair);
	assert_true(pair_connect(&pair, make_sharing));
	for (i = 0; i < 2; i++)
		assert_int_equal(ibv_post_srq_recv(shared, &recv, &bad), 0);
	assert_int_equal(ibv_modify_srq(shared, &attr, IBV_SRQ_LIMIT), 0);
	verbs_count_read(&before);
	sge = pair_sge(&pair, 0);
	send = pair_wr(&pair, IBV_WR_SEND, &sge);
	post(&pair, &send);
	take(&pair, 2, IBV_WC_SUCCESS);
	fd.fd = pair.context->async_fd;
	assert_int_equal(poll(&fd, 1, PATIENCE_S * 1000), 1);
	assert_int_equal(ibv_get_async_event(pair.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	ibv_ack_async_event(&event);
	counts_are((struct verbs_counters){ .doorbells = 1,
					    .send_wrs = 1,
					    .completions = 2,
					    .async_events = 1,
					    .receives = 1,
					    .posted_sends = 1 });
	for (i = 0; i < 2; i++)
		assert_int_equal(ibv_destroy_qp(pair.qp[i]), 0);
	pair.qp[0] = pair.qp[1] = NULL;
	assert_int_equal(ibv_destroy_srq(shared), 0);
	shared = NULL;
	pair_close(&pair);
}

/* An object freed as one kind and allocated as another must not overflow the smaller record. */
static void records_of_different_kinds_are_not_shared(void **in)
{
	static char object;
	void *context = wrapped_get(WRAPPED_CONTEXT, &object, 8), *qp;

	(void)in;
	assert_non_null(context);
	qp = wrapped_get(WRAPPED_QP, &object, 4096);
	assert_non_null(qp);
	assert_ptr_not_equal(qp, context);
	assert_ptr_equal(wrapped_find(WRAPPED_CONTEXT, &object), context);
	assert_ptr_equal(wrapped_find(WRAPPED_QP, &object), qp);
	assert_ptr_equal(wrapped_get(WRAPPED_QP, &object, 4096), qp);
	assert_null(wrapped_find(WRAPPED_CQ, &object));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_chain_is_one_doorbell, setup, teardown),
		cmocka_unit_test_setup_teardown(each_kind_is_told_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(a_window_is_bound_by_a_work_request, setup,
						teardown),
		cmocka_unit_test_setup_teardown(refused_work_is_not_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(errors_are_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(arms_and_events_are_counted, setup, teardown),
		cmocka_unit_test(asynchronous_events_are_counted),
		cmocka_unit_test(the_extended_interfaces_count_alike),
		cmocka_unit_test(records_of_different_kinds_are_not_shared),
		cmocka_unit_test_setup_teardown(softnics_own_counters_agree, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
