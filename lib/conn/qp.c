/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>

#include "lib/conn/qp.h"

/* @param: reads in flight on the connection; NULL: the number that both ends agreed on. */
static int move(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state,
		const struct rdma_conn_param *param)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(id, &attr, &mask))
		return -errno;
	attr.qp_access_flags = 0;
	if (param && state == IBV_QPS_RTR)
		attr.max_dest_rd_atomic = param->responder_resources;
	if (param && state == IBV_QPS_RTS)
		attr.max_rd_atomic = param->initiator_depth;
	return -ibv_modify_qp(qp, &attr, mask);
}

int weir_qp_create(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
		   struct ibv_qp **qp)
{
	struct ibv_qp *made = ibv_create_qp(pd, attr);
	int rc;

	if (!made)
		return -errno;
	rc = move(id, made, IBV_QPS_INIT, NULL);
	if (rc)
		ibv_destroy_qp(made);
	else
		*qp = made;
	return rc;
}

int weir_qp_connect(struct rdma_cm_id *id, const struct ibv_qp *qp, struct rdma_conn_param *param)
{
	param->qp_num = qp->qp_num;
	param->srq = !!qp->srq;
	return rdma_connect(id, param) ? -errno : 0;
}

/* INIT again: only now is the path's partition key known. */
int weir_qp_establish(struct rdma_cm_id *id, struct ibv_qp *qp)
{
	int rc = move(id, qp, IBV_QPS_INIT, NULL);

	if (!rc)
		rc = move(id, qp, IBV_QPS_RTR, NULL);
	if (!rc)
		rc = move(id, qp, IBV_QPS_RTS, NULL);
	if (!rc && rdma_establish(id))
		rc = -errno;
	if (!rc)
		id->qp = qp;
	return rc;
}

int weir_qp_accept(struct rdma_cm_id *id, struct ibv_qp *qp, struct rdma_conn_param *param)
{
	int rc = move(id, qp, IBV_QPS_RTR, param);

	if (!rc)
		rc = move(id, qp, IBV_QPS_RTS, param);
	if (rc)
		return rc;
	param->qp_num = qp->qp_num;
	param->srq = !!qp->srq;
	id->qp = NULL; /* or rdma_accept() would modify the QP again */
	rc = rdma_accept(id, param) ? -errno : 0;
	id->qp = qp;
	return rc;
}
