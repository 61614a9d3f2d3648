// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The memory and the receives of the transport's host. Memory is reached as by a near peer: through
 * this process's own entry among the peers, so that the same code checks keys, bounds and
 * rights, and an unmapped page is an error and no crash.
 */
#include <errno.h>
#include <sched.h>

#include "softnic/qp/req.h"
#include "softnic/qp/sq.h"
#include "softnic/rq/srq.h"
#include "softnic/shm/iov_list.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp_far/far.h"
#include "softnic/qp_far/stage.h"

enum { ATOMIC_TRIES = 10000 };

static struct mr_view own_view(uint32_t pd)
{
	return (struct mr_view){ nic.pub, NULL, pd, 0 };
}

/* The regions and windows that the peer may access. */
static struct mr_view peer_view(const struct qp *qp)
{
	return (struct mr_view){
		nic.pub,
		nic.doorbell_page,
		qp->ibv.pd->handle,
		qp->ibv.qp_num,
	};
}

static uint32_t access_for(enum roce_right right)
{
	return right == ROCE_RIGHT_WRITE ? IBV_ACCESS_REMOTE_WRITE :
	       right == ROCE_RIGHT_READ	 ? IBV_ACCESS_REMOTE_READ :
					   IBV_ACCESS_REMOTE_ATOMIC;
}

/* Copies between @bytes and a scatter/gather list of this process. */
static enum roce_status copy_sges(const struct mr_view *view, bool to_list,
				  const struct ibv_sge *sges, uint32_t num_sge, uint64_t offset,
				  void *bytes, uint32_t length)
{
	struct iovec here = { bytes, length };
	struct iov_list list;

	if (!iov_list_gather(&list, NULL, view, to_list ? IBV_ACCESS_LOCAL_WRITE : 0, sges, num_sge,
			     offset, length))
		return ROCE_LOC_PROT;
	if (copy_bytes(&nic.self, to_list, &here, 1, list.v, list.num))
		return ROCE_LOC_PROT;
	return ROCE_SUCCESS;
}

static enum roce_status copy_wqe(struct qp *qp, const struct roce_wqe *wqe, uint32_t offset,
				 void *bytes, uint32_t length)
{
	const struct send_queue *sq = &qp->sq;
	size_t at = wqe->id & (sq->size - 1);
	const struct mr_view view = own_view(qp->ibv.pd->handle);

	bool is_result = wqe->op >= ROCE_OP_READ && wqe->op != ROCE_OP_ATOMIC_WRITE;

	if (sq->wqes[at].flags & IBV_SEND_INLINE) {
		memcpy(bytes, (uint8_t *)sq_inline_bytes(sq, at) + offset, length);
		return ROCE_SUCCESS;
	}
	return copy_sges(&view, is_result, sq->sges + at * sq->max_sge,
			 sq->wqes[at].num_sge, offset, bytes, length);
}

static const struct send_wqe *wqe_of(const struct qp *qp, const struct roce_wqe *wqe)
{
	return &qp->sq.wqes[wqe->id & (qp->sq.size - 1)];
}

/* Finds the memory of a message in one piece. */
static bool find_piece(const struct qp *qp, const struct roce_wqe *wqe, uint32_t access,
		       struct mr_place *place)
{
	const struct send_queue *sq = &qp->sq;
	const struct ibv_sge *sge = sq->sges + (wqe->id & (sq->size - 1)) * sq->max_sge;
	const struct mr_view view = own_view(qp->ibv.pd->handle);

	return mr_translate(&view, sge->lkey, access, sge->addr, sge->length, place);
}

/* A message in one piece is read ahead. */
static enum roce_status gather(void *host, const struct roce_wqe *wqe, uint32_t offset,
			       uint32_t bytes, uint8_t *to)
{
	const struct send_wqe *posted = wqe_of(host, wqe);
	struct mr_place place;

	if (posted->flags & IBV_SEND_INLINE || posted->num_sge != 1)
		return copy_wqe(host, wqe, offset, to, bytes);
	if (!find_piece(host, wqe, 0, &place) ||
	    stage_read(place.addr + offset, bytes, wqe->length - offset, to))
		return ROCE_LOC_PROT;
	return ROCE_SUCCESS;
}

static enum roce_status scatter(void *host, const struct roce_wqe *wqe, uint32_t offset,
				const uint8_t *from, uint32_t bytes)
{
	struct mr_place place;

	if (wqe_of(host, wqe)->num_sge != 1)
		return copy_wqe(host, wqe, offset, (void *)from, bytes);
	if (!find_piece(host, wqe, IBV_ACCESS_LOCAL_WRITE, &place) ||
	    stage_write(host, place.addr + offset, from, bytes))
		return ROCE_LOC_PROT;
	return ROCE_SUCCESS;
}

static enum roce_status find_memory(struct qp *qp, uint32_t rkey, enum roce_right right,
				    uint64_t addr, uint32_t bytes, struct mr_place *place)
{
	const struct mr_view view = peer_view(qp);
	uint32_t access = access_for(right);

	if (!(qp->attr.qp_access_flags & access))
		return ROCE_REM_INV_REQ;
	if (!bytes)
		return ROCE_SUCCESS;
	return mr_translate(&view, rkey, access, addr, bytes, place) ? ROCE_SUCCESS :
								       ROCE_REM_ACCESS;
}

static enum roce_status check(void *host, uint32_t rkey, enum roce_right right, uint64_t addr,
			      uint32_t bytes)
{
	struct mr_place place;

	return find_memory(host, rkey, right, addr, bytes, &place);
}

static enum roce_status copy_place(struct qp *qp, bool to_place, const struct mr_place *place,
				   void *bytes, uint32_t length)
{
	struct iov_list here, there;

	iov_list_init(&here);
	iov_list_init(&there);
	iov_list_add(&here, bytes, length);
	iov_list_add_remote(&there, qp->far->self, place, 0, length);
	if (!there.is_mapped && to_place)
		return stage_write(qp, place->addr, bytes, length) ? ROCE_REM_OP : ROCE_SUCCESS;
	return iov_list_copy(qp->far->self, to_place, &here, &there, NULL) ? ROCE_REM_OP :
									     ROCE_SUCCESS;
}

static enum roce_status read_memory(void *host, uint32_t rkey, uint64_t addr, uint8_t *to,
				    uint32_t bytes)
{
	struct mr_place place;
	enum roce_status status = find_memory(host, rkey, ROCE_RIGHT_READ, addr, bytes, &place);

	if (!status && !place.file && stage_ends_at(place.addr) &&
	    !find_memory(host, rkey, ROCE_RIGHT_READ, addr, STAGE_AHEAD_BYTES, &place))
		return stage_read(place.addr, bytes, STAGE_AHEAD_BYTES, to) ? ROCE_REM_OP :
									      ROCE_SUCCESS;
	if (!status && !place.file)
		return stage_read(place.addr, bytes, bytes, to) ? ROCE_REM_OP : ROCE_SUCCESS;
	return status ? status : copy_place(host, false, &place, to, bytes);
}

static enum roce_status write_memory(void *host, uint32_t rkey, uint64_t addr, const uint8_t *from,
				     uint32_t bytes)
{
	struct mr_place place;
	enum roce_status status = find_memory(host, rkey, ROCE_RIGHT_WRITE, addr, bytes, &place);

	return status ? status : copy_place(host, true, &place, (void *)from, bytes);
}

static uint64_t result_of(const struct roce_packet *p, uint64_t old)
{
	uint64_t value;

	if (p->opcode == ROCE_ATOMIC_WRITE) {
		memcpy(&value, p->payload, sizeof(value));
		return value;
	}
	if ((p->opcode & ~ROCE_TRANSPORT_MASK) == ROCE_FETCH_ADD)
		return old + p->swap_add;
	return old == p->compare ? p->swap_add : old;
}

/* Holders keep the lock for two small copies. A stopped holder must not stop the engine. */
static int lock_atomics(struct shm_peer *self)
{
	int rc, tries;

	for (tries = 0; (rc = peer_atomic_lock(self)) == -EAGAIN && tries < ATOMIC_TRIES; tries++)
		sched_yield();
	return rc;
}

static enum roce_status update(void *host, const struct roce_packet *request, uint64_t *original)
{
	struct qp *qp = host;
	struct mr_place place;
	enum roce_right right = request->opcode == ROCE_ATOMIC_WRITE ? ROCE_RIGHT_WRITE :
								       ROCE_RIGHT_ATOMIC;
	enum roce_status status = find_memory(qp, request->rkey, right, request->addr,
					      sizeof(*original), &place);
	uint64_t new;

	if (status)
		return status;
	if (lock_atomics(qp->far->self))
		return ROCE_REM_OP;
	status = copy_place(qp, false, &place, original, sizeof(*original));
	new = result_of(request, *original);
	if (!status && new != *original)
		status = copy_place(qp, true, &place, &new, sizeof(new));
	peer_atomic_unlock(qp->far->self);
	return status;
}

/* A receive's taker is the peer, as for a near peer: so a flush finds what was taken. */
static uint32_t taker_of(const struct qp *qp)
{
	return qp_is_datagram(qp) ? qp->ibv.qp_num : qp->attr.dest_qp_num;
}

static int64_t take(void *host)
{
	struct qp *qp = host;
	struct far *f = qp->far;

	if (!f->is_kept && recv_queue_take(qp->rq, taker_of(qp), &f->receive))
		return -EAGAIN;
	f->is_kept = false;
	f->has_receive = true;
	if (rq_should_tell(&qp->rq->ring))
		srq_check_limit(qp);
	return (int64_t)f->receive.room;
}

static enum roce_status place(void *host, uint64_t offset, const uint8_t *from, uint32_t bytes)
{
	struct qp *qp = host;

	return recv_queue_fill(qp->rq, &qp->far->receive, recv_pd(qp), offset, from, bytes) ?
		       ROCE_SUCCESS :
		       ROCE_LOC_PROT;
}

static uint32_t wc_status(enum roce_status status)
{
	return status == ROCE_SUCCESS ? IBV_WC_SUCCESS :
	       status == ROCE_LOC_LEN ? IBV_WC_LOC_LEN_ERR :
					IBV_WC_LOC_PROT_ERR;
}

static void finish(void *host, const struct roce_arrival *arrival)
{
	struct qp *qp = host;
	struct far *f = qp->far;
	struct cq *cq = to_cq(qp->ibv.recv_cq);
	const struct rq_result result = {
		.status = wc_status(arrival->status),
		.opcode = arrival->is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
		.flags = (arrival->has_imm ? IBV_WC_WITH_IMM : 0) |
			 (arrival->has_inv ? IBV_WC_WITH_INV : 0) | f->grh_flags,
		.byte_len = arrival->bytes,
		.imm = arrival->imm,
		.src_qp = qp_is_datagram(qp) ? arrival->src_qpn : qp->attr.dest_qp_num,
		.dest_qp = qp->ibv.qp_num,
		.done_ns = cq_stamp(cq->doorbell.at),
	};

	f->has_receive = false;
	if (rq_finish(&qp->rq->ring, &f->receive, taker_of(qp), &result, &qp->arrivals.ring))
		cq_ring_own(cq, qp->ibv.qp_num, 1, arrival->is_solicited);
}

/* A datagram's receive goes back at once: the queue pair may share its receives with others. */
static void give_back(void *host)
{
	struct qp *qp = host;
	struct far *f = qp->far;
	const struct rq_result nothing = { .status = RECV_VOID, .dest_qp = qp->ibv.qp_num };

	f->has_receive = false;
	f->is_kept = !qp_is_datagram(qp);
	if (!f->is_kept &&
	    rq_finish(&qp->rq->ring, &f->receive, taker_of(qp), &nothing, &qp->arrivals.ring))
		cq_mark(to_cq(qp->ibv.recv_cq)->doorbell.at, qp->ibv.qp_num);
}

static int64_t receives(void *host)
{
	(void)host;
	return ROCE_RECEIVES_UNKNOWN;
}

/* As a near peer does: the window's owner unbinds it when the program polls the message. */
static enum roce_status invalidate(void *host, uint32_t key)
{
	const struct mr_view view = peer_view(host);
	struct shared_mr window;

	if (!mr_read(&view, key, &window) || window.kind != SHARED_WINDOW_2)
		return ROCE_REM_ACCESS;
	store_release(&nic.doorbell_page->invalidated[key >> 16], window.binds);
	return ROCE_SUCCESS;
}

const struct roce_ops far_ops = {
	.gather = gather,
	.scatter = scatter,
	.check = check,
	.read = read_memory,
	.write = write_memory,
	.atomic = update,
	.take = take,
	.place = place,
	.finish = finish,
	.give_back = give_back,
	.receives = receives,
	.invalidate = invalidate,
};
