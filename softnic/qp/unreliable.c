// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A network loses a message to a missing queue pair. Here the first send to a queue pair requests
 * the queue pair and waits for the answer. Without an answer in time, this message and later ones
 * are dropped until the answer comes.
 */
#include "unreliable.h"
#include "softnic/verbs/nic.h"
#include "req.h"
#include "resp.h"

int unreliable_status(struct qp *qp, int status)
{
	struct remote_qp *r = qp->to;
	const struct shm_msg complaint = {
		.type = MSG_QP_ERROR,
		.qpn = r->qpn,
		.from = qp->ibv.qp_num,
	};

	switch (status) {
	case RESP_MORE:
	case RESP_LATER:
	case RESP_STUCK:
	case IBV_WC_LOC_LEN_ERR:
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_QP_OP_ERR:
		return status;
	case RESP_SILENT:
		if (r->shared ? remote_qp_is_gone(r) : !r->is_refused && !r->is_mute)
			return RESP_SILENT;
		r->is_refused = r->was_requested_again = false;
		break;
	case IBV_WC_REM_OP_ERR:
		/* If the receive itself was at fault, it is finished already. */
		if (!qp->sq.has_receive)
			peer_send(r->peer, &complaint);
		break;
	}
	resp_give_back(qp);
	return status == IBV_WC_WR_FLUSH_ERR ? status : IBV_WC_SUCCESS;
}

void unreliable_error(struct qp *qp)
{
	if (qp->state != IBV_QPS_RTS)
		return;
	qp_set_state(qp, IBV_QPS_SQE);
	req_flush(qp);
}

/* The client is dead or disconnected. A disconnected client finds its receives taken back. */
static bool take_back_receives(struct qp *qp, uint32_t slot)
{
	const struct copy_guards *guards = &qp->segment.guards;
	bool found = false;
	uint32_t i, user;

	for (i = 0; i < guards->num; i++) {
		user = load_acquire(&guards->at[i].user);
		if (!user || user >> SOFTNIC_QP_INDEX_BITS != slot)
			continue;
		store_release(&guards->at[i].user, 0);
		found = true;
	}
	if (found)
		recv_take_back(qp, slot);
	return found;
}

void unreliable_client_ended(struct qp *qp, const struct shm_client *client, uint32_t slot)
{
	if (qp->client == client)
		qp->client = NULL;
	/* The client may have died between finishing a receive and ringing. */
	if (take_back_receives(qp, slot))
		cq_ring_for_dead_peer(to_cq(qp->ibv.recv_cq), qp->ibv.qp_num);
}

void unreliable_peer_ended(struct qp *qp, struct shm_peer *peer)
{
	pthread_mutex_lock(&qp->lock);
	if (remote_qp_drop_peer(qp, peer))
		req_resume(qp);
	pthread_mutex_unlock(&qp->lock);
}
