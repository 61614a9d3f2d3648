// SPDX-License-Identifier: GPL-2.0-only
#include <linux/ktime.h>

#include "kernel/weir/conn.h"
#include "kernel/weir/reconnect.h"
#include "kernel/weir/session.h"

/* The core describes local memory as the verbs do, so SGE lists are posted unchanged. */
static_assert(sizeof(struct weir_sge) == sizeof(struct ib_sge) &&
	      offsetof(struct weir_sge, addr) == offsetof(struct ib_sge, addr) &&
	      offsetof(struct weir_sge, length) == offsetof(struct ib_sge, length) &&
	      offsetof(struct weir_sge, lkey) == offsetof(struct ib_sge, lkey));

void kweir_link_init(struct kweir_link *link, struct kweir_session *session, u16 number)
{
	link->session = session;
	link->number = number;
	INIT_DELAYED_WORK(&link->reconnect, kweir_reconnect_work);
	init_waitqueue_head(&link->wait);
}

static void fill_wr(struct ib_rdma_wr *out, struct weir_wr *wr)
{
	const struct weir_req *req = wr->req;

	out->wr.wr_id = (uintptr_t)wr;
	out->wr.next = wr->next ? &out[1].wr : NULL;
	out->wr.sg_list = (struct ib_sge *)wr->sge;
	out->wr.num_sge = wr->nr_sge;
	out->wr.send_flags = 0;
	if (req->op == WEIR_OP_SEND) {
		out->wr.opcode = IB_WR_SEND;
		return;
	}
	out->wr.opcode = req->op == WEIR_OP_READ ? IB_WR_RDMA_READ : IB_WR_RDMA_WRITE;
	out->remote_addr = req->remote + wr->offset;
	out->rkey = req->rkey;
}

static u32 index_of(const struct ib_rdma_wr *chain, const struct ib_send_wr *wr)
{
	return rdma_wr(wr) - chain;
}

/* Returns how many of the @count WRs the QP accepted. */
static u32 post_chain(struct kweir_link *link, struct ib_rdma_wr *chain, u32 count)
{
	const struct ib_send_wr *bad = &chain[0].wr;

	if (link->core.state != WEIR_LINK_UP)
		return 0;
	if (!ib_post_send(link->conn->id->qp, &chain[0].wr, &bad))
		return count;
	return index_of(chain, bad);
}

void kweir_link_post(struct kweir_link *link, struct weir_wr *first)
{
	struct kweir_session *session = link->session;
	struct ib_rdma_wr *chain = session->nic->chain;
	u32 count = 0, posted;
	struct weir_wr *wr;

	for (wr = first; wr; wr = wr->next) {
		fill_wr(&chain[count], wr);
		if (weir_in_flight_signal(&link->core.in_flight, !wr->next,
					  session->options.depth / 2))
			chain[count].wr.send_flags |= IB_SEND_SIGNALED;
		count++;
		session->stat.merged += wr->nr_reqs > 1 ? wr->nr_reqs : 0;
	}
	posted = post_chain(link, chain, count);
	session->stat.doorbells++;
	session->stat.work_requests += posted;
	if (posted)
		first = weir_in_flight_append(&link->core.in_flight, first, posted);
	for (; posted < count; posted++) {
		const struct weir_wc wc = { first, -ENOTCONN };

		first = first->next;
		weir_engine_completed(&session->engine, &wc, 0);
	}
}

static void count_bytes(struct kweir_session *session, const struct weir_wr *wr)
{
	if (wr->req->op == WEIR_OP_READ)
		session->stat.bytes_read += wr->length;
	else if (wr->req->op == WEIR_OP_WRITE)
		session->stat.bytes_written += wr->length;
}

/* A WR has left @link->core.in_flight. */
static void report(struct kweir_link *link, const struct weir_wc *wc, u64 now_ns)
{
	struct kweir_session *session = link->session;

	if (wc->status)
		session->stat.errors++;
	else
		count_bytes(session, wc->wr);
	weir_engine_completed(&session->engine, wc, now_ns);
}

/*
 * The errno for struct weir_wc. Soft-RoCE reports LOC_QP_OP_ERR if a packet cannot leave, e.g. with
 * the link down. The request is not at fault, and may be posted again on another channel.
 */
static int errno_of(enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_SUCCESS:
		return 0;
	case IB_WC_WR_FLUSH_ERR:
	case IB_WC_RETRY_EXC_ERR:
	case IB_WC_RNR_RETRY_EXC_ERR:
	case IB_WC_RESP_TIMEOUT_ERR:
	case IB_WC_REM_ABORT_ERR:
	case IB_WC_LOC_QP_OP_ERR:
		return -ECONNRESET;
	case IB_WC_REM_ACCESS_ERR:
		return -EACCES;
	case IB_WC_LOC_PROT_ERR:
	case IB_WC_LOC_ACCESS_ERR:
		return -EFAULT;
	default:
		return -EIO;
	}
}

void kweir_link_completed(struct kweir_link *link, const struct ib_wc *wc, u64 now_ns)
{
	const struct weir_wc cqe = {
		.wr = (void *)(uintptr_t)wc->wr_id,
		.status = errno_of(wc->status),
		.verbs = (u8)wc->status,
	};
	struct weir_wc ended = { NULL };

	while (weir_in_flight_complete(&link->core.in_flight, &cqe, &ended))
		report(link, &ended, now_ns);
	if (wc->status != IB_WC_SUCCESS)
		kweir_link_fail(link);
}

void kweir_link_fail(struct kweir_link *link)
{
	struct kweir_session *session = link->session;
	u64 now_ns = ktime_get_ns();

	if (!weir_link_fail(&link->core))
		return;
	weir_engine_channel_broken(&session->engine, link->number);
	kweir_session_schedule(session);
	if (!link->number)
		kweir_control_link_down(&session->control);
	weir_reconnect_begin(&link->attempts, now_ns + session->timeout_ns, now_ns);
	mod_delayed_work(kweir_connect_wq, &link->reconnect, 0);
}

void kweir_link_forget(struct kweir_link *link, u64 now_ns)
{
	struct kweir_session *session = link->session;
	struct weir_wc wc = { .status = -ECONNRESET };

	while (link->core.in_flight.count) {
		wc.wr = weir_in_flight_pop(&link->core.in_flight);
		report(link, &wc, now_ns);
	}
	weir_keepalive_forget(&session->keepalive, &link->core);
	kweir_session_schedule(session);
}
