// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * ibv_post_send() checks and appends the WRs.
 *
 * The posting thread executes a small post itself if no other WR is ahead: waking the engine
 * thread would cost more than the copy. A large post goes to the engine, so that the program
 * continues meanwhile.
 */
#include <errno.h>
#include <string.h>

#include "softnic/verbs/mw.h"
#include "softnic/verbs/nic.h"
#include "post.h"
#include "req.h"
#include "sq.h"

static bool is_atomic(enum ibv_wr_opcode op)
{
	return op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool may_be_inline(enum ibv_wr_opcode op)
{
	return op != IBV_WR_RDMA_READ && !is_atomic(op);
}

/* Does the transport have this operation? */
static bool may_post(enum ibv_qp_type type, enum ibv_wr_opcode op)
{
	if (op == FLUSH_OP)
		return type == IBV_QPT_RC;
	switch (op) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return true;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return type != IBV_QPT_UD;
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
	case IBV_WR_ATOMIC_WRITE:
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_BIND_MW:
	case IBV_WR_LOCAL_INV:
		return type == IBV_QPT_RC;
	default:
		return false;
	}
}

static int refuse(struct post_batch *p, const char *why)
{
	p->why = why;
	return EINVAL;
}

static int check_atomic(struct post_batch *p, const struct ibv_send_wr *wr, uint64_t *length)
{
	if (wr->num_sge != 1 || *length < sizeof(uint64_t))
		return refuse(p, "an atomic needs one piece of 8 bytes");
	*length = sizeof(uint64_t);
	return 0;
}

/* The builder keeps the length where an atomic has its operand, then type and level. */
static int check_flush(struct post_batch *p, const struct ibv_send_wr *wr)
{
	uint8_t type = wr->wr.atomic.swap & UINT8_MAX;

	if (type != FLUSH_GLOBAL || wr->wr.atomic.swap >> 8 > FLUSH_REGION)
		return refuse(p, "a flush has the type IBV_FLUSH_GLOBAL and a known level");
	return wr->num_sge ? refuse(p, "a flush has no bytes") : 0;
}

static int check_wr(const struct qp *qp, struct post_batch *p, const struct ibv_send_wr *wr,
		    uint64_t *length)
{
	const struct send_queue *sq = &qp->sq;
	int i;

	*length = 0;
	if (!may_post(qp->ibv.qp_type, wr->opcode))
		return refuse(p, "the transport has no such operation");
	if (qp_is_datagram(qp) && !wr->wr.ud.ah)
		return refuse(p, "a datagram needs an address handle");
	if (wr->opcode == IBV_WR_BIND_MW)
		return mw_check_bind(qp, wr);
	if (wr->opcode == IBV_WR_LOCAL_INV)
		return 0;
	if (wr->opcode == FLUSH_OP)
		return check_flush(p, wr);
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > sq->max_sge)
		return refuse(p, "num_sge is more than max_send_sge");
	for (i = 0; i < wr->num_sge; i++)
		*length += wr->sg_list[i].length;
	if (*length > SOFTNIC_MESSAGE_MAX)
		return refuse(p, "the message is longer than max_msg_sz");
	if (is_atomic(wr->opcode) && check_atomic(p, wr, length))
		return EINVAL;
	if (wr->opcode == IBV_WR_ATOMIC_WRITE) /* may be inline: the WQE itself has room */
		return *length == sizeof(uint64_t) ? 0 : refuse(p, "an atomic write has 8 bytes");
	if (!(wr->send_flags & IBV_SEND_INLINE))
		return 0;
	if (!may_be_inline(wr->opcode))
		return refuse(p, "reads and atomics cannot be inline");
	return *length > sq->max_inline ? refuse(p, "inline data exceed max_inline_data") : 0;
}

static void copy_inline(uint8_t *to, const struct ibv_send_wr *wr)
{
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		memcpy(to, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
}

/* Field by field: compilers clear a whole WQE by "rep stos", which is slow to start. */
static void fill_wqe(const struct qp *qp, struct send_wqe *wqe, const struct ibv_send_wr *wr,
		     uint32_t length)
{
	wqe->wr_id = wr->wr_id;
	wqe->length = length;
	wqe->imm = wr->imm_data;
	wqe->srqn = wr->qp_type.xrc.remote_srqn;
	wqe->opcode = wr->opcode;
	wqe->num_sge = wr_is_local(wr->opcode) ? 0 : wr->num_sge;
	wqe->flags = wr->send_flags;
	if (qp->init.sq_sig_all)
		wqe->flags |= IBV_SEND_SIGNALED;
	if (wr->opcode == IBV_WR_BIND_MW) {
		mw_fill_bind(wqe, wr);
	} else if (qp_is_datagram(qp)) {
		/* A Q_Key with the upper bit set means the Q_Key of the queue pair. */
		wqe->ud.qpn = wr->wr.ud.remote_qpn;
		wqe->ud.qkey = wr->wr.ud.remote_qkey >> 31 ? qp->attr.qkey : wr->wr.ud.remote_qkey;
	} else if (is_atomic(wr->opcode) || wr->opcode == FLUSH_OP) {
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		wqe->swap = wr->wr.atomic.swap;
	} else {
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
	}
}

int post_append(struct qp *qp, struct post_batch *p, const struct ibv_send_wr *wr)
{
	struct send_queue *sq = &qp->sq;
	uint32_t at = p->tail & (sq->size - 1);
	uint64_t length;
	int rc, i;

	if (p->tail - load_acquire(&sq->polled) >= qp->init.cap.max_send_wr)
		return ENOMEM;
	rc = check_wr(qp, p, wr, &length);
	if (rc)
		return rc;
	fill_wqe(qp, &sq->wqes[at], wr, length);
	if (sq->avs)
		sq->avs[at] = to_ah(wr->wr.ud.ah)->av;
	if ((wr->send_flags & IBV_SEND_INLINE) && length)
		copy_inline(sq_inline_bytes(sq, at), wr);
	for (i = 0; i < sq->wqes[at].num_sge; i++)
		sq->sges[(size_t)at * sq->max_sge + i] = wr->sg_list[i];
	p->bytes += length;
	p->tail++;
	return 0;
}

int post_begin(struct qp *qp, struct post_batch *p)
{
	pthread_mutex_lock(&qp->post_lock);
	p->tail = load_relaxed(&qp->sq.tail);
	p->bytes = 0;
	return post_is_allowed(qp) ? 0 : EINVAL;
}

void post_end(struct qp *qp, const struct post_batch *p)
{
	uint32_t n = p->tail - load_relaxed(&qp->sq.tail);

	store_ordered(&qp->sq.tail, p->tail);
	pthread_mutex_unlock(&qp->post_lock);
	count(doorbells, 1);
	count(send_wrs, n);
	if (n)
		req_execute_small(qp, p->bytes);
}

int req_post(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	return post_list(to_qp(ibv), wr, bad_wr, post_append);
}
