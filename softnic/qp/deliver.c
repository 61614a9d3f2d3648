// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A datagram to a multicast group becomes one datagram per member. Known members get theirs at
 * once; the requester asks for the unknown ones all together. A group lookup is slow, so one
 * lookup serves every WR posted by then and finds every member attached before the post. A member
 * detached meanwhile may still get the datagram, as on a wire.
 */
#include <string.h>

#include "softnic/verbs/ah.h"
#include "deliver.h"
#include "gate.h"
#include "softnic/control/fault.h"
#include "unreliable.h"
#include "softnic/verbs/mw.h"
#include "softnic/qp_far/far.h"
#include "resp.h"
#include "sq.h"

/* To the remote queue pair qp->to. */
static int try_deliver(struct qp *qp, const struct send_wqe *wqe)
{
	const struct send_queue *sq = &qp->sq;
	size_t at = wqe - sq->wqes;
	const struct ibv_sge *sges = sq->sges + at * sq->max_sge;
	void *inlined = sq_inline_bytes(sq, at);
	int status = qp->to->shared || qp->to->is_gated ? fault_step(qp, wqe) : RESP_SILENT;

	if (!status && gate_is_used(qp))
		status = gate_step(qp, wqe, sges, inlined);
	else if (!status)
		status = resp_step(qp, wqe, sges, inlined);
	return qp_is_reliable(qp) ? status : unreliable_status(qp, status);
}

/* Was the group looked up after the current WR was posted? */
static bool is_known(const struct qp *qp, const union ibv_gid *group)
{
	const struct mcast_fanout *f = qp->sq.fanout;

	return f->is_known && (int32_t)(f->known_to - qp->sq.done) > 0 &&
	       !memcmp(&f->group, group, sizeof(*group));
}

static void look_up_members(struct qp *qp, const union ibv_gid *group)
{
	struct mcast_fanout *f = qp->sq.fanout;

	f->known_to = load_ordered(&qp->sq.tail);
	f->num_members = mcast_members(group, f->members);
	f->group = *group;
	f->is_known = true;
}

static void begin_fanout(struct qp *qp, const union ibv_gid *group)
{
	struct mcast_fanout *f = qp->sq.fanout;
	struct remote_qp *r;
	uint32_t i;

	if (!is_known(qp, group))
		look_up_members(qp, group);
	f->num_left = 0;
	for (i = 0; i < f->num_members; i++) {
		if (f->members[i] == qp->ibv.qp_num && qp->blocks_own)
			continue;
		r = remote_qp_get(qp, f->members[i]);
		if (r)
			f->left[f->num_left++] = r;
	}
	f->has_begun = true;
}

static int send_to_group(struct qp *qp, const struct send_wqe *wqe, const union ibv_gid *group)
{
	struct mcast_fanout *f = qp->sq.fanout;
	uint32_t i = 0;
	int status;

	if (!f->has_begun)
		begin_fanout(qp, group);
	while (i < f->num_left) {
		qp->to = f->left[i];
		status = try_deliver(qp, wqe);
		if (status == RESP_SILENT) {
			i++;
			continue;
		}
		if (status)
			return status;
		qp->sq.offset = 0;
		f->left[i] = f->left[--f->num_left];
	}
	return f->num_left ? RESP_SILENT : IBV_WC_SUCCESS;
}

static int send_datagram(struct qp *qp, const struct send_wqe *wqe)
{
	const struct av *av = &qp->sq.avs[wqe - qp->sq.wqes];

	if (wqe->length > SOFTNIC_DATAGRAM_MAX)
		return IBV_WC_LOC_LEN_ERR;
	if (av->is_far) {
		qp->to = NULL; /* no queue pair of this host to wait for */
		return far_send_datagram(qp, wqe, av);
	}
	if (wqe->ud.qpn == MCAST_QPN && ah_is_multicast(&av->dgid))
		return send_to_group(qp, wqe, &av->dgid);
	qp->to = remote_qp_get(qp, wqe->ud.qpn);
	return qp->to ? try_deliver(qp, wqe) : IBV_WC_LOC_QP_OP_ERR;
}

/* The connection and the SRQ must be known. The one that is missing is asked for. */
static int send_to_srq(struct qp *qp, const struct send_wqe *wqe)
{
	qp->to = &qp->remote;
	if (!qp->remote.shared)
		return RESP_SILENT;
	if (wqe->srqn == qp->remote.qpn)
		return IBV_WC_REM_INV_RD_REQ_ERR; /* the receiving queue pair's own number */
	qp->to = remote_qp_get(qp, wqe->srqn);
	if (!qp->to)
		return IBV_WC_LOC_QP_OP_ERR;
	return qp->to->is_refused ? IBV_WC_REM_INV_RD_REQ_ERR : try_deliver(qp, wqe);
}

int deliver_step(struct qp *qp)
{
	struct send_queue *sq = &qp->sq;
	struct send_wqe *wqe = &sq->wqes[sq->done & (sq->size - 1)];

	if (qp_is_datagram(qp))
		return send_datagram(qp, wqe);
	if (qp_names_srqs(qp))
		return send_to_srq(qp, wqe);
	qp->to = &qp->remote;
	return wr_is_local(wqe->opcode) ? mw_step(qp, wqe) : try_deliver(qp, wqe);
}

uint32_t deliver_waits_for(struct qp *qp, struct remote_qp ***ends)
{
	struct mcast_fanout *f = qp->sq.fanout;

	if (f && f->has_begun) {
		*ends = f->left;
		return f->num_left;
	}
	*ends = &qp->to;
	return qp->to ? 1 : 0;
}

void deliver_give_up(struct qp *qp)
{
	struct remote_qp **ends;
	uint32_t n = deliver_waits_for(qp, &ends);

	while (n)
		ends[--n]->is_mute = true;
}
