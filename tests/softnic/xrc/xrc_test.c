// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic verbs xrc; devices: softnic; timeout: 120 */
/*
 * XRC: a sender, a receiving queue pair and SRQs. They are in the test's process, and then in
 * several processes that share a domain by a file.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "softnic/qp/piece.h"
#include "softnic/shm/client.h"
#include "softnic/verbs/nic.h"
#include "tests/support/verbs_puppet.h"

enum { ROOM = 4096, DEPTH = 8 };

/* A program's objects. Each end of a test uses a part of them. */
struct xrc_host {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_xrcd *xrcd;
	struct ibv_qp *sender, *receiver;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	uint8_t buf[ROOM];
};

static struct ibv_xrcd *open_domain(struct ibv_context *ctx, int fd)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = O_CREAT,
	};

	return ibv_open_xrcd(ctx, &init);
}

static struct ibv_srq *make_srq_of(const struct xrc_host *h, struct ibv_xrcd *xrcd,
				   uint32_t max_sge)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = DEPTH, .max_sge = max_sge },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = h->pd,
		.xrcd = xrcd,
		.cq = h->cq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(h->ctx, &init);

	assert_non_null(srq);
	return srq;
}

static struct ibv_srq *make_srq(const struct xrc_host *h, struct ibv_xrcd *xrcd)
{
	return make_srq_of(h, xrcd, 1);
}

static struct xrc_host *host_open(int fd)
{
	struct xrc_host *h = calloc(1, sizeof(*h));
	struct ibv_device **list = ibv_get_device_list(NULL);

	h->ctx = ibv_open_device(list[0]);
	assert_non_null(h->ctx);
	ibv_free_device_list(list);
	h->pd = ibv_alloc_pd(h->ctx);
	h->cq = ibv_create_cq(h->ctx, 4 * DEPTH, NULL, NULL, 0);
	h->mr = ibv_reg_mr(h->pd, h->buf, ROOM, ALL_ACCESS);
	h->xrcd = open_domain(h->ctx, fd);
	assert_non_null(h->xrcd);
	h->srq = make_srq(h, h->xrcd);
	return h;
}

static void destroy_ends(struct xrc_host *h)
{
	if (h->sender)
		assert_int_equal(ibv_destroy_qp(h->sender), 0);
	if (h->receiver)
		assert_int_equal(ibv_destroy_qp(h->receiver), 0);
}

static void host_close(struct xrc_host *h)
{
	destroy_ends(h);
	if (h->srq)
		assert_int_equal(ibv_destroy_srq(h->srq), 0);
	assert_int_equal(ibv_close_xrcd(h->xrcd), 0);
	assert_int_equal(ibv_dereg_mr(h->mr), 0);
	assert_int_equal(ibv_destroy_cq(h->cq), 0);
	assert_int_equal(ibv_dealloc_pd(h->pd), 0);
	assert_int_equal(ibv_close_device(h->ctx), 0);
	free(h);
}

static void make_ends(struct xrc_host *h)
{
	struct ibv_qp_init_attr_ex send = {
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = h->cq,
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = h->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_IMM,
	};
	struct ibv_qp_init_attr_ex receive = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = h->xrcd,
	};

	h->sender = ibv_create_qp_ex(h->ctx, &send);
	h->receiver = ibv_create_qp_ex(h->ctx, &receive);
	assert_non_null(h->sender);
	assert_non_null(h->receiver);
}

/* Returns the error of the step to RTR. */
static int connect_to(struct ibv_qp *qp, uint32_t dest, int access)
{
	const bool sends = qp->qp_type == IBV_QPT_XRC_SEND;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = access,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.ah_attr = way_to_self(qp->context),
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.timeout = 14,
		.retry_cnt = 7,
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int rc;

	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	attr.qp_state = IBV_QPS_RTR;
	rc = ibv_modify_qp(qp, &attr,
			   mask | (sends ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	if (rc)
		return rc;
	attr.qp_state = IBV_QPS_RTS;
	mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN;
	if (sends)
		mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
	return 0;
}

static void connect_with(struct xrc_host *a, struct xrc_host *b, int access)
{
	make_ends(a);
	make_ends(b);
	assert_int_equal(connect_to(b->receiver, a->sender->qp_num, access), 0);
	assert_int_equal(connect_to(a->sender, b->receiver->qp_num, 0), 0);
}

/* Two programs, of which a sends to b's queue pair. */
struct two {
	struct xrc_host *a, *b;
};

static int setup_with(void **state, int access)
{
	FILE *file = tmpfile();
	struct two *t = calloc(1, sizeof(*t));

	t->a = host_open(fileno(file));
	t->b = host_open(fileno(file));
	fclose(file);
	connect_with(t->a, t->b, access);
	*state = t;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, ALL_ACCESS);
}

static int setup_without_rights(void **state)
{
	return setup_with(state, 0);
}

static int teardown(void **state)
{
	struct two *t = *state;

	host_close(t->a);
	host_close(t->b);
	free(t);
	return 0;
}

static uint32_t number_of(struct ibv_srq *srq)
{
	uint32_t number = 0;

	assert_int_equal(ibv_get_srq_num(srq, &number), 0);
	assert_int_not_equal(number, 0);
	return number;
}

static struct ibv_wc wait_on(struct ibv_cq *cq)
{
	uint64_t until_ms = now_ms() + PATIENCE_MS;
	struct ibv_wc wc;

	while (!ibv_poll_cq(cq, 1, &wc)) {
		assert_true(now_ms() < until_ms);
		usleep(100);
	}
	return wc;
}

static void post_receive(struct xrc_host *h, struct ibv_srq *srq, uint64_t wr_id, uint32_t at)
{
	struct ibv_sge sge = { (uintptr_t)h->buf + at, 64, h->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

/* One work request of a, about 8 bytes of its buffer; the status of its completion. */
static enum ibv_wc_status run(struct xrc_host *a, enum ibv_wr_opcode op, uint32_t srqn,
			      uint64_t there, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)a->buf, 8, a->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { there, rkey },
		.qp_type.xrc.remote_srqn = srqn,
	};

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = there;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	}
	assert_int_equal(ibv_post_send(a->sender, &wr, &bad), 0);
	return wait_on(a->cq).status;
}

static void test_a_message_goes_to_the_srq_that_it_names(void **state)
{
	struct two *t = *state;
	struct xrc_host *a = t->a, *b = t->b;
	struct ibv_srq *other = make_srq(b, b->xrcd);
	struct ibv_wc wc;

	post_receive(b, b->srq, 1, 0);
	post_receive(b, other, 2, 64);
	memcpy(a->buf, "to other", 8);
	assert_int_equal(run(a, IBV_WR_SEND, number_of(other), 0, 0), IBV_WC_SUCCESS);
	wc = wait_on(b->cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.byte_len, 8);
	assert_int_equal(wc.qp_num, b->receiver->qp_num);
	assert_memory_equal(b->buf + 64, "to other", 8);
	memcpy(a->buf, "to first", 8);
	assert_int_equal(run(a, IBV_WR_SEND, number_of(b->srq), 0, 0), IBV_WC_SUCCESS);
	assert_int_equal(wait_on(b->cq).wr_id, 1);
	assert_memory_equal(b->buf, "to first", 8);
	assert_int_equal(ibv_destroy_srq(other), 0);
}

static void test_the_extended_calls_name_an_srq_too(void **state)
{
	struct two *t = *state;
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(t->a->sender);
	struct ibv_wc wc;

	post_receive(t->b, t->b->srq, 3, 0);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(ex, 77);
	ibv_wr_set_xrc_srqn(ex, number_of(t->b->srq));
	ibv_wr_set_sge(ex, t->a->mr->lkey, (uintptr_t)t->a->buf, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(wait_on(t->a->cq).status, IBV_WC_SUCCESS);
	wc = wait_on(t->b->cq);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(wc.imm_data, 77);
}

static void test_memory_is_that_of_the_srqs_domain(void **state)
{
	struct two *t = *state;
	struct xrc_host *a = t->a, *b = t->b;
	uint32_t srqn = number_of(b->srq);
	uint64_t there = (uintptr_t)b->buf, *word = (uint64_t *)b->buf;

	memcpy(a->buf, "written!", 8);
	assert_int_equal(run(a, IBV_WR_RDMA_WRITE, srqn, there, b->mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(b->buf, "written!", 8);
	memcpy(b->buf, "read it.", 8);
	assert_int_equal(run(a, IBV_WR_RDMA_READ, srqn, there, b->mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(a->buf, "read it.", 8);
	*word = 41;
	assert_int_equal(run(a, IBV_WR_ATOMIC_FETCH_AND_ADD, srqn, there, b->mr->rkey),
			 IBV_WC_SUCCESS);
	assert_int_equal(*word, 42);
	/* The key of a's own region is of another domain. */
	assert_int_equal(run(a, IBV_WR_RDMA_WRITE, srqn, (uintptr_t)a->buf, a->mr->rkey),
			 IBV_WC_REM_ACCESS_ERR);
}

static void test_rights_are_those_of_the_receiving_queue_pair(void **state)
{
	struct two *t = *state;

	assert_int_equal(run(t->a, IBV_WR_RDMA_WRITE, number_of(t->b->srq), (uintptr_t)t->b->buf,
			     t->b->mr->rkey),
			 IBV_WC_REM_INV_REQ_ERR);
}

static void test_an_srq_of_another_domain_is_refused(void **state)
{
	struct two *t = *state;
	struct ibv_xrcd *alone = open_domain(t->b->ctx, -1);
	struct ibv_srq *srq = make_srq(t->b, alone);

	post_receive(t->b, srq, 1, 0);
	assert_int_equal(run(t->a, IBV_WR_SEND, number_of(srq), 0, 0), IBV_WC_REM_INV_RD_REQ_ERR);
	assert_int_equal(ibv_close_xrcd(alone), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(alone), 0);
}

static void test_an_srq_that_is_gone_is_refused(void **state)
{
	struct two *t = *state;
	uint32_t srqn = number_of(t->b->srq);

	post_receive(t->b, t->b->srq, 1, 0);
	assert_int_equal(run(t->a, IBV_WR_SEND, srqn, 0, 0), IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_srq(t->b->srq), 0);
	t->b->srq = NULL;
	assert_int_equal(run(t->a, IBV_WR_SEND, srqn, 0, 0), IBV_WC_REM_INV_RD_REQ_ERR);
}

static void test_a_queue_pair_does_not_answer_for_an_srq(void **state)
{
	struct two *t = *state;

	assert_int_equal(run(t->a, IBV_WR_SEND, t->a->receiver->qp_num, 0, 0),
			 IBV_WC_RETRY_EXC_ERR);
}

static void test_without_a_receive_the_sender_is_told(void **state)
{
	struct two *t = *state;

	assert_int_equal(run(t->a, IBV_WR_SEND, number_of(t->b->srq), 0, 0),
			 IBV_WC_RNR_RETRY_EXC_ERR);
}

/* The second MiB of the message is not there, when its receive is taken already. */
static void test_a_failed_message_leaves_its_receive_to_others(void **state)
{
	struct two *t = *state;
	struct xrc_host *a = t->a, *b = t->b;
	const size_t mib = 1 << 20;
	uint8_t *bytes =
		mmap(NULL, 2 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *from = ibv_reg_mr(a->pd, bytes, 2 * mib, IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *all =
		ibv_reg_mr(b->pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	uint8_t *room = malloc(2 * mib);
	struct ibv_sge to = { (uintptr_t)room, 2 * mib, all->lkey };
	struct ibv_sge sge = { (uintptr_t)bytes, 2 * mib, from->lkey };
	struct ibv_wc nothing;
	struct ibv_recv_wr recv = { .wr_id = 9, .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.qp_type.xrc.remote_srqn = number_of(b->srq),
	};

	assert_int_equal(ibv_post_srq_recv(b->srq, &recv, &bad_recv), 0);
	assert_int_equal(munmap(bytes + mib, mib), 0);
	assert_int_equal(ibv_post_send(a->sender, &wr, &bad), 0);
	assert_int_equal(wait_on(a->cq).status, IBV_WC_LOC_PROT_ERR);
	destroy_ends(a);
	destroy_ends(b);
	connect_with(a, b, ALL_ACCESS);
	assert_int_equal(ibv_poll_cq(b->cq, 1, &nothing), 0); /* offers the receive again */
	assert_int_equal(run(a, IBV_WR_SEND, number_of(b->srq), 0, 0), IBV_WC_SUCCESS);
	assert_int_equal(wait_on(b->cq).wr_id, 9);
	assert_int_equal(ibv_dereg_mr(all), 0);
	assert_int_equal(ibv_dereg_mr(from), 0);
	munmap(bytes, mib);
	free(room);
}

static void test_an_srq_tells_when_few_receives_are_left(void **state)
{
	struct two *t = *state;
	struct ibv_srq_attr limit = { .srq_limit = 1 };
	struct ibv_async_event event;

	post_receive(t->b, t->b->srq, 1, 0);
	assert_int_equal(ibv_modify_srq(t->b->srq, &limit, IBV_SRQ_LIMIT), 0);
	assert_int_equal(run(t->a, IBV_WR_SEND, number_of(t->b->srq), 0, 0), IBV_WC_SUCCESS);
	assert_int_equal(ibv_get_async_event(t->b->ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, t->b->srq);
	ibv_ack_async_event(&event);
	assert_int_equal(wait_on(t->b->cq).status, IBV_WC_SUCCESS);
}

static void test_objects_of_xrc_need_their_domain(void **state)
{
	struct xrc_host *h = ((struct two *)*state)->a;
	struct ibv_qp_init_attr receive = { .qp_type = IBV_QPT_XRC_RECV,
					    .send_cq = h->cq,
					    .recv_cq = h->cq };
	struct ibv_xrcd_init_attr half = { .comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1 };
	struct ibv_srq_init_attr plain_srq = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(h->pd, &plain_srq);
	uint32_t number;

	assert_null(ibv_create_qp(h->pd, &receive));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_open_xrcd(h->ctx, &half));
	assert_int_equal(errno, EINVAL);
	assert_null(open_domain(h->ctx, 1 << 20));
	assert_int_equal(errno, EBADF);
	assert_int_equal(ibv_get_srq_num(srq, &number), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(h->xrcd), EBUSY);
}

/* A program with an SRQ: tells its number, takes one message and ends, or waits to be killed. */
static void serve_srq(int file, int out, bool takes)
{
	struct xrc_host *h = host_open(file);
	uint32_t srqn = number_of(h->srq);

	post_receive(h, h->srq, 1, 0);
	if (write(out, &srqn, sizeof(srqn)) != sizeof(srqn))
		_exit(2);
	if (!takes)
		pause();
	if (wait_on(h->cq).status || memcmp(h->buf, "far away", 8))
		_exit(3);
	host_close(h);
	_exit(0);
}

static pid_t start_srq(int file, uint32_t *srqn, bool takes)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid)
		serve_srq(file, ends[1], takes);
	close(ends[1]);
	assert_int_equal(read(ends[0], srqn, sizeof(*srqn)), sizeof(*srqn));
	close(ends[0]);
	return pid;
}

/* One connection reaches SRQs of three processes. The death of one process hurts no other. */
static void test_processes_share_a_domain_by_a_file(void **state)
{
	FILE *file = tmpfile();
	uint32_t takes, other, dies;
	pid_t first, second, third;
	struct xrc_host *a, *b;
	int status;

	(void)state;
	first = start_srq(fileno(file), &takes, true);
	second = start_srq(fileno(file), &dies, false);
	third = start_srq(fileno(file), &other, true);
	a = host_open(fileno(file));
	b = host_open(fileno(file));
	connect_with(a, b, ALL_ACCESS);
	memcpy(a->buf, "far away", 8);
	assert_int_equal(run(a, IBV_WR_SEND, takes, 0, 0), IBV_WC_SUCCESS);
	assert_int_equal(waitpid(first, &status, 0), first);
	assert_int_equal(status, 0);
	assert_int_equal(run(a, IBV_WR_SEND, dies, 0, 0), IBV_WC_SUCCESS);
	kill(second, SIGKILL);
	assert_int_equal(waitpid(second, &status, 0), second);
	assert_int_equal(run(a, IBV_WR_SEND, other, 0, 0), IBV_WC_SUCCESS);
	assert_int_equal(waitpid(third, &status, 0), third);
	assert_int_equal(status, 0);
	assert_int_not_equal(run(a, IBV_WR_SEND, dies, 0, 0), IBV_WC_SUCCESS);
	host_close(a);
	host_close(b);
	fclose(file);
}

/* The tray holds bytes of @fill. Returns whether the owner answers. */
static bool offer_piece(const struct shm_client *g, int answers, struct qp *end,
			const struct rq_receive *r, const struct shm_msg *m, uint8_t fill)
{
	struct shm_msg answer;

	memset(end->segment.trays.at + (size_t)r->index * TRAY_BYTES, fill, TRAY_BYTES);
	pthread_mutex_lock(&nic.lock);
	piece_take(g, end, m);
	pthread_mutex_unlock(&nic.lock);
	if (shm_msg_receive(answers, &answer, NULL))
		return false;
	assert_int_equal(answer.type, MSG_TRAY_EMPTY);
	assert_int_equal(answer.value, m->value);
	assert_int_equal(answer.addr, 0);
	return true;
}

static void test_pieces_are_taken_once_and_in_order(void **state)
{
	enum { TAKER = 77, BYTES = 3 * TRAY_BYTES };
	static const struct {
		const char *name;
		uint32_t offset, from, other_index, other_position;
		uint8_t fill;
		bool is_answered;
		uint8_t first, second; /* bytes of the buffer afterwards */
	} cases[] = {
		{ "the second before the first", TRAY_BYTES, TAKER, 0, 0, 1, false, 0, 0 },
		{ "of another sender", 0, TAKER + 1, 0, 0, 1, false, 0, 0 },
		{ "for no receive", 0, TAKER, 1 << 20, 0, 1, false, 0, 0 },
		{ "for an earlier receive", 0, TAKER, 0, 1, 1, false, 0, 0 },
		{ "the first", 0, TAKER, 0, 0, 2, true, 2, 0 },
		{ "the first again", 0, TAKER, 0, 0, 3, true, 2, 0 },
		{ "the second", TRAY_BYTES, TAKER, 0, 0, 4, true, 2, 4 },
		{ "the first after the second", 0, TAKER, 0, 0, 5, false, 2, 4 },
	};
	struct xrc_host *h = ((struct two *)*state)->b;
	struct qp *end = nic.qps[number_of(h->srq) % NIC_QPS];
	static uint8_t bytes[BYTES];
	struct ibv_mr *mr = ibv_reg_mr(h->pd, bytes, BYTES, ALL_ACCESS);
	struct ibv_sge sge = { (uintptr_t)bytes, BYTES, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct rq_receive r;
	struct shm_msg m;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(ibv_post_srq_recv(h->srq, &wr, &bad), 0);
	assert_int_equal(recv_queue_take(end->rq, TAKER, &r), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		m = (struct shm_msg){
			.type = MSG_TRAY_FULL,
			.qpn = end->ibv.qp_num,
			.from = cases[i].from,
			.value = cases[i].offset,
			.addr = r.index + cases[i].other_index,
			.channel = r.position - cases[i].other_position,
		};
		print_message("# %s\n", cases[i].name);
		assert_int_equal(offer_piece(&(struct shm_client){ .fd = ends[0] }, ends[1], end,
					     &r, &m, cases[i].fill),
				 cases[i].is_answered);
		assert_int_equal(bytes[0], cases[i].first);
		assert_int_equal(bytes[TRAY_BYTES], cases[i].second);
		assert_int_equal(bytes[2 * TRAY_BYTES], 0);
	}
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

enum { LONG_BYTES = 100001, PART_BYTES = 30001 };

static uint8_t long_byte(size_t at)
{
	return (uint8_t)(at * 7 + at / 251);
}

/* The kernel lets nobody without CAP_SYS_PTRACE read this process. */
static void serve_long(int file, int out)
{
	static uint8_t bytes[LONG_BYTES + 1];
	struct xrc_host *h;
	struct ibv_mr *mr;
	uint32_t srqn;
	size_t i;

	if (prctl(PR_SET_DUMPABLE, 0))
		_exit(2);
	h = host_open(file);
	ibv_destroy_srq(h->srq);
	h->srq = make_srq_of(h, h->xrcd, 2);
	srqn = number_of(h->srq);
	mr = ibv_reg_mr(h->pd, bytes, sizeof(bytes), ALL_ACCESS);
	for (i = 0; i < 2; i++) {
		struct ibv_sge sges[] = {
			{ (uintptr_t)bytes, PART_BYTES, mr->lkey },
			{ (uintptr_t)bytes + PART_BYTES, LONG_BYTES - PART_BYTES, mr->lkey },
		};
		struct ibv_recv_wr wr = { .sg_list = sges, .num_sge = 2 }, *bad;

		if (ibv_post_srq_recv(h->srq, &wr, &bad))
			_exit(3);
	}
	if (write(out, &srqn, sizeof(srqn)) != sizeof(srqn))
		_exit(4);
	for (i = 0; i < 2; i++) {
		struct ibv_wc wc = wait_on(h->cq);

		if (wc.status || wc.byte_len != LONG_BYTES)
			_exit(5);
	}
	for (i = 0; i < LONG_BYTES; i++)
		if (bytes[i] != long_byte(i))
			_exit(6);
	_exit(bytes[LONG_BYTES]);
}

static void send_long(int file, uint32_t srqn)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	uint8_t *bytes = malloc(LONG_BYTES);
	struct xrc_host *a, *b;
	struct ibv_mr *mr;
	size_t i;

	if (syscall(SYS_capset, &head, none) || prctl(PR_SET_DUMPABLE, 1))
		_exit(2);
	a = host_open(file);
	b = host_open(file);
	connect_with(a, b, ALL_ACCESS);
	mr = ibv_reg_mr(a->pd, bytes, LONG_BYTES, 0);
	for (i = 0; i < LONG_BYTES; i++)
		bytes[i] = long_byte(i);
	for (i = 0; i < 2; i++) {
		struct ibv_sge sge = { (uintptr_t)bytes, LONG_BYTES, mr->lkey };
		struct ibv_send_wr *bad, wr = {
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1,
			.qp_type.xrc.remote_srqn = srqn,
		};

		if (ibv_post_send(a->sender, &wr, &bad) || wait_on(a->cq).status)
			_exit(3);
	}
	_exit(0);
}

static void test_a_long_message_comes_in_pieces_if_memory_is_out_of_reach(void **state)
{
	FILE *file = tmpfile();
	pid_t receiver, sender;
	uint32_t srqn;
	int ends[2], status;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	receiver = fork();
	if (!receiver)
		serve_long(fileno(file), ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], &srqn, sizeof(srqn)), sizeof(srqn));
	close(ends[0]);
	sender = fork();
	if (!sender)
		send_long(fileno(file), srqn);
	assert_int_equal(waitpid(sender, &status, 0), sender);
	if (status)
		kill(receiver, SIGKILL);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(receiver, &status, 0), receiver);
	assert_int_equal(status, 0);
	fclose(file);
}

static struct ibv_qp *open_qp(const struct xrc_host *h, uint32_t number, uint32_t mask)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = mask,
		.qp_num = number,
		.xrcd = h->xrcd,
		.qp_context = h->ctx,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	errno = 0;
	return ibv_open_qp(h->ctx, &attr);
}

enum { OPEN = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE };

/* The last handle ends the queue pair, whoever has created it. */
static void test_a_queue_pair_lives_until_its_last_handle_is_closed(void **state)
{
	struct two *t = *state;
	struct xrc_host *a = t->a, *b = t->b;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp_init_attr init;
	struct ibv_qp *first = open_qp(b, b->receiver->qp_num, OPEN);
	struct ibv_qp *second = open_qp(a, b->receiver->qp_num, OPEN | IBV_QP_OPEN_ATTR_CONTEXT);
	uint32_t number = b->receiver->qp_num;

	assert_non_null(first);
	assert_non_null(second);
	assert_ptr_not_equal(first, b->receiver);
	assert_int_equal(first->qp_num, number);
	assert_null(first->qp_context);
	assert_ptr_equal(second->context, a->ctx);
	assert_ptr_equal(second->qp_context, a->ctx);
	assert_int_equal(ibv_destroy_qp(b->receiver), 0);
	b->receiver = NULL;
	assert_null(open_qp(b, number, OPEN)); /* closed by its creator */
	assert_int_equal(ibv_destroy_qp(first), 0);
	assert_int_equal(ibv_close_xrcd(b->xrcd), EBUSY);

	post_receive(b, b->srq, 1, 0);
	memcpy(a->buf, "by handle", 8);
	assert_int_equal(run(a, IBV_WR_SEND, number_of(b->srq), 0, 0), IBV_WC_SUCCESS);
	assert_int_equal(wait_on(b->cq).qp_num, number);
	assert_int_equal(ibv_query_qp(second, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	attr.qp_state = IBV_QPS_ERR;
	assert_int_equal(ibv_modify_qp(second, &attr, IBV_QP_STATE), 0);
	assert_int_equal(second->state, IBV_QPS_ERR);
	assert_int_equal(ibv_query_qp(second, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	assert_int_equal(ibv_destroy_qp(second), 0);
}

/* Another thread's call while the test's thread ends a queue pair. */
static _Thread_local bool is_race_due;
static struct {
	struct xrc_host *host;
	uint32_t number;
	struct ibv_qp *found;
} race;

int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	int rc = __real_pthread_mutex_unlock(lock);

	if (is_race_due && lock == &nic.lock) {
		is_race_due = false;
		race.found = open_qp(race.host, race.number, OPEN);
	}
	return rc;
}

/* When softnic's lock is free for the first time, the call has only begun. */
static void test_a_queue_pair_that_is_being_freed_cannot_be_opened(void **state)
{
	struct two *t = *state;

	race.host = t->b;
	race.number = t->b->receiver->qp_num;
	is_race_due = true;
	assert_int_equal(ibv_destroy_qp(t->b->receiver), 0);
	assert_false(is_race_due);
	assert_null(race.found);
	t->b->receiver = NULL;
}

static void test_only_a_receiving_queue_pair_of_the_domain_is_opened(void **state)
{
	struct two *t = *state;
	struct xrc_host *b = t->b, *other = host_open(-1);
	const uint32_t number = b->receiver->qp_num, another_process = number ^ 1u << 20;
	struct ibv_qp *opened;

	assert_null(open_qp(other, number, OPEN));
	assert_int_equal(errno, EINVAL);
	assert_null(open_qp(b, t->a->sender->qp_num, OPEN));
	assert_int_equal(errno, EINVAL);
	assert_null(open_qp(b, number, OPEN & ~IBV_QP_OPEN_ATTR_TYPE));
	assert_int_equal(errno, EINVAL);
	assert_null(open_qp(b, another_process, OPEN));
	assert_int_equal(errno, EOPNOTSUPP);
	opened = open_qp(b, number, OPEN);
	assert_non_null(opened);
	assert_int_equal(ibv_destroy_qp(opened), 0);
	post_receive(b, b->srq, 1, 0);
	assert_int_equal(run(t->a, IBV_WR_SEND, number_of(b->srq), 0, 0), IBV_WC_SUCCESS);
	host_close(other);
}

static void test_another_host_is_refused(void **state)
{
	struct xrc_host *h = host_open(-1);

	(void)state;
	make_ends(h);
	assert_int_equal(connect_to(h->sender, h->receiver->qp_num, 0), EOPNOTSUPP);
	assert_int_equal(connect_to(h->receiver, h->sender->qp_num, 0), EOPNOTSUPP);
	host_close(h);
}

#define XRC(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static int tests(void)
{
	static const struct CMUnitTest near[] = {
		/* First those that fork: later, this process has an engine's thread. */
		cmocka_unit_test(
			test_a_long_message_comes_in_pieces_if_memory_is_out_of_reach),
		cmocka_unit_test(test_processes_share_a_domain_by_a_file),
		XRC(test_pieces_are_taken_once_and_in_order),
		XRC(test_a_message_goes_to_the_srq_that_it_names),
		XRC(test_the_extended_calls_name_an_srq_too),
		XRC(test_memory_is_that_of_the_srqs_domain),
		cmocka_unit_test_setup_teardown(test_rights_are_those_of_the_receiving_queue_pair,
						setup_without_rights, teardown),
		XRC(test_an_srq_of_another_domain_is_refused),
		XRC(test_an_srq_that_is_gone_is_refused),
		XRC(test_a_queue_pair_does_not_answer_for_an_srq),
		XRC(test_without_a_receive_the_sender_is_told),
		XRC(test_a_failed_message_leaves_its_receive_to_others),
		XRC(test_an_srq_tells_when_few_receives_are_left),
		XRC(test_objects_of_xrc_need_their_domain),
		XRC(test_a_queue_pair_lives_until_its_last_handle_is_closed),
		XRC(test_a_queue_pair_that_is_being_freed_cannot_be_opened),
		XRC(test_only_a_receiving_queue_pair_of_the_domain_is_opened),
	};
	static const struct CMUnitTest far[] = { cmocka_unit_test(test_another_host_is_refused) };

	return over_wire() ? cmocka_run_group_tests(far, NULL, NULL) :
			     cmocka_run_group_tests(near, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
