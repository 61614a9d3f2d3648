// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * One message at a time is in flight, so a number identifies it. The sender repeats a message
 * until it is answered, because either socket may be full. The receiver answers a repeated message
 * as before. The answer leaves before the program can see the message.
 *
 * A message that found no receive keeps its number, and stays in flight until the next attempt is
 * answered: a copy of it that was under way may yet find a receive.
 *
 * An open gate takes no message: the peer has the queue pair then, and copies. A message that was
 * in flight at the opening is answered so, and its sender sends it the other way.
 */
#include <errno.h>
#include <string.h>

#include "gate.h"
#include "resp.h"
#include "req.h"
#include "softnic/rq/srq.h"
#include "softnic/shm/client.h"
#include "softnic/shm/iov_list.h"
#include "softnic/verbs/nic.h"

/* Flags of a message, above the immediate in shm_msg.addr. */
#define HAS_IMM (1ull << 32)
#define IS_SOLICITED (1ull << 33)

/* The answer if no receive is posted; the lower bits are the RNR timer. */
enum { ANSWER_RNR = 1 << 8, RNR_TIMERS = 32 };
/* The answer if the gate is open, and the message was not taken before. */
enum { ANSWER_OPEN = 1 << 9 };

void gate_reset(struct qp *qp)
{
	qp->gate = (struct qp_gate){ .is_present = qp->gate.is_present };
	qp->gate_sender = (struct gate_sender){ 0 };
}

int softnic_gate_close(struct ibv_qp *ibv)
{
	struct qp *qp = to_qp(ibv);
	int rc = -EINVAL;

	pthread_mutex_lock(&nic.lock);
	pthread_mutex_lock(&qp->lock);
	if (qp->state == IBV_QPS_RESET && ibv->qp_type == IBV_QPT_RC) {
		qp->gate.is_present = true;
		rc = 0;
	}
	pthread_mutex_unlock(&qp->lock);
	pthread_mutex_unlock(&nic.lock);
	return rc;
}

void softnic_gate_open(struct ibv_qp *ibv)
{
	struct qp *qp = to_qp(ibv);

	pthread_mutex_lock(&nic.lock);
	pthread_mutex_lock(&qp->lock);
	if (gate_is_closed(qp)) {
		qp->gate.is_open = true;
		if (qp->client && qp_is_connected(qp))
			client_gate_opened(qp->client, qp);
	}
	pthread_mutex_unlock(&qp->lock);
	pthread_mutex_unlock(&nic.lock);
}

int gate_found(struct qp *qp, struct remote_qp *r)
{
	if (r != &qp->remote || qp->ibv.qp_type != IBV_QPT_RC)
		return -EPROTO;
	qp->gate_sender.is_told = r->is_gated && qp->gate_sender.asks;
	r->is_gated = true;
	return 0;
}

static void ask_for_queue_pair(struct qp *qp)
{
	const struct shm_msg ask = {
		.type = MSG_ASK_QP,
		.qpn = qp->remote.qpn,
		.from = qp->ibv.qp_num,
		.addr = qp->links,
	};

	peer_send(qp->remote.peer, &ask);
}

/* The answer resumes the send queue. */
static int ask_to_open(struct qp *qp, const struct send_wqe *wqe)
{
	struct gate_sender *s = &qp->gate_sender;

	if (s->is_told) {
		s->asks = s->is_told = false;
		return IBV_WC_REM_INV_REQ_ERR;
	}
	s->asks = !wr_is_send(wqe->opcode);
	ask_for_queue_pair(qp);
	return RESP_SILENT;
}

/* The queue pair came before the answer, unless the owner's socket was full. */
static int go_through(struct qp *qp)
{
	qp->gate_sender.number--;
	if (!qp->remote.is_gated)
		return RESP_MORE;
	ask_for_queue_pair(qp);
	return RESP_SILENT;
}

static int take_answer(struct qp *qp)
{
	struct gate_sender *s = &qp->gate_sender;

	s->has_answer = false;
	if (s->answer & ANSWER_RNR) {
		s->rnr_timer = s->answer % RNR_TIMERS;
		return RESP_RNR;
	}
	s->is_out = false;
	if (s->answer & ANSWER_OPEN)
		return go_through(qp);
	return s->answer == IBV_WC_SUCCESS || s->answer == IBV_WC_REM_INV_REQ_ERR ?
		       (int)s->answer :
		       IBV_WC_REM_OP_ERR;
}

/* Copies a list of this process. */
static bool gather(uint32_t pd, const struct ibv_sge *sges, uint32_t num_sge, void *bytes,
		   uint32_t length)
{
	const struct mr_view view = { nic.pub, NULL, pd, 0 };
	struct iovec here = { bytes, length };
	struct iov_list list;

	return iov_list_gather(&list, NULL, &view, 0, sges, num_sge, 0, length) &&
	       !copy_bytes(&nic.self, false, &here, 1, list.v, list.num);
}

static bool may_pass(const struct send_wqe *wqe)
{
	return (wqe->opcode == IBV_WR_SEND || wqe->opcode == IBV_WR_SEND_WITH_IMM) &&
	       wqe->length <= SHM_MSG_BYTES_MAX;
}

int gate_step(struct qp *qp, const struct send_wqe *wqe, const struct ibv_sge *sges,
	      const void *inlined)
{
	bool has_imm = wqe->opcode == IBV_WR_SEND_WITH_IMM;
	struct gate_sender *s = &qp->gate_sender;
	uint8_t bytes[SHM_MSG_BYTES_MAX];
	struct shm_msg m = {
		.type = MSG_GATE_SEND,
		.qpn = qp->remote.qpn,
		.from = qp->ibv.qp_num,
		.value = wqe->length,
		.addr = (has_imm ? HAS_IMM | wqe->imm : 0) |
			(wqe->flags & IBV_SEND_SOLICITED ? IS_SOLICITED : 0),
	};

	if (s->has_answer)
		return take_answer(qp);
	if (!may_pass(wqe))
		return ask_to_open(qp, wqe);
	if (wqe->flags & IBV_SEND_INLINE)
		memcpy(bytes, inlined, wqe->length);
	else if (!gather(qp->ibv.pd->handle, sges, wqe->num_sge, bytes, wqe->length))
		return IBV_WC_LOC_PROT_ERR;
	s->number += !s->is_out;
	s->is_out = s->awaits_any = true;
	m.channel = s->number;
	peer_send_bytes(qp->remote.peer, &m, bytes);
	return RESP_SILENT;
}

/* While the send queue waits for a receive, only the answer that the message was taken counts. */
static bool is_awaited(const struct gate_sender *s, const struct shm_msg *m)
{
	return s->is_out && s->number == m->channel && (s->awaits_any || !(m->value & ANSWER_RNR));
}

void gate_answered(struct shm_peer *peer, const struct shm_msg *m)
{
	struct gate_sender *s;
	struct qp *qp;

	pthread_mutex_lock(&nic.lock);
	qp = nic_qp(m->from);
	if (qp) {
		s = &qp->gate_sender;
		pthread_mutex_lock(&qp->lock);
		if (qp->remote.peer == peer && qp->remote.qpn == m->qpn && is_awaited(s, m)) {
			s->has_answer = true;
			s->awaits_any = false;
			s->answer = m->value;
			req_resume(qp);
		}
		pthread_mutex_unlock(&qp->lock);
	}
	pthread_mutex_unlock(&nic.lock);
}

/* Return: 0, -EAGAIN without a receive, or -EPROTO. */
static int take_receive(struct qp *qp, struct rq_receive *r)
{
	int rc = recv_queue_take(qp->rq, qp->attr.dest_qp_num, r);

	if (!rc && rq_should_tell(&qp->rq->ring))
		srq_check_limit(qp);
	return rc;
}

/* Fills the receive's buffers. Return: the status of the receive. */
static uint32_t fill(struct qp *qp, const struct rq_receive *r, const void *bytes,
		     uint32_t length)
{
	if (length > r->room)
		return IBV_WC_LOC_LEN_ERR;
	return recv_queue_fill(qp->rq, r, recv_pd(qp), 0, bytes, length) ?
		       IBV_WC_SUCCESS :
		       IBV_WC_LOC_PROT_ERR;
}

static uint32_t answer_to(uint32_t status)
{
	return status == IBV_WC_SUCCESS	    ? IBV_WC_SUCCESS :
	       status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR :
					      IBV_WC_REM_OP_ERR;
}

static void finish(struct qp *qp, const struct rq_receive *r, const struct shm_msg *m,
		   uint32_t status)
{
	struct cq *cq = to_cq(qp->ibv.recv_cq);
	const struct rq_result result = {
		.status = status,
		.opcode = IBV_WC_RECV,
		.flags = m->addr & HAS_IMM ? IBV_WC_WITH_IMM : 0,
		.byte_len = m->value,
		.imm = m->addr,
		.src_qp = qp->attr.dest_qp_num,
		.dest_qp = qp->ibv.qp_num,
		.done_ns = cq_stamp(cq->doorbell.at),
	};
	bool is_solicited = status != IBV_WC_SUCCESS || m->addr & IS_SOLICITED;

	if (rq_finish(&qp->rq->ring, r, qp->attr.dest_qp_num, &result, &qp->arrivals.ring))
		cq_ring_own(cq, qp->ibv.qp_num, 1, is_solicited);
}

static void answer(const struct shm_client *g, const struct shm_msg *m, uint32_t value)
{
	const struct shm_msg done = {
		.type = MSG_GATE_DONE,
		.qpn = m->qpn,
		.from = m->from,
		.channel = m->channel,
		.value = value,
	};

	shm_msg_send(g->fd, &done, NULL, 0);
}

static void take(struct shm_client *g, struct qp *qp, const struct shm_msg *m, const void *bytes)
{
	uint32_t status = IBV_WC_LOC_PROT_ERR;
	struct rq_receive receive;
	int rc = take_receive(qp, &receive);

	if (rc == -EAGAIN) {
		answer(g, m, ANSWER_RNR | qp->attr.min_rnr_timer);
		return;
	}
	if (!rc)
		status = fill(qp, &receive, bytes, m->value);
	qp->gate.taken++;
	qp->gate.answer = answer_to(status);
	answer(g, m, qp->gate.answer);
	if (!rc)
		finish(qp, &receive, m, status);
}

void gate_take(struct shm_client *g, const struct shm_msg *m, const void *bytes)
{
	struct qp *qp = nic_qp(m->qpn);

	if (!qp || qp->client != g || !qp->gate.is_present || qp->attr.dest_qp_num != m->from)
		return;
	pthread_mutex_lock(&qp->lock);
	if (qp_is_connected(qp) && m->channel == qp->gate.taken)
		answer(g, m, qp->gate.answer);
	else if (qp_is_connected(qp) && m->channel == qp->gate.taken + 1 && !gate_is_closed(qp))
		answer(g, m, ANSWER_OPEN);
	else if (qp_is_connected(qp) && m->channel == qp->gate.taken + 1)
		take(g, qp, m, bytes);
	pthread_mutex_unlock(&qp->lock);
}
