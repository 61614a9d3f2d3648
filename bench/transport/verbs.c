/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Plain verbs: a queue pair for each lane, a work request and a doorbell for each request, all
 * signalled. Polls busily, or, as "events", sleeps until an event when a poll finds nothing.
 */
#include "bench/transport/transport.h"

#include <infiniband/verbs.h>
#include <string.h>

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define READS 16 /* outstanding on a queue pair */

/* Sent by each side to the other. */
struct verbs_side {
	uint32_t qp[LANES_MAX];
	union ibv_gid gid;
	uint64_t address;
	uint32_t rkey;
};

static struct ibv_context *context;
static struct ibv_qp *qp[LANES_MAX];
static struct ibv_cq *cq[LANES_MAX];
static struct ibv_comp_channel *channel[LANES_MAX]; /* NULL: polled */
static struct ibv_mr *mr;
static struct verbs_side mine, theirs;
static uint8_t gid_index;
static enum ibv_mtu mtu;

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	must(context, "device", "there is none: use weir run");
	must(!ibv_query_port(context, 1, &port), "port", "cannot be asked");
	mtu = port.active_mtu;
	ibv_free_device_list(list);
}

/* A GID with an IPv4 address is routable on any device. */
static void choose_gid(void)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	for (gid_index = 0; !ibv_query_gid(context, 1, gid_index, &mine.gid); gid_index++)
		if (!memcmp(&mine.gid, mapped, sizeof(mapped)))
			return;
	gid_index = 0;
	must(!ibv_query_gid(context, 1, 0, &mine.gid), "address", "there is none");
}

static void make(void *memory, size_t bytes, const struct transport_job *job, bool sleeps)
{
	struct ibv_pd *pd;
	int i;

	open_device();
	choose_gid();
	pd = ibv_alloc_pd(context);
	mr = pd ? ibv_reg_mr(pd, memory, bytes, ACCESS) : NULL;
	must(mr, "memory", "cannot be registered");
	mine.address = (uintptr_t)memory;
	mine.rkey = mr->rkey;
	for (i = 0; i < job->lanes; i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = (uint32_t)job->depth,
				 .max_recv_wr = 1,
				 .max_send_sge = 1,
				 .max_recv_sge = 1 },
		};

		if (sleeps)
			channel[i] = ibv_create_comp_channel(context);
		must(!sleeps || channel[i], "events", "cannot be had");
		cq[i] = ibv_create_cq(context, job->depth, NULL, channel[i], 0);
		init.send_cq = init.recv_cq = cq[i];
		qp[i] = cq[i] ? ibv_create_qp(pd, &init) : NULL;
		must(qp[i], "queue pair", "cannot be made");
		mine.qp[i] = qp[i]->qp_num;
	}
}

static void connect_lane(int lane)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = ACCESS };
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = theirs.qp[lane],
		.max_dest_rd_atomic = READS,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = theirs.gid,
				      .sgid_index = gid_index,
				      .hop_limit = 64 } },
	};
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS,
				   .timeout = 18,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = READS };

	must(!ibv_modify_qp(qp[lane], &init,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) &&
		     !ibv_modify_qp(qp[lane], &rtr,
				    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					    IBV_QP_MIN_RNR_TIMER) &&
		     !ibv_modify_qp(qp[lane], &rts,
				    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					    IBV_QP_MAX_QP_RD_ATOMIC),
	     "queue pair", "cannot be connected");
}

/* Both sides do the same; the last byte says that both are ready. */
static void meet(int socket, void *memory, size_t bytes, const struct transport_job *job,
		 bool sleeps)
{
	char ready = 1;
	int i;

	make(memory, bytes, job, sleeps);
	send_all(socket, &mine, sizeof(mine));
	receive_all(socket, &theirs, sizeof(theirs));
	for (i = 0; i < job->lanes; i++)
		connect_lane(i);
	send_all(socket, &ready, 1);
	receive_all(socket, &ready, 1);
}

static void verbs_lend(int socket, void *memory, const struct transport_job *job)
{
	meet(socket, memory, job->lent_bytes, job, false);
	until_over(socket, NULL);
}

static void verbs_borrow(int socket, void *buffers, const struct transport_job *job)
{
	meet(socket, buffers, job->buffers_bytes, job, false);
}

static void events_borrow(int socket, void *buffers, const struct transport_job *job)
{
	meet(socket, buffers, job->buffers_bytes, job, true);
}

static void verbs_post(int lane, bool is_read, void *buffer, size_t size, uint64_t offset)
{
	struct ibv_sge sge = { (uintptr_t)buffer, (uint32_t)size, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = is_read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { theirs.address + offset, theirs.rkey },
	};

	must(!ibv_post_send(qp[lane], &wr, &bad), "post", "refused");
}

static int verbs_reap(int lane)
{
	struct ibv_wc wc[16];
	int i, got = ibv_poll_cq(cq[lane], 16, wc);

	for (i = 0; i < got; i++)
		must(!wc[i].status, "completion", ibv_wc_status_str(wc[i].status));
	must(got >= 0, "completions", "cannot be polled");
	return got;
}

/* A completion between the poll and the arming raises no event, so polls once more. */
static int events_reap(int lane)
{
	struct ibv_cq *of;
	void *unused;
	int got = verbs_reap(lane);

	if (got)
		return got;
	must(!ibv_req_notify_cq(cq[lane], 0), "completions", "cannot be armed");
	got = verbs_reap(lane);
	if (got)
		return got;
	must(!ibv_get_cq_event(channel[lane], &of, &unused), "event", "did not come");
	ibv_ack_cq_events(of, 1);
	return verbs_reap(lane);
}

const struct transport transport_verbs = {
	.name = "verbs",
	.lend = verbs_lend,
	.borrow = verbs_borrow,
	.post = verbs_post,
	.reap = verbs_reap,
};

const struct transport transport_events = {
	.name = "events",
	.lend = verbs_lend,
	.borrow = events_borrow,
	.post = verbs_post,
	.reap = events_reap,
};
