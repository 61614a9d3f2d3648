// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A worker posts random operations along its lanes and holds each completion against what
 * it knows: that it is of an operation under way, the next one of its queue pair, with a
 * status that the faults can cause, and that what was read is what had been written.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#include "campaign.h"

enum { DEPTH = 16, WCS_MAX = 8 };

/* In the wr_id of receives, above the buffer's index. */
#define IS_RECEIVE (1ull << 32)

struct connection {
	struct ibv_qp *qp;
	uint8_t *here;			/* of ZONE bytes for each operation, then the receives */
	uint8_t *model;			/* what we have written over there, in order posted */
	uint8_t *expected[OPS_MAX];	/* what a read must find */
	uint64_t adds;			/* posted so far */
	uint32_t num_posted, num_ended, last_received;
	uint32_t receives;		/* a bit for each buffer that is posted */
	bool failed;
};

struct worker {
	struct world *w;
	uint32_t self;
	uint64_t random;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr, *here_mr;
	uint8_t *here;
	struct connection to[WORKERS_MAX];
	bool sleeps;			/* waits for events, else looks again and again */
};

#define HERE_BYTES ((size_t)OPS_MAX * ZONE + DEPTH * MESSAGE_MAX)

#define require(condition, ...)                                                                    \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "worker %u: ", me->self);                                  \
			fprintf(stderr, __VA_ARGS__);                                              \
			fputc('\n', stderr);                                                       \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

static void open_connection(struct worker *me, uint32_t target)
{
	struct connection *c = &me->to[target];
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = me->cq,
		.recv_cq = me->cq,
		.sq_sig_all = 1,
		.cap = { DEPTH, DEPTH, 1, 1, 0 },
	};

	c->qp = ibv_create_qp(me->pd, &init);
	require(c->qp, "no queue pair");
	c->here = me->here + target * HERE_BYTES;
	c->model = calloc(1, ZONE);
	me->w->lanes[me->self][target].qpn = c->qp->qp_num;
	me->w->lanes[me->self][target].num_ops = 8 + random_below(&me->random, OPS_MAX - 7);
}

static void open_all(struct worker *me)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct world *w = me->w;
	uint32_t t;

	require(list && list[0], "no device");
	me->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	require(me->ctx, "cannot open it");
	me->pd = ibv_alloc_pd(me->ctx);
	me->channel = ibv_create_comp_channel(me->ctx);
	me->cq = ibv_create_cq(me->ctx, 2 * DEPTH * WORKERS_MAX, NULL, me->channel, 0);
	require(me->cq, "no completion queue");
	me->mr = ibv_reg_mr(me->pd, w->zones[me->self], sizeof(w->zones[0]), access);
	me->here = mmap(NULL, HERE_BYTES * w->workers, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	require(me->here != MAP_FAILED, "no memory");
	me->here_mr = ibv_reg_mr(me->pd, me->here, HERE_BYTES * w->workers, access);
	require(me->mr && me->here_mr, "cannot register");
	w->rkeys[me->self] = me->mr->rkey;
	w->addrs[me->self] = (uintptr_t)w->zones[me->self];
	for (t = 0; t < w->workers; t++)
		if (t != me->self)
			open_connection(me, t);
}

static uint8_t *receive_buffer(const struct connection *c, uint32_t i)
{
	return c->here + (size_t)OPS_MAX * ZONE + i * MESSAGE_MAX;
}

static void post_receive(struct worker *me, struct connection *c, uint32_t i)
{
	struct ibv_sge sge = { (uintptr_t)receive_buffer(c, i), MESSAGE_MAX, me->here_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = IS_RECEIVE | i, .sg_list = &sge, .num_sge = 1 }, *bad;

	require(!ibv_post_recv(c->qp, &wr, &bad), "cannot post a receive");
	c->receives |= 1u << i;
}

static void connect_one(struct worker *me, uint32_t target)
{
	struct connection *c = &me->to[target];
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = me->w->lanes[target][me->self].qpn,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr.port_num = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = random_below(&me->random, 4) ? 7 : 6,
	};
	uint32_t i;
	int err;

	err = ibv_modify_qp(c->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_ACCESS_FLAGS);
	for (i = 0; !err && i < DEPTH; i++)
		post_receive(me, c, i);
	a.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ibv_modify_qp(c->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER |
				    IBV_QP_MAX_DEST_RD_ATOMIC);
	a.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ibv_modify_qp(c->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	require(!err, "cannot connect: %d", err);
}

static void connect_all(struct worker *me)
{
	uint32_t t;

	for (t = 0; t < me->w->workers; t++)
		if (t != me->self)
			connect_one(me, t);
}

/* What to do next along a lane; the small is more frequent. */
static void think_of(struct worker *me, struct op *op)
{
	uint32_t most = random_below(&me->random, 8) ? 2048 : ZONE - COUNTER_BYTES;

	op->kind = random_below(&me->random, KINDS);
	op->fill = random_next(&me->random);
	op->length = 1 + random_below(&me->random, most);
	if (op->kind == KIND_SEND && op->length > MESSAGE_MAX)
		op->length = MESSAGE_MAX;
	if (op->kind == KIND_SEND && op->length < sizeof(uint32_t))
		op->length = sizeof(uint32_t);
	op->offset = COUNTER_BYTES + random_below(&me->random, ZONE - COUNTER_BYTES - op->length + 1);
	if (op->kind == KIND_ADD) {
		op->length = sizeof(uint64_t);
		op->offset = 0;
	}
}

/* Fills what it sends, and keeps the model of what it will leave over there. */
static void prepare(struct connection *c, const struct op *op, uint32_t index, uint8_t *here)
{
	uint32_t k;

	for (k = 0; k < op->length; k++)
		here[k] = op_byte(op, k);
	if (op->kind == KIND_SEND)
		memcpy(here, &index, sizeof(index));
	if (op->kind == KIND_WRITE)
		memcpy(c->model + op->offset, here, op->length);
	c->expected[index] = NULL;
	if (op->kind == KIND_READ) {
		c->expected[index] = malloc(op->length);
		memcpy(c->expected[index], c->model + op->offset, op->length);
	}
	if (op->kind == KIND_ADD) {
		c->expected[index] = malloc(sizeof(c->adds));
		memcpy(c->expected[index], &c->adds, sizeof(c->adds));
		c->adds++;
	}
}

static void post_next(struct worker *me, uint32_t target)
{
	static const enum ibv_wr_opcode opcodes[KINDS] = {
		[KIND_WRITE] = IBV_WR_RDMA_WRITE,
		[KIND_READ] = IBV_WR_RDMA_READ,
		[KIND_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[KIND_SEND] = IBV_WR_SEND,
	};
	struct connection *c = &me->to[target];
	uint32_t index = c->num_posted++;
	struct op *op = &me->w->lanes[me->self][target].ops[index];
	uint8_t *here = c->here + (size_t)index * ZONE;
	struct ibv_sge sge = { (uintptr_t)here, 0, me->here_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = index, .sg_list = &sge, .num_sge = 1 }, *bad;
	uint64_t there = me->w->addrs[target] + (size_t)me->self * ZONE;

	think_of(me, op);
	prepare(c, op, index, here);
	sge.length = op->length;
	wr.opcode = opcodes[op->kind];
	if (op->kind == KIND_ADD) {
		wr.wr.atomic.remote_addr = there;
		wr.wr.atomic.rkey = me->w->rkeys[target];
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = there + op->offset;
		wr.wr.rdma.rkey = me->w->rkeys[target];
	}
	__atomic_store_n(&op->state, OP_POSTED, __ATOMIC_RELEASE);
	require(!ibv_post_send(c->qp, &wr, &bad), "cannot post %u to %u", index, target);
}

static bool is_excusable(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR ||
	       status == IBV_WC_WR_FLUSH_ERR;
}

static void end_op(struct worker *me, uint32_t target, const struct ibv_wc *wc)
{
	struct connection *c = &me->to[target];
	struct op *op = &me->w->lanes[me->self][target].ops[wc->wr_id];

	require(wc->wr_id == c->num_ended && op->state == OP_POSTED,
		"to %u: operation %u ended, %u was next", target, (unsigned int)wc->wr_id,
		c->num_ended);
	c->num_ended++;
	if (wc->status != IBV_WC_SUCCESS) {
		require(is_excusable(wc->status), "to %u: operation %u: status %d", target,
			(unsigned int)wc->wr_id, wc->status);
		require(!c->failed || wc->status == IBV_WC_WR_FLUSH_ERR,
			"to %u: a second failure, status %d", target, wc->status);
		op->state = wc->status == IBV_WC_WR_FLUSH_ERR ? OP_FLUSHED : OP_FAILED;
		c->failed = true;
	} else {
		require(!c->failed, "to %u: success after a failure", target);
		require(!c->expected[wc->wr_id] ||
			!memcmp(c->here + wc->wr_id * ZONE, c->expected[wc->wr_id], op->length),
			"to %u: operation %u found something else", target,
			(unsigned int)wc->wr_id);
		op->state = OP_DONE;
	}
	free(c->expected[wc->wr_id]);
}

static void end_receive(struct worker *me, uint32_t source, const struct ibv_wc *wc)
{
	struct connection *c = &me->to[source];
	uint32_t i = (uint32_t)wc->wr_id, index, k;
	const uint8_t *bytes = receive_buffer(c, i);
	const struct op *op;

	require(i < DEPTH && (c->receives & 1u << i), "from %u: receive %u ended twice", source, i);
	c->receives &= ~(1u << i);
	if (wc->status != IBV_WC_SUCCESS) {
		require(wc->status == IBV_WC_WR_FLUSH_ERR, "from %u: receive: status %d", source,
			wc->status);
		return;
	}
	memcpy(&index, bytes, sizeof(index));
	require(index < OPS_MAX && index >= c->last_received, "from %u: message %u after %u",
		source, index, c->last_received);
	op = &me->w->lanes[source][me->self].ops[index];
	require(op->kind == KIND_SEND && wc->byte_len == op->length, "from %u: %u bytes, not %u",
		source, wc->byte_len, op->length);
	for (k = sizeof(index); k < op->length; k++)
		require(bytes[k] == op_byte(op, k), "from %u: byte %u of message %u", source, k,
			index);
	c->last_received = index + 1;
	me->w->lanes[source][me->self].received++;
	post_receive(me, c, i);
}

static uint32_t whose(struct worker *me, uint32_t qpn)
{
	uint32_t t;

	for (t = 0; t < me->w->workers; t++)
		if (me->to[t].qp && me->to[t].qp->qp_num == qpn)
			return t;
	require(false, "a completion of nobody's");
	return 0;
}

static int take_completions(struct worker *me)
{
	struct ibv_wc wcs[WCS_MAX];
	int i, n = ibv_poll_cq(me->cq, 1 + random_below(&me->random, WCS_MAX), wcs);

	require(n >= 0, "cannot poll");
	for (i = 0; i < n; i++) {
		if (wcs[i].wr_id & IS_RECEIVE)
			end_receive(me, whose(me, wcs[i].qp_num), &wcs[i]);
		else
			end_op(me, whose(me, wcs[i].qp_num), &wcs[i]);
	}
	return n;
}

/* Registering is refused when its limit is reached, and only then. */
static void register_something(struct worker *me)
{
	struct ibv_mr *mr = ibv_reg_mr(me->pd, me->here, 4096, 0);

	if (mr)
		require(!ibv_dereg_mr(mr), "cannot deregister");
	else
		require(errno == ENOMEM || errno == EIO, "cannot register");
}

/* Posts along a lane that has room and is not through. Returns false if there is none. */
static bool post_somewhere(struct worker *me)
{
	uint32_t first = random_below(&me->random, me->w->workers), i;

	for (i = 0; i < me->w->workers; i++) {
		uint32_t t = (first + i) % me->w->workers;
		struct connection *c = &me->to[t];

		if (t == me->self || c->num_posted - c->num_ended == DEPTH ||
		    c->num_posted == me->w->lanes[me->self][t].num_ops)
			continue;
		post_next(me, t);
		return true;
	}
	return false;
}

static bool is_through(const struct worker *me)
{
	uint32_t t;

	for (t = 0; t < me->w->workers; t++)
		if (t != me->self && me->to[t].num_ended < me->w->lanes[me->self][t].num_ops)
			return false;
	return true;
}

/* Until a completion or, on @fd, the judge's word. */
static void sleep_until_event(struct worker *me, int fd)
{
	struct pollfd p[] = { { me->channel->fd, POLLIN, 0 }, { fd, POLLIN, 0 } };
	struct ibv_cq *cq;
	void *context;

	require(!ibv_req_notify_cq(me->cq, 0), "cannot arm");
	if (take_completions(me))
		return;
	require(poll(p, 2, PATIENCE_MS) > 0, "no event, ever");
	if (!p[0].revents)
		return;
	require(!ibv_get_cq_event(me->channel, &cq, &context), "no event");
	ibv_ack_cq_events(cq, 1);
}

static void work(struct worker *me, int fd)
{
	uint64_t deadline_ms = now_ms() + PATIENCE_MS;

	while (!is_through(me)) {
		bool posted = random_below(&me->random, 3) && post_somewhere(me);

		if (!random_below(&me->random, 16))
			register_something(me);
		if (take_completions(me) || posted)
			continue;
		require(now_ms() < deadline_ms, "operations that do not end");
		if (me->sleeps && !post_somewhere(me))
			sleep_until_event(me, fd);
		else
			usleep(20);
	}
}

/* Others may still send. */
static void serve_until_told(struct worker *me, int fd)
{
	struct pollfd told = { .fd = fd, .events = POLLIN };

	while (poll(&told, 1, 0) == 0)
		if (!take_completions(me))
			sleep_until_event(me, fd);
	while (take_completions(me))
		;
}

/* Each receive that is still posted is flushed, once. */
static void close_all(struct worker *me)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	uint64_t deadline_ms = now_ms() + PATIENCE_MS;
	uint32_t t;

	for (t = 0; t < me->w->workers; t++) {
		struct connection *c = &me->to[t];

		if (t == me->self)
			continue;
		ibv_modify_qp(c->qp, &error, IBV_QP_STATE);	/* refused if the device is gone */
		while (c->receives) {
			require(now_ms() < deadline_ms, "receives that are not flushed");
			take_completions(me);
		}
		require(!ibv_destroy_qp(c->qp), "cannot destroy a queue pair");
		c->qp = NULL;
		free(c->model);
	}
	require(!ibv_dereg_mr(me->mr) && !ibv_dereg_mr(me->here_mr), "cannot deregister");
	require(!ibv_destroy_cq(me->cq) && !ibv_destroy_comp_channel(me->channel) &&
		!ibv_dealloc_pd(me->pd) && !ibv_close_device(me->ctx), "cannot close");
}

int worker_play(struct world *w, uint32_t self, int fd)
{
	struct worker *me = calloc(1, sizeof(*me));
	uint8_t phase;

	me->w = w;
	me->self = self;
	me->random = w->seed * WORKERS_MAX + self;
	me->sleeps = random_below(&me->random, 2);
	while (read(fd, &phase, 1) == 1 && phase < PHASES) {
		if (phase == PHASE_OPEN)
			open_all(me);
		else if (phase == PHASE_CONNECT)
			connect_all(me);
		else if (phase == PHASE_WORK)
			work(me, fd);
		else
			close_all(me);
		require(write(fd, &phase, 1) == 1, "the judge left");
		if (phase == PHASE_WORK)
			serve_until_told(me, fd);
		if (phase == PHASE_CLOSE)
			break;
	}
	free(me);
	return phase != PHASE_CLOSE;
}
