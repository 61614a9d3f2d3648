// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Every step runs under our guard in the target's segment. The step makes the guard odd, checks
 * the target's state, keys and bounds, copies, and makes the guard even. A target that revokes a
 * region or a queue pair first stores the change, then reads the guard. So either the check fails
 * or the target waits. Steps are short to keep this wait short. A target that has waited long cuts
 * us off: see fenced_copy.h.
 */
#include <errno.h>
#include <string.h>

#include "softnic/verbs/ah.h"
#include "softnic/verbs/nic.h"
#include "softnic/shm/fenced_copy.h"
#include "softnic/shm/iov_list.h"
#include "piece.h"
#include "resp.h"

static struct mr_view own_view(const struct qp *qp)
{
	return (struct mr_view){ nic.pub, NULL, qp->ibv.pd->handle, 0 };
}

/* The queue pair at which requests arrive: it has the rights of the connection. */
static const struct shared_qp *entry_of(const struct qp *qp)
{
	return qp_names_srqs(qp) ? qp->remote.shared : qp->to->shared;
}

/* The regions and windows that we may access through the target's queue pair. */
static struct mr_view target_view(const struct qp *qp)
{
	const struct remote_qp *r = qp->to;

	return (struct mr_view){
		r->peer->pub,
		r->peer->doorbell_page,
		load_relaxed(&r->shared->pd),
		qp->attr.dest_qp_num,
	};
}

static bool gather_local(struct iov_list *p, struct qp *qp, const struct send_wqe *wqe,
			 const struct ibv_sge *sges, void *inlined, uint32_t length)
{
	uint32_t access = wqe->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_LOCAL_WRITE : 0;
	const struct mr_view own = own_view(qp);

	if (wqe->flags & IBV_SEND_INLINE) {
		iov_list_init(p);
		iov_list_add(p, (char *)inlined + qp->sq.offset, length);
		return true;
	}
	return iov_list_gather(p, NULL, &own, access, sges, wqe->num_sge, qp->sq.offset, length);
}

/* On a fault the kernel does not tell which side's memory was inaccessible. */
static int copy_pieces(struct qp *qp, bool to, struct iov_list *here, struct iov_list *there)
{
	int rc = iov_list_copy(qp->to->peer, to, here, there, &qp->to->guard.shared->cut);

	if (!rc)
		return IBV_WC_SUCCESS;
	if (rc == -ESRCH)
		return IBV_WC_RETRY_EXC_ERR;
	return iov_list_is_accessible(here, !to) ? IBV_WC_REM_OP_ERR : IBV_WC_LOC_PROT_ERR;
}

/*
 * The kernel waits for pages of the peer, which may never come. Pages of a shared file come from
 * this host's memory.
 */
static int copy_lists(struct qp *qp, bool to, struct iov_list *here, struct iov_list *there)
{
	struct shm_peer *peer = qp->to->peer;
	int status;

	if (!iov_list_needs_kernel(there))
		return copy_pieces(qp, to, here, there);
	if (!softnic_loop_stall_begin(&peer->is_stuck))
		return RESP_STUCK;
	qp->sq.is_copying = true;
	there->is_mapped = false; /* mapped addresses are valid under the lock */
	pthread_mutex_unlock(&qp->lock);
	status = copy_pieces(qp, to, here, there);
	pthread_mutex_lock(&qp->lock);
	qp->sq.is_copying = false;
	softnic_loop_stall_end();
	return status;
}

/* The message goes into the receive's tray, because its buffers are out of reach. */
static bool uses_tray(const struct qp *qp, const struct send_wqe *wqe)
{
	if (!wr_is_send(wqe->opcode) || !qp->to->trays.at)
		return false;
	return qp_is_datagram(qp) || !load_acquire(&qp->to->peer->is_reachable);
}

/*
 * A step's bytes, from @here. @header: bytes of the first piece that are softnic's own. Not inline:
 * other work requests need no room for a tray on the stack.
 */
__attribute__((noinline)) static int put_in_tray(struct qp *qp, const struct send_wqe *wqe,
						 struct iov_list *here, uint32_t header,
						 uint32_t length)
{
	const uint32_t *cut = &qp->to->guard.shared->cut;
	uint8_t bytes[TRAY_BYTES];
	struct iovec to = { bytes + header, length };
	struct iovec *from = here->v + !!header;
	int num = here->num - !!header;

	if (shared_life_ended(qp->to->peer->target.life) || load_ordered(cut))
		return IBV_WC_RETRY_EXC_ERR;
	if (header)
		memcpy(bytes, here->v[0].iov_base, header);
	if (wqe->flags & IBV_SEND_INLINE)
		memcpy(to.iov_base, from->iov_base, length);
	else if (copy_bytes(&nic.self, false, &to, 1, from, num))
		return IBV_WC_LOC_PROT_ERR;
	tray_put(&qp->to->trays, qp->sq.receive.index, bytes, header + length, cut);
	return load_ordered(cut) ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS;
}

/* All pieces of a message but the last leave the tray before it is complete. */
static int send_in_tray(struct qp *qp, const struct send_wqe *wqe, struct iov_list *here,
			uint32_t header, uint32_t length)
{
	const bool is_last = qp->sq.offset + length == wqe->length;
	int status = IBV_WC_SUCCESS;

	if (!qp->sq.piece.is_out)
		status = put_in_tray(qp, wqe, here, header, length);
	if (status || is_last)
		return status;
	qp->sq.piece.is_out = true;
	return piece_step(qp);
}

/* Tell the SRQ's owner that few receives are left. */
static void report_srq_low(struct qp *qp)
{
	const struct shm_msg m = {
		.type = MSG_SRQ_LIMIT,
		.qpn = qp->to->qpn,
		.from = qp->ibv.qp_num,
	};

	peer_send(qp->to->peer, &m);
}

/*
 * Takes a receive of the remote queue pair on the first step and keeps the receive until the last.
 * An unreliable transport leaves a receive in place that is too short: no error would be reported.
 */
static int take_receive(struct qp *qp, uint32_t bytes)
{
	struct send_queue *sq = &qp->sq;
	int rc = 0, i;

	for (i = 0; !sq->has_receive && !rc && i < RQ_TAKES_MAX; i++) {
		rc = rq_peek(&qp->to->rq, &sq->receive);
		if (!rc && bytes > sq->receive.room && !qp_is_reliable(qp))
			return RESP_DROPPED;
		if (!rc)
			sq->has_receive = rq_take(&qp->to->rq, &sq->receive, qp->ibv.qp_num);
	}
	if (rc && rc != -EAGAIN)
		return IBV_WC_REM_OP_ERR;
	if (!sq->has_receive)
		return RESP_RNR;
	if (rq_should_tell(&qp->to->rq))
		report_srq_low(qp);
	return IBV_WC_SUCCESS;
}

static uint32_t flags_of(const struct send_wqe *wqe)
{
	switch (wqe->opcode) {
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_WITH_IMM;
	case IBV_WR_SEND_WITH_INV:
		return IBV_WC_WITH_INV;
	default:
		return 0;
	}
}

static uint32_t header_length(const struct qp *qp)
{
	return qp_is_datagram(qp) ? sizeof(struct ibv_grh) : 0;
}

static uint32_t header_flags(const struct qp *qp, const struct send_wqe *wqe)
{
	if (!qp_is_datagram(qp))
		return 0;
	return IBV_WC_GRH | (ah_is_between_ipv4(&qp->sq.avs[wqe - qp->sq.wqes]) ? RECV_IPV4 : 0);
}

/* The owner may sleep: a completion, or a receive that nobody but its poll offers again. */
static void announce(struct qp *qp, bool solicited)
{
	const struct remote_qp *r = qp->to;
	const struct shm_msg overrun = {
		.type = MSG_CQ_OVERRUN,
		.qpn = r->qpn,
		.from = qp->ibv.qp_num,
	};

	if (r->own)
		cq_ring_own(r->own, r->qpn, 1, solicited);
	else if (!cq_ring(r->cq, r->qpn, r->waker, solicited))
		peer_send(r->peer, &overrun);
}

void resp_give_back(struct qp *qp)
{
	struct remote_qp *r = qp->to;
	struct rq_result nothing = { .status = RECV_VOID };

	if (!qp->sq.has_receive)
		return;
	nothing.dest_qp = r->qpn;
	qp->sq.has_receive = false;
	if (rq_finish(&r->rq, &qp->sq.receive, qp->ibv.qp_num, &nothing, &r->arrivals))
		announce(qp, true);
}

static int finish_receive(struct qp *qp, const struct send_wqe *wqe, enum ibv_wc_status status)
{
	bool write = wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool solicited = (wqe->flags & IBV_SEND_SOLICITED) || status != IBV_WC_SUCCESS;
	struct remote_qp *r = qp->to;
	const struct rq_result result = {
		.status = status,
		.opcode = write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
		.flags = flags_of(wqe) | header_flags(qp, wqe) |
			 (qp->sq.is_in_tray ? RECV_IN_TRAY : 0),
		.byte_len = wqe->length + header_length(qp),
		.imm = wqe->imm,
		.src_qp = qp_names_srqs(qp) ? qp->remote.qpn : qp->ibv.qp_num,
		.dest_qp = r->qpn,
		.done_ns = cq_stamp(r->cq),
	};

	qp->sq.has_receive = false;
	qp->sq.is_in_tray = false;
	if (!qp->sq.promised)
		cq_promise(to_cq(qp->ibv.send_cq));
	qp->sq.promised = true;
	if (!rq_finish(&r->rq, &qp->sq.receive, qp->ibv.qp_num, &result, &r->arrivals))
		return IBV_WC_RETRY_EXC_ERR; /* the target took the receive back */
	announce(qp, solicited);
	return status;
}

static uint32_t step_length(const struct qp *qp, const struct send_wqe *wqe, bool in_tray)
{
	uint32_t left = wqe->length - qp->sq.offset, max = in_tray ? TRAY_BYTES : RESP_BYTES_MAX;

	return left < max ? left : max;
}

/*
 * A peer may invalidate only windows of type 2 that are bound to the peer's queue pair.
 * @binds: written: the number of the window's current bind
 */
static bool may_invalidate(const struct qp *qp, uint32_t key, uint32_t *binds)
{
	const struct mr_view view = target_view(qp);
	struct shared_mr window;

	if (!mr_read(&view, key, &window) || window.kind != SHARED_WINDOW_2)
		return false;
	*binds = window.binds;
	return true;
}

static int resp_send(struct qp *qp, const struct send_wqe *wqe, struct iov_list *here,
		     uint32_t length, bool in_tray)
{
	const struct rq_receive *recv = &qp->sq.receive;
	uint32_t header = header_length(qp);
	struct remote_qp *r = qp->to;
	const struct mr_view view = {
		r->peer->pub,
		r->peer->doorbell_page,
		load_relaxed(&r->rq.own->pd),
		0,
	};
	struct iov_list there;
	struct ibv_grh grh;
	uint32_t binds = 0;
	int status;

	if (wqe->opcode == IBV_WR_SEND_WITH_INV && !may_invalidate(qp, wqe->imm, &binds))
		return IBV_WC_REM_ACCESS_ERR;
	status = take_receive(qp, wqe->length + header);
	if (status)
		return status;
	if (!rq_is_out(&r->rq, recv)) {
		qp->sq.has_receive = false;
		return IBV_WC_RETRY_EXC_ERR; /* the owner has ended it */
	}
	if (wqe->length > recv->room) {
		finish_receive(qp, wqe, IBV_WC_LOC_LEN_ERR);
		return IBV_WC_REM_INV_REQ_ERR;
	}
	if (!iov_list_gather(&there, r->peer, &view, IBV_ACCESS_LOCAL_WRITE, recv->sges,
			     recv->num_sge, qp->sq.offset, length + header)) {
		finish_receive(qp, wqe, IBV_WC_LOC_PROT_ERR);
		return IBV_WC_REM_OP_ERR;
	}
	if (header) {
		ah_fill_grh(&qp->sq.avs[wqe - qp->sq.wqes], wqe->length, &grh);
		iov_list_add_first(here, &grh, header);
	}
	status = in_tray ? send_in_tray(qp, wqe, here, header, length) :
			   copy_lists(qp, true, here, &there);
	if (status == IBV_WC_REM_OP_ERR)
		finish_receive(qp, wqe, IBV_WC_LOC_PROT_ERR);
	if (status)
		return status;
	qp->sq.offset += length;
	if (qp->sq.offset < wqe->length)
		return RESP_MORE;
	qp->sq.is_in_tray = in_tray;
	if (wqe->opcode == IBV_WR_SEND_WITH_INV)
		store_release(&r->peer->doorbell_page->invalidated[wqe->imm >> 16], binds);
	return finish_receive(qp, wqe, IBV_WC_SUCCESS);
}

/*
 * Steps run one after the other, so any depth above 0 is enough. With depth 0 a NIC does not send
 * reads and atomics, or refuses them.
 */
static int check_depth(const struct qp *qp)
{
	if (!qp->attr.max_rd_atomic)
		return IBV_WC_LOC_QP_OP_ERR;
	return load_relaxed(&entry_of(qp)->reads) ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR;
}

/*
 * A short write of one piece into memory mapped here, as most are: without a list.
 * Returns false, and has done nothing, for others.
 */
static bool write_short(const struct qp *qp, const struct iov_list *here,
			const struct mr_place *place, uint32_t length, int *status)
{
	const uint32_t *cut = &qp->to->guard.shared->cut;
	struct shm_peer *peer = qp->to->peer;
	void *there;

	if (here->num != 1 || !length || length > FENCED_BYTES_MAX || qp->sq.offset ||
	    load_relaxed(&nic.pub->life.pages_on_demand))
		return false;
	there = peer_map_find(peer, place, length);
	if (!there)
		return false;
	*status = !load_ordered(cut) && !shared_life_ended(peer->target.life) &&
				  fenced_copy(there, here->v[0].iov_base, length, cut) &&
				  !load_ordered(cut) ?
			  IBV_WC_SUCCESS :
			  IBV_WC_RETRY_EXC_ERR;
	return true;
}

static int copy_range(struct qp *qp, bool write, struct iov_list *here,
		      const struct mr_place *place, uint32_t length)
{
	struct iov_list there;
	int status;

	if (write && write_short(qp, here, place, length, &status))
		return status;
	iov_list_init(&there);
	iov_list_add_remote(&there, qp->to->peer, place, qp->sq.offset, length);
	return copy_lists(qp, write, here, &there);
}

static int resp_rdma(struct qp *qp, const struct send_wqe *wqe, struct iov_list *here,
		     uint32_t length)
{
	bool write = wqe->opcode != IBV_WR_RDMA_READ;
	uint32_t access = write ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
	const struct mr_view view = target_view(qp);
	struct mr_place place;
	int status = write ? IBV_WC_SUCCESS : check_depth(qp);

	if (status)
		return status;
	if (!(load_relaxed(&entry_of(qp)->access) & access))
		return IBV_WC_REM_INV_REQ_ERR;
	if (!mr_translate(&view, wqe->rkey, access, wqe->remote_addr, wqe->length, &place))
		return IBV_WC_REM_ACCESS_ERR;
	if (wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		status = take_receive(qp, 0);
		if (status)
			return status;
	}
	status = copy_range(qp, write, here, &place, length);
	if (status)
		return status;
	qp->sq.offset += length;
	if (qp->sq.offset < wqe->length)
		return RESP_MORE;
	if (wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		return finish_receive(qp, wqe, IBV_WC_SUCCESS);
	return IBV_WC_SUCCESS;
}

static uint64_t atomic_result(const struct send_wqe *wqe, uint64_t old)
{
	if (wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return old + wqe->compare_add;
	return old == wqe->compare_add ? wqe->swap : old;
}

static int copy_u64(struct qp *qp, bool to, uint64_t *value, const struct mr_place *place)
{
	struct iov_list here, there;

	iov_list_init(&here);
	iov_list_init(&there);
	iov_list_add(&here, value, sizeof(*value));
	iov_list_add_remote(&there, qp->to->peer, place, 0, sizeof(*value));
	return copy_lists(qp, to, &here, &there);
}

/* The program may have unmapped the result's buffer: the kernel reports it, a store would trap. */
static int store_result(uint64_t *value, const struct mr_place *result)
{
	struct iovec here = { (void *)(uintptr_t)result->addr, sizeof(*value) };
	struct iovec there = { value, sizeof(*value) };

	switch (copy_bytes(&nic.self, false, &here, 1, &there, 1)) {
	case 0:
		return IBV_WC_SUCCESS;
	case -EFAULT:
		return IBV_WC_LOC_PROT_ERR;
	default:
		return IBV_WC_LOC_QP_OP_ERR;
	}
}

/*
 * Atomic among all initiators, because the whole target process has one lock. The old value is
 * delivered before the update, so that a failed delivery changes nothing.
 */
static int update_u64(struct qp *qp, const struct send_wqe *wqe, const struct mr_place *place,
		      const struct mr_place *result)
{
	uint64_t old, new;
	int status;

	status = peer_atomic_lock(qp->to->peer);
	if (status)
		return status == -EAGAIN ? RESP_BUSY : IBV_WC_LOC_QP_OP_ERR;
	status = copy_u64(qp, false, &old, place);
	if (!status)
		status = store_result(&old, result);
	if (!status) {
		new = atomic_result(wqe, old);
		if (new != old)
			status = copy_u64(qp, true, &new, place);
	}
	peer_atomic_unlock(qp->to->peer);
	return status;
}

static int resp_atomic(struct qp *qp, const struct send_wqe *wqe, const struct ibv_sge *sges)
{
	const struct mr_view own = own_view(qp), view = target_view(qp);
	const uint32_t access = IBV_ACCESS_REMOTE_ATOMIC, length = sizeof(uint64_t);
	struct mr_place result, place;
	int status = check_depth(qp);

	if (status)
		return status;
	if (!mr_translate(&own, sges[0].lkey, IBV_ACCESS_LOCAL_WRITE, sges[0].addr, length,
			  &result))
		return IBV_WC_LOC_PROT_ERR;
	if (!(load_relaxed(&entry_of(qp)->access) & access) || wqe->remote_addr % length)
		return IBV_WC_REM_INV_REQ_ERR;
	if (!mr_translate(&view, wqe->rkey, access, wqe->remote_addr, length, &place))
		return IBV_WC_REM_ACCESS_ERR;
	return update_u64(qp, wqe, &place, &result);
}

/* The value to write: from the list, or inline. */
static int load_value(struct qp *qp, const struct send_wqe *wqe, const struct ibv_sge *sges,
		      uint64_t *value)
{
	const struct mr_view own = own_view(qp);
	struct iovec here = { value, sizeof(*value) };
	struct iov_list from;

	if (wqe->flags & IBV_SEND_INLINE) {
		*value = wqe->value;
		return IBV_WC_SUCCESS;
	}
	if (!iov_list_gather(&from, NULL, &own, 0, sges, wqe->num_sge, 0, sizeof(*value)) ||
	    copy_bytes(&nic.self, false, &here, 1, from.v, from.num))
		return IBV_WC_LOC_PROT_ERR;
	return IBV_WC_SUCCESS;
}

/* Under the lock of atomics, so that none loses it. */
static int store_value(struct qp *qp, uint64_t *value, const struct mr_place *place)
{
	int status = peer_atomic_lock(qp->to->peer);

	if (status)
		return status == -EAGAIN ? RESP_BUSY : IBV_WC_LOC_QP_OP_ERR;
	status = copy_u64(qp, true, value, place);
	peer_atomic_unlock(qp->to->peer);
	return status;
}

/* InfiniBand, annex A19: a write of 8 bytes, with an answer. */
static int resp_atomic_write(struct qp *qp, const struct send_wqe *wqe, const struct ibv_sge *sges)
{
	const struct mr_view view = target_view(qp);
	const uint32_t access = IBV_ACCESS_REMOTE_WRITE;
	struct mr_place place;
	int status = check_depth(qp);
	uint64_t value;

	if (!status)
		status = load_value(qp, wqe, sges, &value);
	if (status)
		return status;
	if (!(load_relaxed(&entry_of(qp)->access) & access) || wqe->remote_addr % sizeof(value))
		return IBV_WC_REM_INV_REQ_ERR;
	if (!mr_translate(&view, wqe->rkey, access, wqe->remote_addr, sizeof(value), &place))
		return IBV_WC_REM_ACCESS_ERR;
	return store_value(qp, &value, &place);
}

/*
 * InfiniBand, annex A19. Copies have ended when a step ends, so only this thread's stores may still
 * be on their way to other CPUs.
 */
static int resp_flush(struct qp *qp, const struct send_wqe *wqe)
{
	const struct mr_view view = target_view(qp);
	bool is_known;

	if (!(load_relaxed(&entry_of(qp)->access) & FLUSH_ACCESS))
		return IBV_WC_REM_INV_REQ_ERR;
	is_known = mr_may_flush(&view, wqe->rkey, wqe->remote_addr, wqe->compare_add,
				wqe->swap >> 8 == FLUSH_REGION);
	if (!is_known)
		return IBV_WC_REM_ACCESS_ERR;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return IBV_WC_SUCCESS;
}

/* InfiniBand, annex A14: the SRQ must exist, and be of the receiving queue pair's domain. */
static int check_srq(const struct shared_qp *entry, const struct shared_qp *end)
{
	return load_ordered(&end->state) == SHARED_QP_READY &&
			       load_relaxed(&entry->xrcd) == load_relaxed(&end->xrcd) ?
		       0 :
		       IBV_WC_REM_INV_RD_REQ_ERR;
}

/*
 * Does the target accept the request? Returns 0 if so. As on a network, a destroyed queue pair
 * stays silent. Its program may have finished while our program has sent more. The extra WRs must
 * not fail before our program has polled the successful ones.
 */
static int check_in(const struct qp *qp, const struct send_wqe *wqe)
{
	const struct shared_qp *s = entry_of(qp);
	uint32_t state = load_ordered(&s->state);

	if (!qp_is_reliable(qp) && state == SHARED_QP_GONE)
		return RESP_SILENT;
	if (!qp_is_reliable(qp) && state != SHARED_QP_READY)
		return RESP_DROPPED;
	if (qp_is_datagram(qp))
		return load_relaxed(&s->qkey) == wqe->ud.qkey ? 0 : RESP_DROPPED;
	if (state != SHARED_QP_READY || load_relaxed(&s->dest_qpn) != qp->ibv.qp_num)
		return RESP_SILENT;
	return qp_names_srqs(qp) ? check_srq(s, qp->to->shared) : 0;
}

static int execute_wqe(struct qp *qp, const struct send_wqe *wqe, const struct ibv_sge *sges,
		       void *inlined)
{
	const bool in_tray = uses_tray(qp, wqe);
	uint32_t length = step_length(qp, wqe, in_tray);
	struct iov_list here;
	int status;

	status = check_in(qp, wqe);
	if (status)
		return status;
	if (wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return resp_atomic(qp, wqe, sges);
	if (wqe->opcode == IBV_WR_ATOMIC_WRITE)
		return resp_atomic_write(qp, wqe, sges);
	if (wqe->opcode == FLUSH_OP)
		return resp_flush(qp, wqe);
	if (!gather_local(&here, qp, wqe, sges, inlined, length))
		return IBV_WC_LOC_PROT_ERR;
	if (wr_is_send(wqe->opcode))
		return resp_send(qp, wqe, &here, length, in_tray);
	return resp_rdma(qp, wqe, &here, length);
}

int resp_step(struct qp *qp, const struct send_wqe *wqe, const struct ibv_sge *sges, void *inlined)
{
	int status;

	if (qp_names_srqs(qp))
		guard_enter(&qp->remote.guard);
	guard_enter(&qp->to->guard);
	status = execute_wqe(qp, wqe, sges, inlined);
	guard_leave(&qp->to->guard);
	if (qp_names_srqs(qp))
		guard_leave(&qp->remote.guard);
	return status;
}
