// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "piece.h"
#include "req.h"
#include "resp.h"
#include "softnic/shm/client.h"
#include "softnic/verbs/nic.h"

int piece_step(struct qp *qp)
{
	struct piece_sender *s = &qp->sq.piece;
	const struct shm_msg m = {
		.type = MSG_TRAY_FULL,
		.qpn = qp->to->qpn,
		.from = qp->ibv.qp_num,
		.value = qp->sq.offset,
		.addr = qp->sq.receive.index,
		.channel = qp->sq.receive.position,
	};

	if (!s->has_answer) {
		peer_send(qp->to->peer, &m);
		return RESP_SILENT;
	}
	s->is_out = s->has_answer = false;
	return s->is_refused ? IBV_WC_REM_OP_ERR : IBV_WC_SUCCESS;
}

void piece_answered(struct shm_peer *peer, const struct shm_msg *m)
{
	struct piece_sender *s;
	struct qp *qp;

	pthread_mutex_lock(&nic.lock);
	qp = nic_qp(m->from);
	if (qp) {
		s = &qp->sq.piece;
		pthread_mutex_lock(&qp->lock);
		if (s->is_out && !s->has_answer && qp->to->peer == peer && qp->to->qpn == m->qpn &&
		    qp->sq.receive.position == m->channel && qp->sq.offset == m->value) {
			s->has_answer = true;
			s->is_refused = m->addr;
			req_resume(qp);
		}
		pthread_mutex_unlock(&qp->lock);
	}
	pthread_mutex_unlock(&nic.lock);
}

/* Has the sender of @m taken the receive, and not yet finished it? */
static bool is_taken(const struct recv_queue *rq, const struct shm_msg *m)
{
	const uint32_t index = (uint32_t)m->addr;
	bool done;

	return m->addr < rq->ring.size && recv_is_out(rq, index) &&
	       rq->posted[index].position == m->channel &&
	       rq_taker(&rq->ring, rq->posted[index].position, index, &done) == m->from && !done;
}

/* A piece that was taken before is not copied again: the tray may hold the next one. */
static bool take(const struct qp *end, const struct shm_msg *m, bool *is_refused)
{
	struct recv_queue *rq = end->rq;
	struct posted_recv *posted;
	const uint32_t index = (uint32_t)m->addr;

	if (!is_taken(rq, m))
		return false;
	posted = &rq->posted[index];
	*is_refused = false;
	if (m->value + TRAY_BYTES == posted->in_pieces)
		return true;
	if (m->value != posted->in_pieces)
		return false;
	*is_refused = !tray_empty(&end->segment.trays, rq, index, m->value, TRAY_BYTES,
				  recv_pd(end));
	if (!*is_refused)
		posted->in_pieces += TRAY_BYTES;
	return true;
}

void piece_take(const struct shm_client *g, struct qp *end, const struct shm_msg *m)
{
	struct shm_msg answer = {
		.type = MSG_TRAY_EMPTY,
		.qpn = m->qpn,
		.from = m->from,
		.value = m->value,
		.channel = m->channel,
	};
	bool is_answered, is_refused;

	if (!qp_is_srq_end(end))
		return;
	pthread_mutex_lock(&end->rq->lock);
	is_answered = take(end, m, &is_refused);
	pthread_mutex_unlock(&end->rq->lock);
	if (!is_answered)
		return;
	answer.addr = is_refused;
	shm_msg_send(g->fd, &answer, NULL, 0);
}
