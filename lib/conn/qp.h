/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs that admit no RDMA until the peer has proven the key.
 *
 * When librdmacm connects a QP of its own, it admits remote writes, and also reads and atomics if
 * the connection may have any. Weir therefore creates QPs with ibv_create_qp() and modifies them
 * itself, with the connection manager's attributes and without access flags. Until the QP is
 * connected, librdmacm must not know of it: @id->qp is NULL.
 *
 * A device that gives a connected peer more than messages has gates. The QP's gate is closed until
 * weir_qp_open(). softnic has gates, as softnic/qp/gate.h declares, and is found by name.
 *
 *	connects				listens
 *						weir_qp_create()
 *	weir_qp_connect()
 *						RDMA_CM_EVENT_CONNECT_REQUEST
 *						weir_qp_create()
 *						weir_qp_accept()
 *	RDMA_CM_EVENT_CONNECT_RESPONSE
 *	weir_qp_establish()
 *						RDMA_CM_EVENT_ESTABLISHED
 *	weir_proof_open()			weir_proof_open()
 *
 * Hosts call weir_qp_create() alone; dialer.h, listener.h and proof.h do the rest.
 *
 * Once the QP is connected, @id->qp is set for rdma_disconnect(). The caller owns the QP: it calls
 * ibv_destroy_qp() and then clears @id->qp.
 *
 * Return of all: 0, or the negative errno of the call that failed.
 */
#ifndef WEIR_LIB_CONN_QP_H
#define WEIR_LIB_CONN_QP_H

#include <rdma/rdma_cma.h>

/**
 * weir_qp_create() - create a QP that can receive
 * @id: has a device: the route is resolved, or the id came with a request
 * @attr: as for ibv_create_qp(), which writes the real capacities back
 * @qp: receives the QP, in INIT: receives may be posted
 */
int weir_qp_create(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
		   struct ibv_qp **qp);

/**
 * weir_qp_open() - admit RDMA, and open the gate
 * @access: IBV_ACCESS_REMOTE_*, or 0 for messages alone
 *
 * Only weir_proof_open() calls this.
 */
int weir_qp_open(struct ibv_qp *qp, unsigned int access);

/**
 * weir_qp_connect() - ask for a connection of the QP
 * @param: as for rdma_connect(); qp_num and srq are filled in
 *
 * RDMA_CM_EVENT_CONNECT_RESPONSE follows if the other end accepts.
 */
int weir_qp_connect(struct rdma_cm_id *id, struct ibv_qp *qp, struct rdma_conn_param *param);

/**
 * weir_qp_establish() - connect the QP to the accepting end's QP
 *
 * On return the QP is connected; RDMA_CM_EVENT_ESTABLISHED does not arrive at this end.
 */
int weir_qp_establish(struct rdma_cm_id *id, struct ibv_qp *qp);

/**
 * weir_qp_accept() - connect the QP to the requesting end's QP
 * @param: as for rdma_accept(); qp_num and srq are filled in
 *
 * The caller has posted receives before: the peer may send at once.
 */
int weir_qp_accept(struct rdma_cm_id *id, struct ibv_qp *qp, struct rdma_conn_param *param);

#endif
