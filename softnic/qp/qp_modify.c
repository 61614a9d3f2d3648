// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The states of a queue pair, and the attributes that each transition needs.
 */
#include <errno.h>

#include "softnic/verbs/ah.h"
#include "softnic/control/fault.h"
#include "softnic/verbs/nic.h"
#include "gate.h"
#include "qp.h"
#include "softnic/rq/recv.h"
#include "req.h"
#include "softnic/shm/server.h"
#include "softnic/strict/strict.h"
#include "softnic/qp_far/far.h"
#include "softnic/xrc/xrc.h"
#include "sq.h"

enum {
	TO_INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT,
	TO_RTR_UC = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	TO_RTR_RC = TO_RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	TO_RTS_RC = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		    IBV_QP_MAX_QP_RD_ATOMIC,
	ANY_RC = IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER,
	IN_SQD_UC = IBV_QP_AV | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS,
	IN_SQD_RC = IN_SQD_UC | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		    IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	IN_SQD_UD = IBV_QP_PKEY_INDEX | IBV_QP_QKEY,
	FORBIDDEN = -1, /* as needed attributes: no such transition */
};

/* QP numbers and packet sequence numbers have 24 bits. */
enum { NUMBER_MAX = 0xffffff };

/* Required and optional attributes of a transition, for one transport. */
struct attr_masks {
	int needed, allowed;
};

static const struct qp_transition {
	enum ibv_qp_state from, to;
	struct attr_masks rc, uc, ud;
} transitions[] = {
	{ IBV_QPS_RESET,
	  IBV_QPS_INIT,
	  { TO_INIT | IBV_QP_ACCESS_FLAGS, 0 },
	  { TO_INIT | IBV_QP_ACCESS_FLAGS, 0 },
	  { TO_INIT | IBV_QP_QKEY, 0 } },
	{ IBV_QPS_INIT,
	  IBV_QPS_INIT,
	  { 0, TO_INIT | IBV_QP_ACCESS_FLAGS },
	  { 0, TO_INIT | IBV_QP_ACCESS_FLAGS },
	  { 0, TO_INIT | IBV_QP_QKEY } },
	{ IBV_QPS_INIT,
	  IBV_QPS_RTR,
	  { TO_RTR_RC, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	  { TO_RTR_UC, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	  { 0, IBV_QP_QKEY | IBV_QP_PKEY_INDEX } },
	{ IBV_QPS_RTR,
	  IBV_QPS_RTS,
	  { TO_RTS_RC, ANY_RC },
	  { IBV_QP_SQ_PSN, IBV_QP_ACCESS_FLAGS },
	  { IBV_QP_SQ_PSN, IBV_QP_QKEY } },
	{ IBV_QPS_RTS, IBV_QPS_RTS, { 0, ANY_RC }, { 0, IBV_QP_ACCESS_FLAGS }, { 0, IBV_QP_QKEY } },
	{ IBV_QPS_SQE,
	  IBV_QPS_RTS,
	  { FORBIDDEN, 0 },
	  { 0, IBV_QP_ACCESS_FLAGS },
	  { 0, IBV_QP_QKEY } },
	{ IBV_QPS_RTS,
	  IBV_QPS_SQD,
	  { 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	  { 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	  { 0, IBV_QP_EN_SQD_ASYNC_NOTIFY } },
	{ IBV_QPS_SQD, IBV_QPS_SQD, { 0, IN_SQD_RC }, { 0, IN_SQD_UC }, { 0, IN_SQD_UD } },
	{ IBV_QPS_SQD, IBV_QPS_RTS, { 0, ANY_RC }, { 0, IBV_QP_ACCESS_FLAGS }, { 0, IBV_QP_QKEY } },
};

static const struct attr_masks xrc_recv_to_rts = { IBV_QP_TIMEOUT | IBV_QP_SQ_PSN, ANY_RC };

static const struct attr_masks *masks_for(const struct qp_transition *t, enum ibv_qp_type type)
{
	if (type == IBV_QPT_XRC_SEND && t->to == IBV_QPS_RTR)
		return &t->uc; /* no attributes of a responder */
	if (type == IBV_QPT_XRC_RECV && t->from == IBV_QPS_RTR)
		return &xrc_recv_to_rts; /* none of a requester */
	return type == IBV_QPT_UD ? &t->ud : type == IBV_QPT_UC ? &t->uc : &t->rc;
}

/* The masks of a transition; NULL: there is none. */
static const struct attr_masks *find_masks(enum ibv_qp_type type, enum ibv_qp_state from,
					   enum ibv_qp_state to)
{
	static const struct attr_masks none = { 0, 0 };
	unsigned int i;

	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return &none;
	for (i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++)
		if (transitions[i].from == from && transitions[i].to == to)
			return masks_for(&transitions[i], type);
	return NULL;
}

static bool may_change(const struct ibv_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to,
		       int mask)
{
	const struct attr_masks *m = find_masks(qp->qp_type, from, to);
	int given = mask & ~(IBV_QP_STATE | IBV_QP_CUR_STATE);
	bool exists = m && m->needed != FORBIDDEN;

	if (exists && (given & m->needed) == m->needed && !(given & ~(m->needed | m->allowed)))
		return true;
	strict_refuse_modify(qp, from, to, mask, m ? m->needed : 0, m ? m->allowed : 0, exists);
	return false;
}

/*
 * A queue pair uses few of these rights, but programs pass the rights of their regions. Only newer
 * versions of verbs.h name the two flush rights.
 */
static bool rights_are_known(unsigned int access)
{
	const unsigned int flush = 1 << 8 | 1 << 9;
	const unsigned int known =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
		IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | flush | IBV_ACCESS_OPTIONAL_RANGE;

	return !(access & ~known);
}

static bool values_are_valid(const struct ibv_qp_attr *a, int mask)
{
	if ((mask & IBV_QP_PORT) && !device_has_port(a->port_num))
		return false;
	if ((mask & IBV_QP_PKEY_INDEX) && a->pkey_index)
		return false;
	if ((mask & IBV_QP_PATH_MTU) && (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096))
		return false;
	if ((mask & IBV_QP_ACCESS_FLAGS) && !rights_are_known(a->qp_access_flags))
		return false;
	if ((mask & IBV_QP_DEST_QPN) && a->dest_qp_num > NUMBER_MAX)
		return false;
	if (((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > SOFTNIC_RD_ATOMIC_MAX) ||
	    ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > SOFTNIC_RD_ATOMIC_MAX))
		return false;
	if ((mask & IBV_QP_TIMEOUT) && a->timeout > 31)
		return false;
	if (((mask & IBV_QP_RETRY_CNT) && a->retry_cnt > 7) ||
	    ((mask & IBV_QP_RNR_RETRY) && a->rnr_retry > 7))
		return false;
	return !(mask & IBV_QP_MIN_RNR_TIMER) || a->min_rnr_timer <= 31;
}

/* The path of a connected queue pair never leads to a multicast group. */
static int check_path(const struct ibv_qp *qp, const struct ibv_ah_attr *to)
{
	struct av av;
	int rc = ah_resolve(qp->context, to, &av);

	return rc ? rc : ah_is_multicast(&av.dgid) ? EINVAL : 0;
}

static int check_attr(const struct ibv_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to,
		      const struct ibv_qp_attr *attr, int mask)
{
	if (fault_is_gone())
		return EIO;
	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from)
		return EINVAL;
	if (!may_change(qp, from, to, mask) || !values_are_valid(attr, mask))
		return EINVAL;
	return mask & IBV_QP_AV ? check_path(qp, &attr->ah_attr) : 0;
}

/* As in the kernel, a new path moves a queue pair in SQD to the path's port. */
static bool path_is_of_its_port(const struct qp *qp, const struct ibv_qp_attr *a, int mask)
{
	if (!(mask & IBV_QP_AV))
		return true;
	if (mask & IBV_QP_PORT)
		return a->ah_attr.port_num == a->port_num;
	return qp->state == IBV_QPS_SQD || a->ah_attr.port_num == qp->attr.port_num;
}

/* Like a NIC, keep the lower 24 bits of a PSN: some programs pass more. */
static void copy_attr(struct ibv_qp_attr *to, const struct ibv_qp_attr *a, int mask)
{
	if (mask & IBV_QP_PKEY_INDEX)
		to->pkey_index = a->pkey_index;
	if (mask & IBV_QP_PORT)
		to->port_num = a->port_num;
	if (mask & IBV_QP_ACCESS_FLAGS)
		to->qp_access_flags = a->qp_access_flags;
	if (mask & IBV_QP_QKEY)
		to->qkey = a->qkey;
	if (mask & IBV_QP_AV) {
		to->ah_attr = a->ah_attr;
		to->port_num = a->ah_attr.port_num;
	}
	if (mask & IBV_QP_PATH_MTU)
		to->path_mtu = a->path_mtu;
	if (mask & IBV_QP_DEST_QPN)
		to->dest_qp_num = a->dest_qp_num;
	if (mask & IBV_QP_RQ_PSN)
		to->rq_psn = a->rq_psn & NUMBER_MAX;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = a->max_dest_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = a->min_rnr_timer;
	if (mask & IBV_QP_TIMEOUT)
		to->timeout = a->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		to->retry_cnt = a->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		to->rnr_retry = a->rnr_retry;
	if (mask & IBV_QP_SQ_PSN)
		to->sq_psn = a->sq_psn & NUMBER_MAX;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = a->max_rd_atomic;
	if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
		to->en_sqd_async_notify = a->en_sqd_async_notify;
}

void qp_drained(struct qp *qp)
{
	if (qp->attr.en_sqd_async_notify)
		async_raise(qp->ibv.context, &qp->events, IBV_EVENT_SQ_DRAINED);
	qp->attr.en_sqd_async_notify = 0;
}

/* Publish the attributes that the peer checks. The state comes last. */
static void publish_attr(struct qp *qp)
{
	struct shared_qp *s = qp->segment.qp;

	store_relaxed(&s->dest_qpn, qp->attr.dest_qp_num);
	store_relaxed(&s->access, qp->attr.qp_access_flags);
	store_relaxed(&s->qkey, qp->attr.qkey);
	store_relaxed(&s->reads, qp->attr.max_dest_rd_atomic);
	store_relaxed(&s->min_rnr_timer, qp->attr.min_rnr_timer);
	qp_list(qp);
	if (qp_is_connected(qp) && !far_is_connected(qp))
		store_ordered(&s->state, SHARED_QP_READY);
}

/*
 * The old peer keeps the old segment, marked as gone, and the next peer gets a new segment. The
 * CQs must not poll during the exchange.
 */
static int reset_qp(struct qp *qp)
{
	struct qp_segment fresh;
	int rc;

	rc = qp_segment_create(qp, &fresh);
	if (rc)
		return -rc;
	pthread_mutex_lock(&qp->lock);
	qp_set_state(qp, IBV_QPS_RESET);
	store_ordered(&qp->segment.qp->state, SHARED_QP_GONE);
	pthread_mutex_unlock(&qp->lock);
	qp_wait_for_copies(qp, 0);
	softnic_timer_disarm(&qp->timer);
	softnic_timer_disarm(&qp->quiet);

	cq_del(to_cq(qp->ibv.send_cq), &qp->sends);
	cq_del(to_cq(qp->ibv.recv_cq), &qp->recvs);
	pthread_mutex_lock(&nic.lock);
	pthread_mutex_lock(&qp->lock);
	remote_qp_drop_all(qp);
	far_destroy(qp);
	recv_forget(qp);
	qp_segment_destroy(&qp->segment);
	qp_segment_use(qp, &fresh);
	qp->client = NULL;
	qp->attr = (struct ibv_qp_attr){ 0 };
	sq_reset(qp);
	gate_reset(qp);
	pthread_mutex_unlock(&qp->lock);
	pthread_mutex_unlock(&nic.lock);
	cq_add(to_cq(qp->ibv.send_cq), &qp->sends, qp->ibv.qp_num);
	cq_add(to_cq(qp->ibv.recv_cq), &qp->recvs, qp->ibv.qp_num);
	return 0;
}

static void move_to_error(struct qp *qp)
{
	pthread_mutex_lock(&qp->lock);
	if (qp->state == IBV_QPS_RESET)
		qp_set_state(qp, IBV_QPS_INIT); /* the queues are empty */
	qp_error(qp);
	pthread_mutex_unlock(&qp->lock);
}

/* nic.lock and qp->lock held. Returns 0 or an errno, with nothing changed. */
static int apply_attr(struct qp *qp, const struct ibv_qp_attr *attr, int mask, enum ibv_qp_state to)
{
	bool connects = to == IBV_QPS_RTR, drains = to == IBV_QPS_SQD && qp->state != to;
	bool goes_on = to == IBV_QPS_RTS && qp->state == IBV_QPS_SQD;
	enum ibv_qp_state from = qp->state;
	struct ibv_qp_attr all = qp->attr;
	int rc = 0;

	copy_attr(&all, attr, mask);
	if (connects)
		rc = far_create(qp, &all);
	if (rc)
		return rc;
	qp->attr = all;
	qp_set_state(qp, to);
	qp->ibv.state = to;
	far_apply(qp, from);
	publish_attr(qp);
	if (connects && !qp_is_datagram(qp) && !qp->far) {
		qp->remote.qpn = qp->attr.dest_qp_num;
		qp->to = &qp->remote;
		server_qp_ready(qp);
		remote_qp_request(qp);
	}
	if (drains && !sq_has_begun(qp))
		qp_drained(qp);
	if (goes_on)
		softnic_loop_kick_work(&qp->work);
	return 0;
}

/* As the kernel does: programs give XRC's queue pairs the attributes of RC, and perftest does. */
static int without_needless(enum ibv_qp_type type, int mask)
{
	if (type == IBV_QPT_XRC_SEND)
		return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (type == IBV_QPT_XRC_RECV)
		return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	return mask;
}

int ibv_modify_qp(struct ibv_qp *as, struct ibv_qp_attr *attr, int attr_mask)
{
	struct qp *qp = xrc_opened(to_qp(as));
	struct ibv_qp *ibv = &qp->ibv;
	enum ibv_qp_state from = load_acquire(&qp->state), to = from;
	int rc;

	if (strict_is_destroyed(ibv->context, "ibv_modify_qp()"))
		return EINVAL;
	attr_mask = without_needless(ibv->qp_type, attr_mask);
	if (attr_mask & IBV_QP_STATE)
		to = attr->qp_state;
	rc = check_attr(ibv, from, to, attr, attr_mask);
	if (rc)
		return rc;
	if (to == IBV_QPS_RESET) {
		rc = from == IBV_QPS_RESET ? 0 : reset_qp(qp);
	} else if (to == IBV_QPS_ERR) {
		move_to_error(qp);
	} else {
		pthread_mutex_lock(&nic.lock);
		pthread_mutex_lock(&qp->lock);
		if (qp->state == from && path_is_of_its_port(qp, attr, attr_mask))
			rc = apply_attr(qp, attr, attr_mask, to);
		else
			rc = EINVAL; /* wrong port, or the state changed since the check */
		pthread_mutex_unlock(&qp->lock);
		pthread_mutex_unlock(&nic.lock);
	}
	if (!rc)
		as->state = ibv->state = to;
	return rc;
}
