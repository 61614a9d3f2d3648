// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The QP of an id: creation with CQs, as in librdmacm, and the transitions from INIT to RTS.
 */
#include <string.h>

#include "cm.h"
#include "softnic/verbs/device.h"

/*
 * 2.56 ms in the specification's table. The CM of a real host leaves 0, for 655 ms, but a receiver
 * on the same host posts again sooner.
 */
enum { MIN_RNR_TIMER = 16 };

static void attr_init(const struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	attr->pkey_index = 0;
	attr->port_num = SOFTNIC_PORT;
	attr->qp_access_flags = 0;
	if (id->state >= CM_REQ_SENT)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_WRITE;
	if (id->state >= CM_REQ_SENT && id->responder_resources)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

/* In any state, because a datagram QP takes no attributes from a connection. */
static void attr_datagram(struct ibv_qp_attr *attr, int *mask)
{
	attr->port_num = SOFTNIC_PORT;
	attr->qkey = RDMA_UDP_QKEY;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
}

void cm_qp_path(const struct cm_id *id, struct ibv_ah_attr *ah)
{
	const struct rdma_ib_addr *ib = &id->id.route.addr.addr.ibaddr;
	int index = softnic_gid_index(&ib->sgid);

	memset(ah, 0, sizeof(*ah));
	ah->is_global = 1;
	ah->port_num = SOFTNIC_PORT;
	ah->grh.dgid = ib->dgid;
	ah->grh.sgid_index = index < 0 ? 0 : (uint8_t)index;
	ah->grh.hop_limit = id->path.hop_limit;
	ah->grh.traffic_class = id->path.traffic_class;
}

static int attr_rtr(const struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	if (id->state < CM_REP_RCVD)
		return -EINVAL;
	cm_qp_path(id, &attr->ah_attr);
	attr->path_mtu = id->path.mtu;
	attr->dest_qp_num = id->remote_qpn;
	attr->rq_psn = id->psn;
	attr->max_dest_rd_atomic = id->responder_resources;
	attr->min_rnr_timer = MIN_RNR_TIMER;
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (id->id.qp_type == IBV_QPT_RC)
		*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return 0;
}

static int attr_rts(const struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	if (id->state < CM_REP_RCVD)
		return -EINVAL;
	attr->timeout = id->ack_timeout;
	attr->retry_cnt = id->retry_count;
	attr->rnr_retry = id->rnr_retry_count;
	attr->sq_psn = id->remote_psn;
	attr->max_rd_atomic = id->initiator_depth;
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (id->id.qp_type == IBV_QPT_RC)
		*mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			 IBV_QP_MAX_QP_RD_ATOMIC;
	return 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *rid, struct ibv_qp_attr *attr, int *mask)
{
	enum ibv_qp_state state = attr->qp_state;
	const struct cm_id *id = cm_id(rid);
	int rc = 0;

	memset(attr, 0, sizeof(*attr));
	attr->qp_state = state;
	pthread_mutex_lock(&cm_lock);
	if (cm_id_is_datagram(id))
		attr_datagram(attr, mask);
	else if (state == IBV_QPS_INIT)
		attr_init(id, attr, mask);
	else if (state == IBV_QPS_RTR)
		rc = attr_rtr(id, attr, mask);
	else if (state == IBV_QPS_RTS)
		rc = attr_rts(id, attr, mask);
	else
		rc = -EINVAL;
	pthread_mutex_unlock(&cm_lock);
	return cm_return(rc);
}

static int modify_to(struct cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(&id->id, &attr, &mask) < 0)
		return -errno;
	return -ibv_modify_qp(qp, &attr, mask);
}

/* A datagram QP needs no connection and goes to RTS at once. */
static int prepare_qp(struct cm_id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int rc = modify_to(id, qp, IBV_QPS_INIT);

	if (rc || !cm_id_is_datagram(id))
		return rc;
	rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	if (rc)
		return -rc;
	attr.qp_state = IBV_QPS_RTS;
	return -ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

/* INIT again, because the remote side's access rights are known only now. */
int cm_qp_connect(struct cm_id *id)
{
	struct ibv_qp *qp = id->id.qp;
	int rc;

	if (!qp || cm_id_is_datagram(id))
		return 0;
	rc = modify_to(id, qp, IBV_QPS_INIT);
	if (!rc)
		rc = modify_to(id, qp, IBV_QPS_RTR);
	if (!rc)
		rc = modify_to(id, qp, IBV_QPS_RTS);
	return rc;
}

int cm_qp_fail(struct cm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return id->id.qp ? -ibv_modify_qp(id->id.qp, &attr, IBV_QP_STATE) : 0;
}

static void destroy_cq(struct ibv_cq **cq, struct ibv_comp_channel **channel)
{
	if (*cq)
		ibv_destroy_cq(*cq);
	if (*channel)
		ibv_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
}

/* A program may have set one CQ for both directions, as rsockets do. */
static void destroy_cqs(struct rdma_cm_id *id)
{
	if (id->send_cq == id->recv_cq)
		id->send_cq = NULL;
	if (id->send_cq_channel == id->recv_cq_channel)
		id->send_cq_channel = NULL;
	destroy_cq(&id->recv_cq, &id->recv_cq_channel);
	destroy_cq(&id->send_cq, &id->send_cq_channel);
}

static int create_cq(struct rdma_cm_id *id, uint32_t cqe, struct ibv_cq **cq,
		     struct ibv_comp_channel **channel)
{
	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return -errno;
	*cq = ibv_create_cq(id->verbs, (int)cqe, id, *channel, 0);
	return *cq ? 0 : -errno;
}

/* Create the CQs that neither the user nor an earlier call has provided. */
static int complete_cqs(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int rc = 0;

	if (!attr->recv_cq && !id->recv_cq && attr->cap.max_recv_wr)
		rc = create_cq(id, attr->cap.max_recv_wr, &id->recv_cq, &id->recv_cq_channel);
	if (!rc && !attr->send_cq && !id->send_cq && attr->cap.max_send_wr)
		rc = create_cq(id, attr->cap.max_send_wr, &id->send_cq, &id->send_cq_channel);
	if (!attr->recv_cq)
		attr->recv_cq = id->recv_cq;
	if (!attr->send_cq)
		attr->send_cq = id->send_cq;
	return rc;
}

/* A QP with only one direction still needs a CQ for the other. */
static void share_cq(struct ibv_qp_init_attr_ex *attr)
{
	if (!attr->recv_cq)
		attr->recv_cq = attr->send_cq;
	if (!attr->send_cq)
		attr->send_cq = attr->recv_cq;
}

static void set_qp(struct rdma_cm_id *id, struct ibv_qp *qp)
{
	pthread_mutex_lock(&cm_lock);
	id->qp = qp;
	cm_id(id)->local_qpn = qp ? qp->qp_num : 0;
	cm_listing_update(cm_id(id));
	pthread_mutex_unlock(&cm_lock);
}

static int create_qp(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;
	int rc;

	rc = complete_cqs(id, attr);
	if (rc)
		return rc;
	share_cq(attr);
	if (id->srq && !attr->srq)
		attr->srq = id->srq;
	qp = ibv_create_qp_ex(id->verbs, attr);
	if (!qp)
		return -errno;
	rc = prepare_qp(cm_id(id), qp);
	if (rc) {
		ibv_destroy_qp(qp);
		return rc;
	}
	id->pd = qp->pd;
	set_qp(id, qp);
	return 0;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int rc;

	if (id->qp || !id->verbs)
		return cm_return(-EINVAL);
	if (attr->qp_type != id->qp_type)
		return cm_return(-EINVAL);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	if (attr->pd->context != id->verbs)
		return cm_return(-EINVAL);
	if ((id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq) ||
	    (id->send_cq && attr->send_cq && id->send_cq != attr->send_cq))
		return cm_return(-EINVAL);

	rc = create_qp(id, attr);
	if (rc)
		destroy_cqs(id);
	return cm_return(rc);
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	int rc = rdma_create_qp_ex(id, &ex);

	attr->send_cq = ex.send_cq;
	attr->recv_cq = ex.recv_cq;
	attr->srq = ex.srq;
	attr->cap = ex.cap;
	return rc;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct ibv_qp *qp = id->qp;

	set_qp(id, NULL);
	if (qp)
		ibv_destroy_qp(qp);
	destroy_cqs(id);
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq;

	if (!id->verbs || !(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE))
		return cm_return(-EINVAL);
	if (attr->srq_type != IBV_SRQT_BASIC)
		return cm_return(-EOPNOTSUPP);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	srq = ibv_create_srq_ex(id->verbs, attr);
	if (!srq)
		return -1;
	id->srq = srq;
	return 0;
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
	};
	int rc = rdma_create_srq_ex(id, &ex);

	attr->attr = ex.attr;
	return rc;
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (id->srq)
		ibv_destroy_srq(id->srq);
	id->srq = NULL;
	destroy_cqs(id);
}

int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece || !ece->vendor_id || ece->comp_mask)
		return cm_return(-EINVAL);
	cm_id(id)->local_ece = *ece;
	return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece)
		return cm_return(-EINVAL);
	*ece = cm_id(id)->remote_ece;
	return 0;
}
