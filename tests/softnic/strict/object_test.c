// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic strict object; devices: softnic; timeout: 180 */
/* Strict mode beside the data path: states, destruction, events, receivers, leaks and the end. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "strict_case.h"

static void write_unsignaled(struct loopback_pair *pair)
{
	struct ibv_sge sge = pair_sge(pair, 8);
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_RDMA_WRITE, &sge);

	wr.send_flags = 0;
	must(!strict_post(pair, &wr));
}

static void write_signaled(struct loopback_pair *pair)
{
	struct ibv_sge sge = pair_sge(pair, 8);
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_RDMA_WRITE, &sge);

	must(!strict_post(pair, &wr));
}

static void deregister_in_use(struct loopback_pair *pair)
{
	write_unsignaled(pair);
	must(!ibv_dereg_mr(pair->mr));
}

static void deregister_after_use(struct loopback_pair *pair)
{
	write_unsignaled(pair);
	write_signaled(pair);
	strict_wait(pair->cq);
	must(!ibv_dereg_mr(pair->mr));
}

/* Receives into a region of its own, deregistered before the completion is polled, or after. */
static void receive(struct loopback_pair *pair, bool deregisters)
{
	static char bytes[64];
	struct ibv_mr *mr = ibv_reg_mr(pair->pd, bytes, 64, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge to = { (uintptr_t)bytes, 64, mr->lkey }, sge = pair_sge(pair, 64);
	struct ibv_recv_wr recv = { .wr_id = 7, .sg_list = &to, .num_sge = 1 }, *bad;
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_SEND, &sge);
	struct ibv_wc wc;

	must(!ibv_post_recv(pair->qp[1], &recv, &bad) && !strict_post(pair, &wr));
	if (deregisters)
		must(!ibv_dereg_mr(mr));
	do
		wc = strict_wait(pair->cq);
	while (wc.qp_num != pair->qp[1]->qp_num);
	must(wc.wr_id == 7);
	must(wc.status == (deregisters ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS));
	if (!deregisters)
		must(!ibv_dereg_mr(mr));
}

static void deregister_a_receive(struct loopback_pair *pair)
{
	receive(pair, true);
}

static void deregister_no_receive(struct loopback_pair *pair)
{
	receive(pair, false);
}

static void free_a_domain_in_use(struct loopback_pair *pair)
{
	must(ibv_dealloc_pd(pair->pd) == EBUSY);
}

static void free_a_cq_in_use(struct loopback_pair *pair)
{
	must(ibv_destroy_cq(pair->cq) == EBUSY);
}

static void free_all_in_order(struct loopback_pair *pair)
{
	write_signaled(pair);
	strict_wait(pair->cq);
	pair_close(pair);
}

/* A queue pair for datagrams, in the state RTS. */
static struct ibv_qp *make_datagram_qp(struct loopback_pair *pair)
{
	struct ibv_qp_init_attr init = {
		.send_cq = pair->cq,
		.recv_cq = pair->cq,
		.cap = { 4, 4, 1, 1, 0 },
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 5 };
	struct ibv_qp *qp = ibv_create_qp(pair->pd, &init);

	must(qp && !ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return qp;
}

static void send_datagram(struct loopback_pair *pair, bool waits)
{
	struct ibv_ah_attr attr = { .port_num = 1, .is_global = 1 };
	struct ibv_qp *qp = make_datagram_qp(pair);
	struct ibv_ah *ah;
	struct ibv_sge sge = pair_sge(pair, 64);
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_SEND, &sge), *bad;

	must(!ibv_query_gid(pair->context, 1, 0, &attr.grh.dgid));
	ah = ibv_create_ah(pair->pd, &attr);
	must(ah);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qp->qp_num;
	wr.wr.ud.remote_qkey = 5;
	must(!ibv_post_send(qp, &wr, &bad));
	if (waits)
		strict_wait(pair->cq);
	must(!ibv_destroy_ah(ah));
}

static void destroy_an_address_in_use(struct loopback_pair *pair)
{
	send_datagram(pair, false);
}

static void destroy_an_address_after_use(struct loopback_pair *pair)
{
	send_datagram(pair, true);
}

static void take_event(struct loopback_pair *pair, unsigned int acks)
{
	struct ibv_cq *cq;
	void *context;

	must(!ibv_req_notify_cq(pair->cq, 0));
	write_signaled(pair);
	must(!ibv_get_cq_event(pair->channel, &cq, &context) && cq == pair->cq);
	strict_wait(pair->cq);
	ibv_ack_cq_events(cq, acks);
	pair_close(pair); /* would wait for ever without the acknowledgement */
}

static void acknowledge_nothing(struct loopback_pair *pair)
{
	take_event(pair, 0);
}

static void acknowledge(struct loopback_pair *pair)
{
	take_event(pair, 1);
}

static struct ibv_qp *make_qp(struct loopback_pair *pair)
{
	struct ibv_qp_init_attr init = {
		.send_cq = pair->cq,
		.recv_cq = pair->cq,
		.cap = { 4, 4, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(pair->pd, &init);

	must(qp);
	return qp;
}

static void post_in_a_wrong_state(struct loopback_pair *pair)
{
	struct ibv_sge sge = pair_sge(pair, 8);
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_RDMA_WRITE, &sge), *bad;

	must(ibv_post_send(make_qp(pair), &wr, &bad) == EINVAL && bad == &wr);
}

static void post_in_a_right_state(struct loopback_pair *pair)
{
	write_signaled(pair);
	strict_wait(pair->cq);
}

static void forget_an_attribute(struct loopback_pair *pair)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	must(ibv_modify_qp(make_qp(pair), &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_QKEY | IBV_QP_ACCESS_FLAGS) ==
	     EINVAL);
}

static void give_all_attributes(struct loopback_pair *pair)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	must(!ibv_modify_qp(make_qp(pair), &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

static bool has_failed(struct loopback_pair *pair)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	must(!ibv_query_qp(pair->qp[0], &attr, IBV_QP_STATE, &init));
	return attr.qp_state == IBV_QPS_ERR;
}

/*
 * Leave all completions unpolled until the last is there: a further write has landed. Or the device
 * has found the overrun by itself, and no write lands any more.
 */
static void wait_without_polling(struct loopback_pair *pair)
{
	volatile char *landed = pair->bytes + PAIR_BYTES + 8;
	struct ibv_sge sge = pair_sge(pair, 1);
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_RDMA_WRITE, &sge);

	pair->bytes[8] = 1;
	sge.addr += 8;
	wr.wr.rdma.remote_addr += 8;
	wr.send_flags = 0;
	must(!strict_post(pair, &wr));
	while (!*landed && !has_failed(pair))
		usleep(100);
}

static void overrun_a_cq(struct loopback_pair *pair)
{
	uint32_t i;

	must(!ibv_resize_cq(pair->cq, 3));
	for (i = 0; i < 4; i++)
		write_signaled(pair);
	wait_without_polling(pair);
	for (i = 0; i < 4; i++)
		strict_wait(pair->cq);
}

static void fill_a_cq(struct loopback_pair *pair)
{
	uint32_t i;

	must(!ibv_resize_cq(pair->cq, 3));
	for (i = 0; i < 3; i++)
		write_signaled(pair);
	for (i = 0; i < 3; i++)
		strict_wait(pair->cq);
}

static void send_without_retries(struct loopback_pair *pair, bool has_receive)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .rnr_retry = 0 };
	struct ibv_sge sge = pair_sge(pair, 8);
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_SEND, &sge);

	must(!ibv_modify_qp(pair->qp[0], &attr, IBV_QP_STATE));
	must(!ibv_modify_qp(pair->qp[0], &attr, IBV_QP_STATE | IBV_QP_RNR_RETRY));
	attr.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(pair->qp[0], &attr, IBV_QP_STATE));
	if (has_receive)
		pair_post_recv(pair, 8);
	must(!strict_post(pair, &wr));
	must((strict_wait(pair->cq).status == IBV_WC_RNR_RETRY_EXC_ERR) != has_receive);
}

static void send_to_nobody(struct loopback_pair *pair)
{
	send_without_retries(pair, false);
}

static void send_to_a_receive(struct loopback_pair *pair)
{
	send_without_retries(pair, true);
}

static void post_after_the_end(struct loopback_pair *pair)
{
	struct ibv_sge sge = pair_sge(pair, 8);
	struct ibv_send_wr wr = pair_wr(pair, IBV_WR_RDMA_WRITE, &sge);

	must(!ibv_destroy_qp(pair->qp[0]));
	must(strict_post(pair, &wr) == EINVAL);
	must(ibv_destroy_qp(pair->qp[0]) == EINVAL);
}

static void deregister_twice(struct loopback_pair *pair)
{
	must(!ibv_dereg_mr(pair->mr));
	must(ibv_dereg_mr(pair->mr) == EINVAL);
}

static const struct strict_case cases[] = {
	{ "a region of unsignaled work is deregistered",
	  deregister_in_use,
	  { "region", "ibv_dereg_mr()" },
	  deregister_after_use },
	{ "the region of a receive is deregistered",
	  deregister_a_receive,
	  { "region", "wr_id 7", "deregistered or unmapped" },
	  deregister_no_receive },
	{ "a protection domain in use",
	  free_a_domain_in_use,
	  { "busy", "ibv_dealloc_pd()" },
	  free_all_in_order },
	{ "a CQ in use", free_a_cq_in_use, { "busy", "ibv_destroy_cq()" }, free_all_in_order },
	{ "an address handle in use",
	  destroy_an_address_in_use,
	  { "address-handle", "ibv_destroy_ah()" },
	  destroy_an_address_after_use },
	{ "an event without acknowledgement",
	  acknowledge_nothing,
	  { "ack", "ibv_destroy_cq()", "1 events" },
	  acknowledge },
	{ "a post in the reset state",
	  post_in_a_wrong_state,
	  { "state", "ibv_post_send()" },
	  post_in_a_right_state },
	{ "a wrong mask of attributes",
	  forget_an_attribute,
	  { "RESET to INIT", "misses IBV_QP_PORT", "may not have IBV_QP_QKEY" },
	  give_all_attributes },
	{ "a CQ overruns", overrun_a_cq, { "cq-overrun", "3 entries" }, fill_a_cq },
	{ "a send to nobody",
	  send_to_nobody,
	  { "rnr", "rnr_retry is used up" },
	  send_to_a_receive },
	{ "a destroyed queue pair",
	  post_after_the_end,
	  { "destroyed", "ibv_post_send()" },
	  free_all_in_order },
	{ "a deregistered region",
	  deregister_twice,
	  { "destroyed", "ibv_dereg_mr()" },
	  free_all_in_order },
};

static void test_a_wrong_program_is_told_and_a_right_one_is_not(void **state)
{
	(void)state;
	strict_case_run(cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_leaks_are_told_on_request(void **state)
{
	char text[4096];

	(void)state;
	assert_int_equal(strict_case_output(post_in_a_right_state, "strict=1", text, sizeof(text)),
			 0);
	strict_case_output(post_in_a_right_state, "strict=1,strict_leaks=1", text, sizeof(text));
	assert_non_null(strstr(text, "2 queue pairs left"));
	assert_non_null(strstr(text, "1 memory regions left"));
	assert_int_equal(strict_case_output(free_all_in_order, "strict=1,strict_leaks=1", text,
					    sizeof(text)),
			 0);
}

static void test_the_first_finding_may_end_the_program(void **state)
{
	char text[4096];
	int status;

	(void)state;
	status = strict_case_output(free_a_cq_in_use, "strict=2", text, sizeof(text));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_non_null(strstr(text, "softnic: strict: busy"));
}

static void fail_by_itself(struct loopback_pair *pair)
{
	free_a_cq_in_use(pair);
	exit(7);
}

static void test_the_programs_own_failure_stays(void **state)
{
	char text[4096];
	int status;

	(void)state;
	status = strict_case_output(fail_by_itself, "strict=1", text, sizeof(text));
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	assert_non_null(strstr(text, "1 finding: busy 1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_wrong_program_is_told_and_a_right_one_is_not),
		cmocka_unit_test(test_leaks_are_told_on_request),
		cmocka_unit_test(test_the_first_finding_may_end_the_program),
		cmocka_unit_test(test_the_programs_own_failure_stays),
	};

	return cmocka_run_group_tests_name("softnic strict object", tests, NULL, NULL);
}
