/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The plain verbs: a table of pointers in the context. */
#include "wrap.h"

struct wrapped_context {
	struct ibv_context_ops ops;
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *context,
					  struct ibv_cq_init_attr_ex *init);
};

static const struct wrapped_context *kept_of(struct ibv_context *context)
{
	return wrapped_find(WRAPPED_CONTEXT, context);
}

enum wr_kind wr_kind_of(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return WRITE;
	case IBV_WR_RDMA_READ:
		return READ;
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_TSO:
		return SEND;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_WRITE:
		return ATOMIC;
	default:
		return LOCAL;
	}
}

void count_posted(const struct posted_wrs *p)
{
	count(doorbells, 1);
	count(send_wrs,
	      p->wrs[WRITE] + p->wrs[READ] + p->wrs[SEND] + p->wrs[ATOMIC] + p->wrs[LOCAL]);
	count(posted_writes, p->wrs[WRITE]);
	count(posted_reads, p->wrs[READ]);
	count(posted_sends, p->wrs[SEND]);
	count(posted_atomics, p->wrs[ATOMIC]);
	count(posted_write_bytes, p->bytes[WRITE]);
	count(posted_read_bytes, p->bytes[READ]);
	count(posted_send_bytes, p->bytes[SEND]);
}

void count_completion(enum ibv_wc_status status, enum ibv_wc_opcode opcode, uint32_t bytes)
{
	count(completions, 1);
	if (status != IBV_WC_SUCCESS) {
		count(errors, 1);
	} else if (opcode & IBV_WC_RECV) {
		count(receives, 1);
		if (opcode == IBV_WC_RECV)
			count(receive_bytes, bytes);
	}
}

static uint64_t bytes_of(const struct ibv_send_wr *wr)
{
	uint64_t bytes = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes;
}

/*
 * Counts after the call, when the number of accepted WRs is known. The WRs stay with the caller,
 * unchanged, until the call returns.
 */
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	int rc = kept_of(qp->context)->ops.post_send(qp, wr, bad_wr);
	struct posted_wrs posted = { 0 };

	for (; wr && !(rc && wr == *bad_wr); wr = wr->next) {
		enum wr_kind kind = wr_kind_of(wr->opcode);

		posted.wrs[kind]++;
		posted.bytes[kind] += bytes_of(wr);
	}
	count_posted(&posted);
	return rc;
}

/* ibv_bind_mw() also posts; only type 2 windows are bound by ibv_post_send(), and counted there. */
static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	const struct posted_wrs posted = { .wrs[LOCAL] = 1 };
	int rc = kept_of(qp->context)->ops.bind_mw(qp, mw, bind);

	if (!rc)
		count_posted(&posted);
	return rc;
}

static void count_recvs(const struct ibv_recv_wr *wr, const struct ibv_recv_wr *end)
{
	count(doorbells, 1);
	for (; wr && wr != end; wr = wr->next)
		count(recv_wrs, 1);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int rc = kept_of(qp->context)->ops.post_recv(qp, wr, bad_wr);

	count_recvs(wr, rc ? *bad_wr : NULL);
	return rc;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int rc = kept_of(srq->context)->ops.post_srq_recv(srq, wr, bad_wr);

	count_recvs(wr, rc ? *bad_wr : NULL);
	return rc;
}

static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
	int n = kept_of(cq->context)->ops.poll_cq(cq, room, wc), i;

	count(polls, 1);
	if (n <= 0)
		count(empty_polls, 1);
	for (i = 0; i < n; i++)
		count_completion(wc[i].status, wc[i].opcode, wc[i].byte_len);
	return n;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	count(arms, 1);
	return kept_of(cq->context)->ops.req_notify_cq(cq, solicited_only);
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init)
{
	struct ibv_cq_ex *cq = kept_of(context)->create_cq_ex(context, init);

	if (cq)
		wrap_cq(cq);
	return cq;
}

void wrap_context(struct ibv_context *context)
{
	struct verbs_context *extended = verbs_get_ctx(context);
	struct wrapped_context *kept;

	if (context->ops.post_send == post_send)
		return;
	kept = wrapped_get(WRAPPED_CONTEXT, context, sizeof(*kept));
	if (!kept)
		return;
	kept->ops = context->ops;
	context->ops.post_send = post_send;
	context->ops.bind_mw = bind_mw;
	context->ops.post_recv = post_recv;
	context->ops.post_srq_recv = post_srq_recv;
	context->ops.poll_cq = poll_cq;
	context->ops.req_notify_cq = req_notify_cq;
	if (extended && extended->create_cq_ex) {
		kept->create_cq_ex = extended->create_cq_ex;
		extended->create_cq_ex = create_cq_ex;
	}
}
