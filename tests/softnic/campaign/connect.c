// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* A worker's queue pairs and receives, from creation to destruction. */
#include <sys/mman.h>

#include "worker.h"

static const enum ibv_qp_type
	types[TRANSPORTS] = { [RC] = IBV_QPT_RC, [UC] = IBV_QPT_UC, [UD] = IBV_QPT_UD };

bool shares_receives(const struct campaign_worker *me, uint32_t source)
{
	return me->srq && me->to[source].transport == RC;
}

static void open_connection(struct campaign_worker *me, uint32_t target)
{
	struct campaign_connection *c = &me->to[target];
	struct ibv_qp_init_attr init = {
		.send_cq = me->cq,
		.recv_cq = me->cq,
		.sq_sig_all = 1,
		.cap = { DEPTH, DEPTH, 1, 1, INLINE_MAX },
	};

	c->transport = transport_between(me->w->seed, me->self, target);
	c->random = (me->w->seed * WORKERS_MAX + me->self) * WORKERS_MAX + target;
	init.qp_type = types[c->transport];
	if (shares_receives(me, target)) {
		init.srq = me->srq;
		init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
	}
	c->qp = ibv_create_qp(me->pd, &init);
	require(c->qp, "no queue pair");
	c->here = me->here + target * HERE_BYTES;
	c->model = calloc(1, ZONE);
	me->w->lanes[me->self][target].qpn = c->qp->qp_num;
	me->w->lanes[me->self][target].num_ops = 8 + random_below(&c->random, OPS_MAX - 7);
}

static void open_memory(struct campaign_worker *me)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct campaign_world *w = me->w;

	me->mr = ibv_reg_mr(me->pd, w->zones[me->self], sizeof(w->zones[0]), access);
	me->here = mmap(NULL, HERE_BYTES * w->workers, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	require(me->here != MAP_FAILED, "no memory");
	me->here_mr = ibv_reg_mr(me->pd, me->here, HERE_BYTES * w->workers, access);
	require(me->mr && me->here_mr, "cannot register");
	w->rkeys[me->self] = me->mr->rkey;
	w->addrs[me->self] = (uintptr_t)w->zones[me->self];
}

void open_all(struct campaign_worker *me)
{
	struct ibv_srq_init_attr of_srq = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	struct ibv_device **list = ibv_get_device_list(NULL);
	uint32_t t;

	require(list && list[0], "no device");
	me->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	require(me->ctx, "cannot open it");
	me->pd = ibv_alloc_pd(me->ctx);
	me->channel = ibv_create_comp_channel(me->ctx);
	me->cq = ibv_create_cq(me->ctx, 2 * DEPTH * WORKERS_MAX, NULL, me->channel, 0);
	require(me->cq, "no completion queue");
	if ((me->w->seed >> me->self) % 2) {
		me->srq = ibv_create_srq(me->pd, &of_srq);
		require(me->srq, "no shared receive queue");
	}
	open_memory(me);
	for (t = 0; t < me->w->workers; t++)
		if (t != me->self)
			open_connection(me, t);
}

/* The buffers of a shared queue lie where a connection to the worker itself would have its own. */
static uint8_t *receive_buffer(const struct campaign_worker *me, uint32_t source, uint32_t i)
{
	uint32_t whose = shares_receives(me, source) ? me->self : source;

	return me->here + whose * HERE_BYTES + (size_t)OPS_MAX * ZONE + i * RECEIVE_BYTES;
}

static uint32_t *posted_receives(struct campaign_worker *me, uint32_t source)
{
	return shares_receives(me, source) ? &me->shared_receives : &me->to[source].receives;
}

void post_receive(struct campaign_worker *me, uint32_t source, uint32_t i)
{
	struct ibv_sge sge = { (uintptr_t)receive_buffer(me, source, i), RECEIVE_BYTES,
			       me->here_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = IS_RECEIVE | i, .sg_list = &sge, .num_sge = 1 }, *bad;
	int rc;

	if (shares_receives(me, source))
		rc = ibv_post_srq_recv(me->srq, &wr, &bad);
	else
		rc = ibv_post_recv(me->to[source].qp, &wr, &bad);
	require(!rc, "cannot post a receive");
	*posted_receives(me, source) |= 1u << i;
}

const uint8_t *take_receive(struct campaign_worker *me, uint32_t source, uint32_t i)
{
	uint32_t *posted = posted_receives(me, source);

	require(i < DEPTH && (*posted & 1u << i), "from %u: receive %u ended twice", source, i);
	*posted &= ~(1u << i);
	return receive_buffer(me, source, i);
}

static void post_receives(struct campaign_worker *me, uint32_t source)
{
	uint32_t i;

	if (shares_receives(me, source) && me->shared_receives)
		return;
	for (i = 0; i < DEPTH; i++)
		post_receive(me, source, i);
}

static int to_init(struct campaign_connection *c)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   (c->transport == RC ?
					    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC :
					    0),
	};

	return ibv_modify_qp(c->qp, &a,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     (c->transport == UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static int to_rts(struct campaign_connection *c, uint32_t qpn, uint8_t rnr_retry)
{
	static const int to_rtr[TRANSPORTS] = {
		[RC] = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC,
		[UC] = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	};
	static const int and_on[TRANSPORTS] = {
		[RC] = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC,
	};
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr.port_num = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = rnr_retry,
	};
	int rc = ibv_modify_qp(c->qp, &a, IBV_QP_STATE | to_rtr[c->transport]);

	a.qp_state = IBV_QPS_RTS;
	return rc ? rc :
		    ibv_modify_qp(c->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | and_on[c->transport]);
}

static void connect_one(struct campaign_worker *me, uint32_t target)
{
	struct ibv_ah_attr path = { .port_num = 1, .is_global = 1 };
	struct campaign_connection *c = &me->to[target];
	uint8_t rnr_retry = random_below(&c->random, 4) ? 7 : 6;
	int rc = to_init(c);

	if (!rc) {
		post_receives(me, target);
		rc = to_rts(c, me->w->lanes[target][me->self].qpn, rnr_retry);
	}
	require(!rc, "cannot connect: %d", rc);
	if (c->transport == UD) {
		require(!ibv_query_gid(me->pd->context, 1, 0, &path.grh.dgid), "no address");
		c->ah = ibv_create_ah(me->pd, &path);
		require(c->ah, "no address handle");
	}
}

void connect_all(struct campaign_worker *me)
{
	uint32_t t;

	for (t = 0; t < me->w->workers; t++)
		if (t != me->self)
			connect_one(me, t);
}

static void close_connection(struct campaign_worker *me, struct campaign_connection *c)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	uint64_t deadline_ms = now_ms() + PATIENCE_MS;

	ibv_modify_qp(c->qp, &error, IBV_QP_STATE); /* fails if the device is gone */
	while (c->receives) {
		require(now_ms() < deadline_ms, "receives that are not flushed");
		take_completions(me);
	}
	require(!ibv_destroy_qp(c->qp), "cannot destroy a queue pair");
	c->qp = NULL;
	require(!c->ah || !ibv_destroy_ah(c->ah), "cannot destroy an address handle");
	free(c->model);
}

void close_all(struct campaign_worker *me)
{
	uint32_t t;

	for (t = 0; t < me->w->workers; t++)
		if (t != me->self)
			close_connection(me, &me->to[t]);
	require(!me->srq || !ibv_destroy_srq(me->srq), "cannot destroy the shared receive queue");
	require(!ibv_dereg_mr(me->mr) && !ibv_dereg_mr(me->here_mr), "cannot deregister");
	require(!ibv_destroy_cq(me->cq) && !ibv_destroy_comp_channel(me->channel) &&
			!ibv_dealloc_pd(me->pd) && !ibv_close_device(me->ctx),
		"cannot close");
}
