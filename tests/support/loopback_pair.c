/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loopback_pair.h"

#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

void pair_open(struct loopback_pair *pair)
{
	const char *kind = getenv("WEIR_TEST_DEVICE");
	struct ibv_device **list = ibv_get_device_list(NULL), **at;

	kind = kind ? kind : "softnic";
	memset(pair, 0, sizeof(*pair));
	assert_non_null(list);
	for (at = list; *at && !pair->context; at++)
		if (!strncmp(ibv_get_device_name(*at), kind, strlen(kind)))
			pair->context = ibv_open_device(*at);
	ibv_free_device_list(list);
	if (!pair->context)
		fail_msg("there is no device '%s'", kind);
}

/* Any device routes a GID with an IPv4 address. */
static uint8_t gid_choose(struct ibv_context *context, union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t i;

	for (i = 0; !ibv_query_gid(context, 1, i, gid); i++)
		if (!memcmp(gid, mapped, sizeof(mapped)))
			return i;
	assert_int_equal(ibv_query_gid(context, 1, 0, gid), 0);
	return 0;
}

uint32_t pair_psn(const struct ibv_qp *qp)
{
	return qp->qp_num * 2654435761u >> 8;
}

static void connect_to(struct loopback_pair *pair, struct ibv_qp *qp, const struct ibv_qp *to)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = ACCESS };
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(pair->context, 1, &port), 0);
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = port.active_mtu,
		.dest_qp_num = to->qp_num,
		.rq_psn = pair_psn(to),
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } },
	};
	attr.ah_attr.grh.sgid_index = gid_choose(pair->context, &attr.ah_attr.grh.dgid);
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC),
			 0);
	/* A retry count of 7 means for ever on Soft-RoCE. */
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .timeout = 18,
				     .retry_cnt = 3,
				     .rnr_retry = 7,
				     .max_rd_atomic = 1,
				     .sq_psn = pair_psn(qp) };
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					       IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

static struct ibv_qp *make_plain(struct loopback_pair *pair, struct ibv_qp_init_attr *init)
{
	return ibv_create_qp(pair->pd, init);
}

bool pair_connect(struct loopback_pair *pair, pair_make_fn *make)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { PAIR_DEPTH, PAIR_DEPTH, 2, 2, 64 },
	};
	int i;

	pair->pd = ibv_alloc_pd(pair->context);
	pair->channel = ibv_create_comp_channel(pair->context);
	if (!pair->cq)
		pair->cq = ibv_create_cq(pair->context, 4 * PAIR_DEPTH, NULL, pair->channel, 0);
	assert_non_null(pair->cq);
	pair->bytes = calloc(2, PAIR_BYTES);
	pair->mr = ibv_reg_mr(pair->pd, pair->bytes, 2ul * PAIR_BYTES, ACCESS);
	assert_non_null(pair->mr);
	init.send_cq = init.recv_cq = pair->cq;
	for (i = 0; i < 2; i++) {
		pair->qp[i] = (make ? make : make_plain)(pair, &init);
		if (!pair->qp[i])
			return false;
	}
	connect_to(pair, pair->qp[0], pair->qp[1]);
	connect_to(pair, pair->qp[1], pair->qp[0]);
	return true;
}

void pair_begin_anew(struct loopback_pair *pair)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	int i;

	for (i = 0; i < 2; i++)
		assert_int_equal(ibv_modify_qp(pair->qp[i], &reset, IBV_QP_STATE), 0);
	connect_to(pair, pair->qp[0], pair->qp[1]);
	connect_to(pair, pair->qp[1], pair->qp[0]);
}

void pair_lead_to(struct loopback_pair *pair, int which, uint32_t qpn)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	const struct ibv_qp to = { .qp_num = qpn };

	assert_int_equal(ibv_modify_qp(pair->qp[which], &reset, IBV_QP_STATE), 0);
	connect_to(pair, pair->qp[which], &to);
}

void pair_close(struct loopback_pair *pair)
{
	int i;

	for (i = 0; i < 2; i++)
		if (pair->qp[i])
			assert_int_equal(ibv_destroy_qp(pair->qp[i]), 0);
	if (pair->cq)
		assert_int_equal(ibv_destroy_cq(pair->cq), 0);
	if (pair->channel)
		assert_int_equal(ibv_destroy_comp_channel(pair->channel), 0);
	if (pair->mr)
		assert_int_equal(ibv_dereg_mr(pair->mr), 0);
	if (pair->pd)
		assert_int_equal(ibv_dealloc_pd(pair->pd), 0);
	assert_int_equal(ibv_close_device(pair->context), 0);
	free(pair->bytes);
}

struct ibv_sge pair_sge(const struct loopback_pair *pair, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)pair->bytes, length, pair->mr->lkey };
}

struct ibv_send_wr pair_wr(const struct loopback_pair *pair, enum ibv_wr_opcode opcode,
			   struct ibv_sge *sge)
{
	struct ibv_send_wr wr = {
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = sge,
		.num_sge = 1,
	};
	uint64_t remote = (uintptr_t)pair->bytes + PAIR_BYTES;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = pair->mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = pair->mr->rkey;
	}
	return wr;
}

void pair_post_recv(struct loopback_pair *pair, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)pair->bytes + PAIR_BYTES, length, pair->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(pair->qp[1], &wr, &bad), 0);
}
