// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Checks at the post. A WR is recorded, and posted with other buffers: those of its veil.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "softnic/rq/recv.h"
#include "softnic/rq/srq.h"
#include "softnic/verbs/nic.h"
#include "buffer.h"
#include "finding.h"
#include "strict.h"
#include "veil.h"
#include "wr.h"

/* A WR with a list of its own, to be posted instead of the program's. */
struct posting {
	struct ibv_send_wr wr;
	struct ibv_sge sges[SHARED_SGES_MAX];
};

/* Nobody looks at the bytes of a null region, which all WRs share: no rule is about them. */
static bool uses_null_region(const struct ibv_sge *sges, int num)
{
	int i;

	for (i = 0; i < num; i++)
		if (load_relaxed(&nic.pub->mrs[sges[i].lkey >> 16].kind) == SHARED_NULL)
			return true;
	return false;
}

static void copy_list(struct strict_wr *wr, const struct ibv_sge *sges, int num)
{
	uint64_t addrs[SHARED_SGES_MAX];
	int i;

	wr->num_sge = num > 0 && num <= SHARED_SGES_MAX && !uses_null_region(sges, num) ? num : 0;
	for (i = 0; i < (int)wr->num_sge; i++) {
		wr->sges[i] = sges[i];
		wr->iovas[i] = sges[i].addr;
		wr->room += sges[i].length;
	}
	wr->has_access = wr_locate(wr, addrs);
	for (i = 0; wr->has_access && i < (int)wr->num_sge; i++)
		wr->sges[i].addr = addrs[i];
}

/*
 * A NIC writes no more, however long the list is: 8 bytes of an atomic, a datagram and its header.
 */
static void limit(struct strict_wr *wr, uint64_t bytes)
{
	uint32_t i;

	wr->room = 0;
	for (i = 0; i < wr->num_sge; i++) {
		if (wr->sges[i].length > bytes - wr->room)
			wr->sges[i].length = bytes - wr->room;
		wr->room += wr->sges[i].length;
	}
}

static bool is_atomic(enum ibv_wr_opcode op)
{
	return op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static struct strict_wr *record_send(struct qp *qp, uint32_t position, const struct ibv_send_wr *wr)
{
	struct strict_wr *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->queue = &qp->sq;
	r->qp = qp;
	r->ah = qp_is_datagram(qp) ? wr->wr.ud.ah : NULL;
	r->wr_id = wr->wr_id;
	r->position = position;
	r->pd = qp->ibv.pd->handle;
	r->opcode = wr->opcode;
	r->is_fenced = wr->send_flags & IBV_SEND_FENCE;
	r->is_signaled = qp->init.sq_sig_all || (wr->send_flags & IBV_SEND_SIGNALED);
	r->remote_addr = is_atomic(wr->opcode) ? wr->wr.atomic.remote_addr :
						 wr->wr.rdma.remote_addr;
	r->rkey = is_atomic(wr->opcode) ? wr->wr.atomic.rkey : wr->wr.rdma.rkey;
	if (!wr_is_local(wr->opcode) && !(wr->send_flags & IBV_SEND_INLINE))
		copy_list(r, wr->sg_list, wr->num_sge);
	if (is_atomic(wr->opcode))
		limit(r, sizeof(uint64_t));
	return r;
}

/* Positions from @tail on belong to WRs that ibv_wr_abort() dropped. */
static uint32_t count_outstanding(const struct qp *qp, uint32_t tail, bool *has_signaled)
{
	struct strict_wr *wr, *next;
	uint32_t n = 0;

	*has_signaled = false;
	for (wr = wr_first(); wr; wr = next) {
		next = wr->next;
		if (wr->queue != &qp->sq)
			continue;
		if ((int32_t)(wr->position - tail) >= 0) {
			veil_lift(wr);
			wr_free(wr);
			continue;
		}
		*has_signaled |= wr->is_signaled;
		n++;
	}
	return n;
}

static bool has_room(const struct qp *qp, const struct post_batch *p)
{
	return p->tail - load_acquire(&qp->sq.polled) < qp->init.cap.max_send_wr;
}

/*
 * A full queue is no mistake while a completion will come: the program polls, and posts again.
 * A queue full of WRs without completions never has room again. softnic may make room without a
 * completion, a NIC does not.
 */
static bool overruns(struct qp *qp, const struct post_batch *p, const struct ibv_send_wr *wr)
{
	bool has_signaled;
	uint32_t n = count_outstanding(qp, p->tail, &has_signaled);

	if (n < qp->init.cap.max_send_wr || (has_signaled && !has_room(qp, p)))
		return false;
	strict_find(STRICT_SEND_QUEUE,
		    "ibv_post_send(), QP 0x%x, wr_id %" PRIu64
		    ": the send queue of %u is full: no completion of a later signaled work "
		    "request was polled",
		    qp->ibv.qp_num, wr->wr_id, qp->init.cap.max_send_wr);
	return true;
}

static bool remote_ranges_overlap(const struct strict_wr *a, const struct strict_wr *b)
{
	return a->rkey == b->rkey && a->remote_addr < b->remote_addr + b->room &&
	       b->remote_addr < a->remote_addr + a->room;
}

static bool changes_remote_memory(const struct strict_wr *wr)
{
	return !wr->is_receive &&
	       (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
		is_atomic(wr->opcode));
}

static void find_unfenced(const struct strict_wr *wr, const struct strict_wr *read)
{
	uint64_t at = wr_is_writer(wr) ? 0 : wr_overlap(wr, read);

	if (at)
		strict_find(STRICT_FENCE,
			    "ibv_post_send(), QP 0x%x, wr_id %" PRIu64 ": byte 0x%" PRIx64
			    " is sent without IBV_SEND_FENCE, while the read of "
			    "wr_id %" PRIu64 " has still to store it",
			    wr_number(wr), wr->wr_id, at, read->wr_id);
	else if (read->opcode == IBV_WR_RDMA_READ && changes_remote_memory(wr) &&
		 !is_atomic(wr->opcode) && remote_ranges_overlap(wr, read))
		strict_find(STRICT_FENCE,
			    "ibv_post_send(), QP 0x%x, wr_id %" PRIu64 ": a write to 0x%" PRIx64
			    " without IBV_SEND_FENCE may overtake the "
			    "read of wr_id %" PRIu64,
			    wr_number(wr), wr->wr_id, wr->remote_addr, read->wr_id);
}

static void find_overlap(const struct strict_wr *wr, const struct strict_wr *other, uint64_t at)
{
	strict_find(STRICT_OVERLAP,
		    "%s, %s 0x%x, wr_id %" PRIu64 ": byte 0x%" PRIx64 " is %s, while wr_id %" PRIu64
		    " of %s 0x%x, which %s it, is not completed",
		    wr->is_receive ? "ibv_post_recv()" : "ibv_post_send()", wr->qp ? "QP" : "SRQ",
		    wr_number(wr), wr->wr_id, at, wr_is_writer(wr) ? "to be stored" : "sent",
		    other->wr_id, other->qp ? "QP" : "SRQ", wr_number(other),
		    wr_is_writer(other) ? "stores" : "sends");
}

/*
 * Returns whether other WRs use the same bytes. Several reads or receives into the same bytes are
 * no finding: benchmarks do so, and never look. A finding is told once for each WR.
 */
static bool compare_with_others(struct strict_wr *wr)
{
	struct strict_wr *other;
	bool is_shared = false, is_told = false;
	uint64_t at;

	for (other = wr_first(); other; other = other->next) {
		bool is_own_read = other->queue == wr->queue && wr_is_read(other);

		if (is_own_read && !wr->is_fenced)
			find_unfenced(wr, other);
		at = wr_overlap(wr, other);
		if (!at)
			continue;
		is_shared = true;
		if (is_own_read && !wr_is_writer(wr))
			continue;
		if (wr_is_writer(wr) != wr_is_writer(other) && !is_told) {
			find_overlap(wr, other, at);
			is_told = true;
		}
		veil_lift(other);
	}
	return is_shared;
}

static void check_atomic(const struct strict_wr *wr)
{
	if ((is_atomic(wr->opcode) || wr->opcode == IBV_WR_ATOMIC_WRITE) &&
	    wr->remote_addr % sizeof(uint64_t))
		strict_find(STRICT_ATOMIC,
			    "ibv_post_send(), QP 0x%x, wr_id %" PRIu64
			    ": the remote address 0x%" PRIx64 " is not a multiple of 8",
			    wr_number(wr), wr->wr_id, wr->remote_addr);
}

/* A fenced WR may send what an earlier read has stored: so it sends from the read's veil. */
static void send_from_veil(struct strict_wr *wr, uint32_t i, struct ibv_sge *sge)
{
	const struct ibv_sge *s = &wr->sges[i];
	struct strict_wr *read;
	uint64_t offset;

	for (read = wr_first(); read; read = read->next) {
		if (read->queue != wr->queue || !wr_is_read(read) || !read->veil ||
		    wr_find_piece(read, s->addr, s->length, &offset) < 0)
			continue;
		if (wr->sources[i])
			wr->sources[i]->users--;
		wr->sources[i] = read->veil;
		read->veil->users++;
		sge->addr = (uintptr_t)read->veil->bytes + offset;
		sge->lkey = veil_key(wr->pd);
	}
}

static void prepare_source(struct strict_wr *wr, struct posting *p)
{
	uint32_t i;

	wr->has_sum = wr->has_access && wr->num_sge;
	for (i = 0; i < wr->num_sge; i++) {
		if (wr->is_fenced && wr->has_access && wr->sges[i].length)
			send_from_veil(wr, i, &p->sges[i]);
		if (!wr->sources[i] && wr->has_sum)
			wr->has_sum = buffer_sum(wr->sges[i].addr, wr->sges[i].length, &wr->sum);
	}
}

/* Points the list that is posted to the veil. */
static void use_veil(const struct strict_wr *wr, struct ibv_sge *sges)
{
	uint64_t at = 0;
	uint32_t i;

	for (i = 0; wr->veil && i < wr->num_sge; i++) {
		sges[i] = (struct ibv_sge){ (uintptr_t)wr->veil->bytes + at, wr->sges[i].length,
					    veil_key(wr->pd) };
		at += wr->sges[i].length;
	}
}

static void prepare(struct strict_wr *wr, struct posting *p)
{
	bool is_shared = compare_with_others(wr);

	wr_add(wr);
	if (wr_is_writer(wr)) {
		veil_put_on(wr, !is_shared);
		use_veil(wr, p->sges);
	} else {
		prepare_source(wr, p);
	}
}

static void explain_refusal(const struct qp *qp, const struct ibv_send_wr *wr, const char *why)
{
	strict_find(STRICT_POST, "ibv_post_send(), QP 0x%x, wr_id %" PRIu64 ": %s", qp->ibv.qp_num,
		    wr->wr_id, why ? why : "the bind is invalid");
}

static void undo(struct strict_wr *record)
{
	wr_lock();
	veil_lift(record);
	wr_free(record);
	wr_unlock();
}

static int append(struct qp *qp, struct post_batch *p, const struct ibv_send_wr *wr)
{
	struct strict_wr *record;
	struct posting posting = { .wr = *wr };
	bool is_full;
	int rc;

	wr_lock();
	is_full = overruns(qp, p, wr);
	record = is_full ? NULL : record_send(qp, p->tail, wr);
	if (record) {
		if (!wr_is_local(wr->opcode) && wr->num_sge > 0 && wr->num_sge <= SHARED_SGES_MAX) {
			memcpy(posting.sges, wr->sg_list, wr->num_sge * sizeof(*posting.sges));
			posting.wr.sg_list = posting.sges;
		}
		check_atomic(record);
		prepare(record, &posting);
		posting.wr.wr_id = (uintptr_t)record;
	}
	wr_unlock();
	if (!record)
		return ENOMEM;
	p->why = NULL;
	rc = post_append(qp, p, &posting.wr);
	if (rc) {
		undo(record);
		if (rc == EINVAL)
			explain_refusal(qp, wr, p->why);
	}
	return rc;
}

static int post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct qp *qp = to_qp(ibv);

	if (!post_is_allowed(qp))
		strict_find(STRICT_STATE,
			    "ibv_post_send(), QP 0x%x, wr_id %" PRIu64
			    ": the queue pair is not in the states RTS, SQD, SQE and ERR",
			    ibv->qp_num, wr->wr_id);
	return post_list(qp, wr, bad_wr, append);
}

static struct strict_wr *record_recv(const void *queue, struct qp *qp, uint32_t pd,
				     const struct ibv_recv_wr *wr)
{
	struct strict_wr *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->queue = queue;
	r->qp = qp;
	r->pd = pd;
	r->wr_id = wr->wr_id;
	r->is_receive = true;
	copy_list(r, wr->sg_list, wr->num_sge);
	if (qp && qp_is_datagram(qp))
		limit(r, SOFTNIC_DATAGRAM_MAX + sizeof(struct ibv_grh));
	return r;
}

/* The record exists before the post: the completion may be polled before the post returns. */
static struct strict_wr *prepare_recv(const void *queue, struct qp *qp, uint32_t pd,
				      const struct ibv_recv_wr *wr, struct posting *p)
{
	struct strict_wr *record = record_recv(queue, qp, pd, wr);

	if (!record)
		return NULL;
	if (wr->num_sge > 0 && wr->num_sge <= SHARED_SGES_MAX)
		memcpy(p->sges, wr->sg_list, wr->num_sge * sizeof(*p->sges));
	wr_lock();
	prepare(record, p);
	wr_unlock();
	return record;
}

static void explain_refused_recv(const struct qp *qp, const struct ibv_recv_wr *wr)
{
	if (qp && load_acquire(&qp->state) == IBV_QPS_RESET)
		strict_find(STRICT_STATE,
			    "ibv_post_recv(), QP 0x%x, wr_id %" PRIu64
			    ": the queue pair is in the reset state",
			    qp->ibv.qp_num, wr->wr_id);
	else if (qp && qp->ibv.srq)
		strict_find(STRICT_POST,
			    "ibv_post_recv(), QP 0x%x, wr_id %" PRIu64
			    ": the queue pair has an SRQ",
			    qp->ibv.qp_num, wr->wr_id);
	else
		strict_find(STRICT_POST,
			    "%s, QP 0x%x, wr_id %" PRIu64
			    ": %d pieces are more than the queue's max_sge",
			    qp ? "ibv_post_recv()" : "ibv_post_srq_recv()", qp ? qp->ibv.qp_num : 0,
			    wr->wr_id, wr->num_sge);
}

static int post_one_recv(struct ibv_qp *qp, struct ibv_srq *srq, const struct ibv_recv_wr *wr)
{
	const void *queue = srq ? &to_srq(srq)->rq : to_qp(qp)->rq;
	uint32_t pd = srq ? srq->pd->handle : qp->pd->handle;
	struct ibv_recv_wr posted = *wr, *bad;
	struct strict_wr *record;
	struct posting p;
	int rc;

	record = prepare_recv(queue, srq ? NULL : to_qp(qp), pd, wr, &p);
	if (!record)
		return ENOMEM;
	posted.wr_id = (uintptr_t)record;
	posted.next = NULL;
	if (wr->num_sge > 0 && wr->num_sge <= SHARED_SGES_MAX)
		posted.sg_list = p.sges;
	rc = srq ? srq_post(srq, &posted, &bad) : recv_post(qp, &posted, &bad);
	if (rc)
		undo(record);
	if (rc == EINVAL)
		explain_refused_recv(srq ? NULL : to_qp(qp), wr);
	return rc;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int rc = 0;

	for (; wr && !rc; wr = wr->next) {
		rc = post_one_recv(qp, NULL, wr);
		if (rc)
			*bad_wr = wr;
	}
	return rc;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int rc = 0;

	for (; wr && !rc; wr = wr->next) {
		rc = post_one_recv(NULL, srq, wr);
		if (rc)
			*bad_wr = wr;
	}
	return rc;
}

void strict_wrap_context(struct ibv_context *context)
{
	if (!strict_level)
		return;
	context->ops.post_send = post_send;
	context->ops.post_recv = post_recv;
	context->ops.post_srq_recv = post_srq_recv;
}

post_fn *strict_post_append(void)
{
	return strict_level ? append : post_append;
}
