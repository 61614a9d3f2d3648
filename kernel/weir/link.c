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
	link->state = KWEIR_LINK_CLOSED;
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

static void choose_signal(struct kweir_link *link, struct ib_rdma_wr *out, const struct weir_wr *wr)
{
	if (wr->next && ++link->unsignalled < link->session->options.depth / 2)
		return;
	out->wr.send_flags |= IB_SEND_SIGNALED;
	link->unsignalled = 0;
}

/* The first @count WRs of a chain have been posted. Returns the rest. */
static struct weir_wr *append_in_flight(struct kweir_link *link, struct weir_wr *first, u32 count)
{
	struct weir_wr *last = first, *rest;
	u32 i;

	for (i = 1; i < count; i++)
		last = last->next;
	rest = last->next;
	last->next = NULL;
	if (link->in_flight)
		link->newest->next = first;
	else
		link->oldest = first;
	link->newest = last;
	link->in_flight += count;
	return rest;
}

static u32 index_of(const struct ib_rdma_wr *chain, const struct ib_send_wr *wr)
{
	return rdma_wr(wr) - chain;
}

/* Returns how many of the @count WRs the QP accepted. */
static u32 post_chain(struct kweir_link *link, struct ib_rdma_wr *chain, u32 count)
{
	const struct ib_send_wr *bad = &chain[0].wr;

	if (link->state != KWEIR_LINK_UP)
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
		choose_signal(link, &chain[count++], wr);
		session->stat.merged += wr->nr_reqs > 1 ? wr->nr_reqs : 0;
	}
	posted = post_chain(link, chain, count);
	session->stat.doorbells++;
	session->stat.work_requests += posted;
	if (posted)
		first = append_in_flight(link, first, posted);
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

/* The oldest WR in flight has completed. */
static void complete_oldest(struct kweir_link *link, int status, u8 verbs, u64 now_ns)
{
	struct kweir_session *session = link->session;
	const struct weir_wc wc = { link->oldest, status, verbs };

	link->oldest = wc.wr->next;
	link->in_flight--;
	if (status)
		session->stat.errors++;
	else
		count_bytes(session, wc.wr);
	weir_engine_completed(&session->engine, &wc, now_ns);
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
	const struct weir_wr *wr = (void *)(uintptr_t)wc->wr_id;

	while (link->in_flight && link->oldest != wr)
		complete_oldest(link, 0, 0, now_ns);
	if (!link->in_flight)
		return;
	complete_oldest(link, errno_of(wc->status), (u8)wc->status, now_ns);
	if (wc->status != IB_WC_SUCCESS)
		kweir_link_fail(link);
}

void kweir_link_fail(struct kweir_link *link)
{
	struct kweir_session *session = link->session;

	if (link->state != KWEIR_LINK_UP)
		return;
	link->state = KWEIR_LINK_FAILING;
	weir_engine_channel_broken(&session->engine, link->number);
	kweir_session_schedule(session);
	if (!link->number)
		kweir_control_link_down(&session->control);
	link->give_up_ns = ktime_get_ns() + session->timeout_ns;
	link->pause_ms = 0;
	mod_delayed_work(kweir_connect_wq, &link->reconnect, 0);
}

void kweir_link_forget(struct kweir_link *link, u64 now_ns)
{
	while (link->in_flight)
		complete_oldest(link, -ECONNRESET, 0, now_ns);
	kweir_keepalive_forget(link);
	kweir_session_schedule(link->session);
}
