/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "lib/base/symbol.h"
#include "lib/conn/qp.h"

/* As softnic/qp/gate.h declares them. */
static struct {
	int (*close)(struct ibv_qp *qp);
	void (*open)(struct ibv_qp *qp);
} gate;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_gate(void)
{
	weir_symbol_find("softnic_gate_close", &gate.close);
	weir_symbol_find("softnic_gate_open", &gate.open);
}

static int close_gate(struct ibv_qp *qp)
{
	pthread_once(&once, find_gate);
	return gate.close ? gate.close(qp) : 0;
}

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

/*
 * Enhanced connection establishment (ECE): the ends agree on options of their NICs' vendor.
 * librdmacm negotiates only for QPs of its own. Most devices have no options.
 */
static void offer_ece(struct rdma_cm_id *id, struct ibv_qp *qp)
{
	struct ibv_ece ece = { 0 };

	if (!ibv_query_ece(qp, &ece) && ece.vendor_id)
		rdma_set_local_ece(id, &ece);
}

/* A QP whose device refuses the peer's options connects without options. Return: whether set. */
static bool take_ece(struct rdma_cm_id *id, struct ibv_qp *qp)
{
	struct ibv_ece ece = { 0 };

	return !rdma_get_remote_ece(id, &ece) && ece.vendor_id && !ibv_set_ece(qp, &ece);
}

int weir_qp_create(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
		   struct ibv_qp **qp)
{
	struct ibv_qp *made = ibv_create_qp(pd, attr);
	int rc;

	if (!made)
		return -errno;
	rc = close_gate(made);
	if (!rc)
		rc = move(id, made, IBV_QPS_INIT, NULL);
	if (rc)
		ibv_destroy_qp(made);
	else
		*qp = made;
	return rc;
}

/* The gate first: the peer must not find RDMA admitted, but no memory to reach. */
int weir_qp_open(struct ibv_qp *qp, unsigned int access)
{
	struct ibv_qp_attr attr = { .qp_access_flags = access };

	if (gate.open)
		gate.open(qp);
	return -ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS);
}

int weir_qp_connect(struct rdma_cm_id *id, struct ibv_qp *qp, struct rdma_conn_param *param)
{
	param->qp_num = qp->qp_num;
	param->srq = !!qp->srq;
	offer_ece(id, qp);
	return rdma_connect(id, param) ? -errno : 0;
}

/* INIT again: only now is the path's partition key known. */
int weir_qp_establish(struct rdma_cm_id *id, struct ibv_qp *qp)
{
	int rc;

	take_ece(id, qp);
	rc = move(id, qp, IBV_QPS_INIT, NULL);
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
	bool has_ece;
	int rc;

	id->qp = NULL; /* or librdmacm would modify the QP, and negotiate ECE for it */
	has_ece = take_ece(id, qp);
	rc = move(id, qp, IBV_QPS_RTR, param);
	if (!rc)
		rc = move(id, qp, IBV_QPS_RTS, param);
	if (!rc && has_ece)
		offer_ece(id, qp);
	param->qp_num = qp->qp_num;
	param->srq = !!qp->srq;
	if (!rc && rdma_accept(id, param))
		rc = -errno;
	id->qp = qp;
	return rc;
}
