/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A verbs program that knows nothing of weir, run with its small writes unloaded: what it can see
 * is what a device would have done. Both QPs are in this process.
 */
#include "tests/unload/drive.h"

#include <poll.h>
#include <string.h>

static struct ibv_qp *make_extended(struct pair *pair, const struct ibv_qp_init_attr *init,
				    uint64_t send_ops)
{
	struct ibv_qp_init_attr_ex extended = {
		.send_cq = init->send_cq, .recv_cq = init->recv_cq, .cap = init->cap,
		.qp_type = init->qp_type, .pd = pair->pd, .send_ops_flags = send_ops,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (send_ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS :
					 IBV_QP_INIT_ATTR_CREATE_FLAGS),
	};

	return ibv_create_qp_ex(pair->context, &extended);
}

static struct ibv_qp *make_with_flags(struct pair *pair, struct ibv_qp_init_attr *init)
{
	return make_extended(pair, init, 0);
}

static struct ibv_qp *make_for_wr_start(struct pair *pair, struct ibv_qp_init_attr *init)
{
	return make_extended(pair, init, IBV_QP_EX_WITH_RDMA_WRITE);
}

static void however_a_queue_pair_was_made_its_writes_are_unloaded(void **state)
{
	struct pair pair;

	(void)state;
	open_unloading_made(&pair, make_with_flags);
	pair_close(&pair);
}

static void a_queue_pair_for_ibv_wr_start_is_the_devices_alone(void **state)
{
	const uint64_t before = unloaded();
	struct ibv_qp_ex *qp;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;
	struct ibv_wc wc;
	int i;

	(void)state;
	pair_open(&pair);
	assert_true(pair_connect(&pair, make_for_wr_start));
	qp = ibv_qp_to_qp_ex(pair.qp[0]);
	assert_non_null(qp);
	for (i = 0; i < 200; i++) {
		memset(pair.bytes, i, SMALL);
		ibv_wr_start(qp);
		qp->wr_id = (uint64_t)i;
		qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(qp, pair.mr->rkey, (uintptr_t)pair.bytes + PAIR_BYTES);
		ibv_wr_set_sge(qp, pair.mr->lkey, (uintptr_t)pair.bytes, SMALL);
		assert_int_equal(ibv_wr_complete(qp), 0);
		wc = next_wc(&pair);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
		assert_memory_equal(pair.bytes, pair.bytes + PAIR_BYTES, SMALL);
	}
	wr = small_write(&pair, &sge);
	for (i = 0; i < 200; i++)
		complete(&pair, &wr);
	assert_int_equal(unloaded(), before);
	pair_close(&pair);
}

static void a_completed_write_is_there_and_completes_once(void **state)
{
	struct pair pair;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	uint64_t before, i;

	(void)state;
	open_unloading(&pair);
	before = unloaded();
	wr = small_write(&pair, &sge);
	for (i = 0; i < 200; i++) {
		sge.length = 1 + i;
		memset(pair.bytes, (int)i, sge.length);
		wr.wr_id = 1000 + i;
		complete(&pair, &wr);
		assert_memory_equal(pair.bytes, pair.bytes + PAIR_BYTES, sge.length);
	}
	assert_int_equal(unloaded(), before + i);
	assert_no_completion(&pair);
	pair_close(&pair);
}

static void what_follows_sees_what_was_unloaded(void **state)
{
	struct pair pair;
	struct ibv_sge small, back;
	struct ibv_send_wr write, read;
	uint64_t i;

	(void)state;
	open_unloading(&pair);
	write = small_write(&pair, &small);
	write.send_flags = 0;
	back = (struct ibv_sge){ small.addr + 4096, SMALL, small.lkey };
	read = pair_wr(&pair, IBV_WR_RDMA_READ, &back);
	for (i = 0; i < 100; i++) {
		memset(pair.bytes, (int)(i + 1), SMALL);
		if (i % 2) {
			write.next = &read;
			complete(&pair, &write);
		} else {
			write.next = NULL;
			post(&pair, &write);
			complete(&pair, &read);
		}
		assert_memory_equal(pair.bytes, pair.bytes + 4096, SMALL);
	}
	assert_no_completion(&pair);
	pair_close(&pair);
}

static void many_without_a_completion_wait_for_slots(void **state)
{
	struct pair pair;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	uint32_t i;

	(void)state;
	open_unloading(&pair);
	wr = small_write(&pair, &sge);
	for (i = 0; i < 500; i++) {
		/* Half of what the queue holds may be unsignaled. */
		wr.send_flags = IBV_SEND_INLINE | (i % 8 == 7 ? IBV_SEND_SIGNALED : 0);
		wr.wr.rdma.remote_addr = (uintptr_t)pair.bytes + PAIR_BYTES + i % 512 * SMALL;
		memset(pair.bytes, (int)i, SMALL);
		wr.wr_id = i;
		post(&pair, &wr);
		/* What was inline is the program's again. */
		memset(pair.bytes, 0xee, SMALL);
		if (i % 8 == 7)
			assert_int_equal(next_wc(&pair).wr_id, i);
	}
	for (i = 0; i < 496; i++)
		assert_int_equal((uint8_t)pair.bytes[PAIR_BYTES + i * SMALL + i % SMALL],
				 (uint8_t)i);
	pair_close(&pair);
}

static void a_completion_raises_its_event(void **state)
{
	struct pair pair;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct pollfd fd = { .events = POLLIN };
	struct ibv_cq *cq;
	void *context;
	uint64_t before;

	(void)state;
	open_unloading(&pair);
	before = unloaded();
	wr = small_write(&pair, &sge);
	assert_int_equal(ibv_req_notify_cq(pair.cq, 0), 0);
	post(&pair, &wr);
	fd.fd = pair.channel->fd;
	assert_int_equal(poll(&fd, 1, PATIENCE_S * 1000), 1);
	assert_int_equal(ibv_get_cq_event(pair.channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(next_wc(&pair).status, IBV_WC_SUCCESS);
	assert_int_equal(unloaded(), before + 1);
	pair_close(&pair);
}

/* One that the device refuses ends with the status that it gives, whichever way it went. */
static void expect_refusal(struct pair *pair, struct ibv_send_wr *wr)
{
	char was[SMALL];
	const char *at = (const char *)(uintptr_t)wr->wr.rdma.remote_addr;
	struct ibv_wc wc;

	memcpy(was, at, SMALL);
	memset(pair->bytes, 0x77, SMALL);
	wr->wr_id = 4711;
	post(pair, wr);
	wc = next_wc(pair);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(wc.wr_id, 4711);
	assert_memory_equal(was, at, SMALL);
	assert_no_completion(pair);
}

static void nothing_is_written_after_deregistration(void **state)
{
	static char other[SMALL];
	struct pair pair;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_mr *mr;

	(void)state;
	open_unloading(&pair);
	mr = ibv_reg_mr(pair.pd, other, sizeof(other), RIGHTS);
	assert_non_null(mr);
	wr = small_write(&pair, &sge);
	wr.wr.rdma.remote_addr = (uintptr_t)other;
	wr.wr.rdma.rkey = mr->rkey;
	complete(&pair, &wr);
	assert_memory_equal(other, pair.bytes, SMALL);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	expect_refusal(&pair, &wr);
	pair_close(&pair);
}

static void one_byte_beyond_is_refused(void **state)
{
	struct pair pair;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	(void)state;
	open_unloading(&pair);
	wr = small_write(&pair, &sge);
	wr.wr.rdma.remote_addr = (uintptr_t)pair.bytes + 2 * PAIR_BYTES - SMALL;
	complete(&pair, &wr);
	sge.length++;
	expect_refusal(&pair, &wr);
	pair_close(&pair);
}

static void what_may_only_be_read_is_not_written(void **state)
{
	static char other[SMALL];
	struct pair pair;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_mr *mr;

	(void)state;
	open_unloading(&pair);
	mr = ibv_reg_mr(pair.pd, other, sizeof(other), IBV_ACCESS_REMOTE_READ);
	assert_non_null(mr);
	wr = small_write(&pair, &sge);
	wr.wr.rdma.remote_addr = (uintptr_t)other;
	wr.wr.rdma.rkey = mr->rkey;
	expect_refusal(&pair, &wr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_close(&pair);
}

static void a_peer_that_is_gone_ends_in_an_error(void **state)
{
	struct pair pair;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	(void)state;
	open_unloading(&pair);
	assert_int_equal(ibv_destroy_qp(pair.qp[1]), 0);
	pair.qp[1] = NULL;
	wr = small_write(&pair, &sge);
	memset(pair.bytes, 0x55, SMALL);
	memset(pair.bytes + PAIR_BYTES, 0, SMALL);
	post(&pair, &wr);
	assert_int_not_equal(next_wc(&pair).status, IBV_WC_SUCCESS);
	assert_int_equal(pair.bytes[PAIR_BYTES], 0);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(however_a_queue_pair_was_made_its_writes_are_unloaded),
		cmocka_unit_test(a_queue_pair_for_ibv_wr_start_is_the_devices_alone),
		cmocka_unit_test(a_completed_write_is_there_and_completes_once),
		cmocka_unit_test(what_follows_sees_what_was_unloaded),
		cmocka_unit_test(many_without_a_completion_wait_for_slots),
		cmocka_unit_test(a_completion_raises_its_event),
		cmocka_unit_test(nothing_is_written_after_deregistration),
		cmocka_unit_test(one_byte_beyond_is_refused),
		cmocka_unit_test(what_may_only_be_read_is_not_written),
		cmocka_unit_test(a_peer_that_is_gone_ends_in_an_error),
	};

	return cmocka_run_group_tests_name("unload program", tests, NULL, NULL);
}
