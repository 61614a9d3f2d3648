/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Plain verbs: a queue pair for each lane, one work request at a time, with busy polling. */
#include "bench/fs/transport.h"

#include <infiniband/verbs.h>
#include <string.h>

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* Sent by each side to the other. */
struct fs_side {
	uint32_t qp[LANES];
	union ibv_gid gid;
	uint64_t address;
	uint32_t rkey;
};

static struct {
	struct ibv_qp *qp[LANES];
	struct ibv_cq *cq[LANES];
	struct ibv_mr *mr;
	uint8_t gid_index;
	enum ibv_mtu mtu;
	struct fs_side mine, theirs;
} v;
static void *all_buffers;

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_port_attr port;

	must(context, "device", "there is none: weir run -- client-verbs ...");
	must(!ibv_query_port(context, 1, &port), "port", "cannot be asked");
	v.mtu = port.active_mtu;
	ibv_free_device_list(list);
	return context;
}

/* A GID with an IPv4 address is routable on any device. */
static void choose_gid(struct ibv_context *context)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	for (v.gid_index = 0; !ibv_query_gid(context, 1, v.gid_index, &v.mine.gid); v.gid_index++)
		if (!memcmp(&v.mine.gid, mapped, sizeof(mapped)))
			return;
	v.gid_index = 0;
	must(!ibv_query_gid(context, 1, 0, &v.mine.gid), "address", "there is none");
}

static void make(void *memory, size_t bytes)
{
	struct ibv_context *context = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	int i;

	choose_gid(context);
	v.mr = ibv_reg_mr(pd, memory, bytes, ACCESS);
	must(v.mr, "memory", "cannot be registered");
	v.mine.address = (uintptr_t)memory;
	v.mine.rkey = v.mr->rkey;
	for (i = 0; i < LANES; i++) {
		struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };

		v.cq[i] = ibv_create_cq(context, 8, NULL, NULL, 0);
		init.send_cq = init.recv_cq = v.cq[i];
		v.qp[i] = ibv_create_qp(pd, &init);
		must(v.cq[i] && v.qp[i], "queue pair", "cannot be made");
		v.mine.qp[i] = v.qp[i]->qp_num;
	}
}

static void connect_lane(struct ibv_qp *qp, uint32_t to)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = ACCESS };
	int rc = ibv_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = v.mtu,
		.dest_qp_num = to,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = v.theirs.gid,
				      .sgid_index = v.gid_index,
				      .hop_limit = 64 } },
	};
	rc |= ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER |
				    IBV_QP_MAX_DEST_RD_ATOMIC);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .timeout = 18,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .max_rd_atomic = 1 };
	rc |= ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	must(!rc, "queue pair", "cannot be connected");
}

/* Both sides do the same; the last word says that both are ready. */
static void meet(int socket, void *memory, size_t bytes)
{
	char ready = 'r';
	int i;

	make(memory, bytes);
	tell(socket, &v.mine, sizeof(v.mine));
	hear(socket, &v.theirs, sizeof(v.theirs));
	for (i = 0; i < LANES; i++)
		connect_lane(v.qp[i], v.theirs.qp[i]);
	tell(socket, &ready, 1);
	hear(socket, &ready, 1);
}

static void verbs_lend(int socket, void *memory, size_t bytes)
{
	meet(socket, memory, bytes);
	until_over(socket, NULL);
}

static void verbs_borrow(int socket, void *buffers, size_t bytes)
{
	(void)bytes;
	all_buffers = buffers;
	meet(socket, buffers, LANES_BYTES);
}

static void move(int lane, enum ibv_wr_opcode opcode, size_t size, uint64_t offset)
{
	struct ibv_sge sge = { (uintptr_t)lane_buffer(all_buffers, lane), (uint32_t)size,
			       v.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { v.theirs.address + offset, v.theirs.rkey },
	};
	struct ibv_wc wc;
	int got;

	must(!ibv_post_send(v.qp[lane], &wr, &bad), "post", "refused");
	while (!(got = ibv_poll_cq(v.cq[lane], 1, &wc)))
		;
	must(got == 1 && !wc.status, "completion", ibv_wc_status_str(wc.status));
}

static void verbs_read(int lane, size_t size, uint64_t offset)
{
	move(lane, IBV_WR_RDMA_READ, size, offset);
}

static void verbs_write(int lane, size_t size, uint64_t offset)
{
	move(lane, IBV_WR_RDMA_WRITE, size, offset);
}

const struct fs_transport transport = {
	.name = "verbs",
	.lend = verbs_lend,
	.borrow = verbs_borrow,
	.read = verbs_read,
	.write = verbs_write,
};
