// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <arpa/inet.h>

#include "datagram_pair.h"

void endpoint_open_unreliable(struct endpoint *e, const struct endpoint *base,
			      enum ibv_qp_type type, uint32_t flags)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = type,
		.cap = { QUEUE_DEPTH, QUEUE_DEPTH, SGES_MAX, SGES_MAX, INLINE_MAX },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = base->pd,
		.create_flags = flags,
	};

	*e = *base;
	e->shares = true;
	e->channel = ibv_create_comp_channel(e->ctx);
	e->cq = ibv_create_cq(e->ctx, 4 * QUEUE_DEPTH, e, e->channel, 0);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp_ex(e->ctx, &init);
	assert_non_null(e->qp);
	e->remote.rkey = e->mr->rkey;
	e->remote.addr = (uintptr_t)e->buf;
}

void to_init_at(struct endpoint *e, uint8_t port)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = port,
		.qkey = QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	int mask = e->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;

	assert_int_equal(ibv_modify_qp(e->qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | mask),
			 0);
}

void to_init(struct endpoint *e)
{
	to_init_at(e, 1);
}

void to_ready(struct endpoint *e, uint32_t dest_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = dest_qpn,
		.ah_attr = way_to_self(e->ctx),
	};
	int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	assert_int_equal(ibv_modify_qp(e->qp, &attr,
				       IBV_QP_STATE |
					       (e->qp->qp_type == IBV_QPT_UD ? 0 : connected)),
			 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

struct ibv_ah *make_ah(struct endpoint *e, const char *address)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.sl = 3,
		.grh = { .sgid_index = own_gid_index(e->ctx), .hop_limit = 9 },
	};

	inet_pton(AF_INET6, address, &attr.grh.dgid);
	return ibv_create_ah(e->pd, &attr);
}

void two_up(struct datagram_pair *t, enum ibv_qp_type type)
{
	end_open(&t->base, ALL_ACCESS);
	endpoint_open_unreliable(&t->a, &t->base, type, 0);
	endpoint_open_unreliable(&t->b, &t->base, type, 0);
	to_init(&t->a);
	to_init(&t->b);
	to_ready(&t->a, t->b.qp->qp_num);
	to_ready(&t->b, t->a.qp->qp_num);
	t->ah = make_ah(&t->a, own_address());
	assert_non_null(t->ah);
}

void two_down(struct datagram_pair *t)
{
	ibv_destroy_ah(t->ah);
	end_close(&t->a);
	end_close(&t->b);
	end_close(&t->base);
}

struct test_wr *datagram(struct test_wr *w, struct datagram_pair *t, uint32_t length)
{
	wr_make(w, &t->a, IBV_WR_SEND, 0, length, 0);
	w->wr.wr.ud.ah = t->ah;
	w->wr.wr.ud.remote_qpn = t->b.qp->qp_num;
	w->wr.wr.ud.remote_qkey = QKEY;
	return w;
}

void wait_handled(struct datagram_pair *t)
{
	struct endpoint last;
	struct test_wr w;

	endpoint_open_unreliable(&last, &t->base, IBV_QPT_UD, 0);
	to_init(&last);
	to_ready(&last, 0);
	assert_int_equal(post_recv(&last, 1, BUF_SIZE - GRH - 1, GRH + 1), 0);
	datagram(&w, t, 1)->wr.wr.ud.remote_qpn = last.qp->qp_num;
	assert_int_equal(post(&last, &w), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wait_wc(&last).status, IBV_WC_SUCCESS);
	end_close(&last);
}

void assert_nothing(struct endpoint *e)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
}
