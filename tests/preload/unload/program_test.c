/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: unload program; devices: softnic rxe; timeout: 300 */
/*
 * A verbs program without knowledge of weir, with its small writes unloaded, behaves as with a
 * device alone. Both QPs are in this process.
 */
#include "tests/preload/unload/drive.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_qp *make_extended(struct loopback_pair *pair, const struct ibv_qp_init_attr *init,
				    uint64_t send_ops)
{
	struct ibv_qp_init_attr_ex extended = {
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.pd = pair->pd,
		.send_ops_flags = send_ops,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (send_ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS :
							       IBV_QP_INIT_ATTR_CREATE_FLAGS),
	};

	return ibv_create_qp_ex(pair->context, &extended);
}

static struct ibv_qp *make_with_flags(struct loopback_pair *pair, struct ibv_qp_init_attr *init)
{
	return make_extended(pair, init, 0);
}

static struct ibv_qp *make_for_wr_start(struct loopback_pair *pair, struct ibv_qp_init_attr *init)
{
	return make_extended(pair, init, IBV_QP_EX_WITH_RDMA_WRITE);
}

static void however_a_queue_pair_was_made_its_writes_are_unloaded(void **state)
{
	struct loopback_pair pair;

	(void)state;
	open_unloading_made(&pair, make_with_flags);
	pair_close(&pair);
}

static void a_queue_pair_for_ibv_wr_start_is_the_devices_alone(void **state)
{
	const struct diag_counters before = said_now();
	struct ibv_qp_ex *qp;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct loopback_pair pair;
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
	assert_int_equal(unloaded(), before.unloaded);
	assert_int_equal(said_now().plain, before.plain + 2); /* and the user has been told */
	pair_close(&pair);
}

static void a_completed_write_is_there_and_completes_once(void **state)
{
	struct loopback_pair pair;
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

static void later_requests_see_unloaded_writes(void **state)
{
	struct loopback_pair pair;
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

/* Earlier unloaded writes are in place before the immediate arrives. */
static void an_immediate_of_the_programs_own_is_delivered(void **state)
{
	struct ibv_recv_wr *bad, recv = { .wr_id = 100 };
	struct ibv_send_wr write, told;
	struct ibv_wc wc, *of;
	struct ibv_sge small;
	struct loopback_pair pair;
	uint64_t before;
	int i;

	(void)state;
	open_unloading(&pair);
	write = small_write(&pair, &small);
	write.send_flags = 0;
	told = pair_wr(&pair, IBV_WR_RDMA_WRITE_WITH_IMM, NULL);
	told.num_sge = 0;
	for (i = 0; i < 50; i++) {
		struct ibv_wc sent = { .wr_id = 0 }, came = sent;

		memset(pair.bytes, i + 1, SMALL);
		assert_int_equal(ibv_post_recv(pair.qp[1], &recv, &bad), 0);
		before = unloaded();
		post(&pair, &write);
		assert_int_equal(unloaded(), before + 1);
		told.wr_id = 200;
		told.imm_data = (uint32_t)i;
		post(&pair, &told);
		while (!sent.wr_id || !came.wr_id) {
			wc = next_wc(&pair);
			of = wc.wr_id == 100 ? &came : &sent;
			*of = wc;
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_true(of == &sent ||
				    !memcmp(pair.bytes, pair.bytes + PAIR_BYTES, SMALL));
		}
		assert_int_equal(came.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		assert_true(came.wc_flags & IBV_WC_WITH_IMM);
		assert_int_equal(came.imm_data, i);
		assert_int_equal(sent.wr_id, 200);
	}
	pair_close(&pair);
}

static void many_without_a_completion_wait_for_slots(void **state)
{
	struct loopback_pair pair;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	uint32_t i;

	(void)state;
	open_unloading(&pair);
	wr = small_write(&pair, &sge);
	for (i = 0; i < 500; i++) {
		/* Half of the queue may be unsignalled. */
		wr.send_flags = IBV_SEND_INLINE | (i % 8 == 7 ? IBV_SEND_SIGNALED : 0);
		wr.wr.rdma.remote_addr = (uintptr_t)pair.bytes + PAIR_BYTES + i % 512 * SMALL;
		memset(pair.bytes, (int)i, SMALL);
		wr.wr_id = i;
		post(&pair, &wr);
		/* After the post, inline data belongs to the program again. */
		memset(pair.bytes, 0xee, SMALL);
		if (i % 8 == 7)
			assert_int_equal(next_wc(&pair).wr_id, i);
	}
	for (i = 0; i < 496; i++)
		assert_int_equal((uint8_t)pair.bytes[PAIR_BYTES + i * SMALL + i % SMALL],
				 (uint8_t)i);
	pair_close(&pair);
}

/* Soft-RoCE frees a place in the queue when the work is done, even before polling, so it may take
 * all. */
static void a_full_queue_takes_no_write_halfway(void **state)
{
	struct loopback_pair pair;
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad = NULL;
	const char *there;
	uint64_t before;
	uint32_t i, n;
	int rc = 0;

	(void)state;
	open_unloading(&pair);
	before = unloaded();
	wr = small_write(&pair, &sge);
	there = pair.bytes + PAIR_BYTES;
	memset(pair.bytes + PAIR_BYTES, 0, PAIR_BYTES);
	for (n = 0; n < 3 * PAIR_DEPTH; n++) {
		memset(pair.bytes + n * SMALL, (int)n + 1, SMALL);
		sge.addr = (uintptr_t)pair.bytes + n * SMALL;
		wr.wr_id = n;
		wr.wr.rdma.remote_addr = (uintptr_t)there + n * SMALL;
		rc = ibv_post_send(pair.qp[0], &wr, &bad);
		if (rc)
			break;
	}
	assert_true(rc || !strncmp(ibv_get_device_name(pair.context->device), "rxe", 3));
	assert_true(unloaded() > before);
	if (rc) {
		assert_int_equal(rc, ENOMEM);
		assert_ptr_equal(bad, &wr);
		assert_int_equal(there[n * SMALL], 0);
	}
	for (i = 0; i < n; i++) {
		assert_int_equal(next_wc(&pair).wr_id, i);
		assert_int_equal(there[i * SMALL], i + 1);
	}
	if (rc) {
		complete(&pair, &wr);
		assert_int_equal(there[n * SMALL], n + 1);
	}
	assert_no_completion(&pair);
	pair_close(&pair);
}

struct polling {
	struct loopback_pair *pair;
	uint64_t until;
	unsigned int wanted;
	unsigned int taken;
	uint8_t *times; /* by wr_id */
};

static void *poll_until_all_are_there(void *arg)
{
	struct polling *p = arg;
	struct ibv_wc wc;

	while (__atomic_load_n(&p->taken, __ATOMIC_ACQUIRE) < p->wanted) {
		assert_true(now_ns() < p->until);
		if (ibv_poll_cq(p->pair->cq, 1, &wc) != 1) {
			sched_yield();
			continue;
		}
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		__atomic_fetch_add(&p->times[wc.wr_id], 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&p->taken, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Completions are noted in the order of the CQ; otherwise unloading would stop. */
static void threads_may_poll_one_queue(void **state)
{
	struct polling p = {
		.wanted = (unsigned int)rounds(4000),
		.until = now_ns() + PATIENCE_S * 1000000000ull,
	};
	struct ibv_send_wr wr;
	pthread_t threads[2];
	struct ibv_sge sge;
	struct loopback_pair pair;
	uint64_t before;
	unsigned int i;

	(void)state;
	open_unloading(&pair);
	p.pair = &pair;
	p.times = calloc(p.wanted, 1);
	assert_non_null(p.times);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, poll_until_all_are_there, &p),
				 0);
	wr = small_write(&pair, &sge);
	/* A send queue may have more room than the completion queue. */
	for (wr.wr_id = 0; wr.wr_id < p.wanted; wr.wr_id++) {
		while (wr.wr_id - __atomic_load_n(&p.taken, __ATOMIC_ACQUIRE) >= PAIR_DEPTH)
			sched_yield();
		post(&pair, &wr);
	}
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < p.wanted; i++)
		assert_int_equal(p.times[i], 1);
	before = unloaded();
	complete(&pair, &wr);
	assert_int_equal(unloaded(), before + 1);
	free(p.times);
	pair_close(&pair);
}

static void a_completion_raises_its_event(void **state)
{
	struct loopback_pair pair;
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

#define REGIONS 6200 /* more than the target's table can hold */

/* The target refuses the write, and the device writes. The target reports a full table. */
static void writes_to_unrecorded_regions_go_by_the_device(void **state)
{
	static struct ibv_mr *mrs[REGIONS];
	const char *device = getenv("WEIR_TEST_DEVICE");
	struct loopback_pair pair;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	int i;

	(void)state;
	if (!device || strcmp(device, "softnic"))
		skip(); /* where registering takes long */
	open_unloading(&pair);
	for (i = 0; i < REGIONS; i++) {
		mrs[i] = ibv_reg_mr(pair.pd, pair.bytes, 2ul * PAIR_BYTES, RIGHTS);
		assert_non_null(mrs[i]);
	}
	wr = small_write(&pair, &sge);
	wr.wr.rdma.rkey = mrs[REGIONS - 1]->rkey;
	memset(pair.bytes, 0x5a, SMALL);
	complete(&pair, &wr);
	assert_memory_equal(pair.bytes, pair.bytes + PAIR_BYTES, SMALL);
	for (i = 0; i < REGIONS; i++)
		assert_int_equal(ibv_dereg_mr(mrs[i]), 0);
	pair_close(&pair);
}

/* The remaining queue pairs are forgotten, and the next device starts as if the first. */
static void a_device_may_be_closed_before_its_queue_pairs(void **state)
{
	static struct loopback_pair left;
	struct loopback_pair pair;

	(void)state;
	open_unloading(&left);
	assert_int_equal(ibv_close_device(left.context), 0);
	open_unloading(&pair);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(however_a_queue_pair_was_made_its_writes_are_unloaded),
		cmocka_unit_test(a_queue_pair_for_ibv_wr_start_is_the_devices_alone),
		cmocka_unit_test(a_completed_write_is_there_and_completes_once),
		cmocka_unit_test(later_requests_see_unloaded_writes),
		cmocka_unit_test(an_immediate_of_the_programs_own_is_delivered),
		cmocka_unit_test(many_without_a_completion_wait_for_slots),
		cmocka_unit_test(a_full_queue_takes_no_write_halfway),
		cmocka_unit_test(threads_may_poll_one_queue),
		cmocka_unit_test(a_completion_raises_its_event),
		cmocka_unit_test(writes_to_unrecorded_regions_go_by_the_device),
		cmocka_unit_test(a_device_may_be_closed_before_its_queue_pairs),
	};

	return cmocka_run_group_tests_name("unload program", tests, NULL, NULL);
}
