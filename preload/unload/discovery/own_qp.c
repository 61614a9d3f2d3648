/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "preload/next.h"
#include "preload/unload/discovery/own_qp.h"

#define TIMEOUT 14 /* 67 ms per attempt, if the program's own QP has no timeout */
#define RETRIES 7

int qp_path_query(struct ibv_qp *qp, struct qp_path *path)
{
	const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_PATH_MTU |
			 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			 IBV_QP_ACCESS_FLAGS;
	const struct ibv_ah_attr *ah = &path->attr.ah_attr;
	struct ibv_qp_init_attr init;

	if (NEXT(ibv_query_qp)(qp, &path->attr, mask, &init))
		return -ENOTCONN;
	if ((path->attr.qp_state != IBV_QPS_RTR && path->attr.qp_state != IBV_QPS_RTS) ||
	    !ah->is_global)
		return -ENOTCONN;
	return NEXT(ibv_query_gid)(qp->context, ah->port_num, ah->grh.sgid_index, &path->own) ?
		       -ENOTCONN :
		       0;
}

bool own_qp_is_in_error(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return !NEXT(ibv_query_qp)(qp, &attr, IBV_QP_STATE, &init) &&
	       (attr.qp_state == IBV_QPS_ERR || attr.qp_state == IBV_QPS_SQE);
}

struct ibv_qp *own_qp_create(struct ibv_pd *pd, struct ibv_cq *send, struct ibv_cq *recv,
			     struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr init = {
		.send_cq = send,
		.recv_cq = recv,
		.cap = *cap,
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = NEXT(ibv_create_qp)(pd, &init);

	if (!qp) {
		init.cap = *cap;
		init.cap.max_inline_data = 0;
		qp = NEXT(ibv_create_qp)(pd, &init);
	}
	cap->max_inline_data = init.cap.max_inline_data;
	return qp;
}

static int to_init(struct ibv_qp *qp, const struct qp_path *path)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = path->attr.pkey_index,
		.port_num = path->attr.ah_attr.port_num,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	return NEXT(ibv_modify_qp)(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int to_rtr(struct ibv_qp *qp, const struct qp_path *path, uint32_t qpn, uint32_t psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = path->attr.ah_attr,
		.path_mtu = path->attr.path_mtu,
		.dest_qp_num = qpn,
		.rq_psn = psn & PSN_BITS,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
	};

	return NEXT(ibv_modify_qp)(qp, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct ibv_qp *qp, const struct qp_path *path, uint32_t own_psn)
{
	const struct ibv_qp_attr *like = &path->attr;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = like->timeout ? like->timeout : TIMEOUT,
		.retry_cnt = like->timeout ? like->retry_cnt : RETRIES,
		.rnr_retry = RETRIES,
		.sq_psn = own_psn & PSN_BITS,
		.max_rd_atomic = 1,
	};

	return NEXT(ibv_modify_qp)(qp, &attr,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC);
}

int own_qp_connect(struct ibv_qp *qp, const struct qp_path *path, uint32_t qpn, uint32_t own_psn,
		   uint32_t psn)
{
	int rc = to_init(qp, path);

	if (!rc)
		rc = to_rtr(qp, path, qpn, psn);
	return rc ? rc : to_rts(qp, path, own_psn);
}
