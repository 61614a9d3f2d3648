// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * From work requests of verbs to those of the transport.
 */
#include <errno.h>

#include "softnic/verbs/ah.h"
#include "softnic/udp/neighbor.h"
#include "softnic/qp/resp.h"
#include "softnic/qp/sq.h"
#include "softnic/tap/peers.h"
#include "softnic/qp_far/far.h"

static enum roce_op op_of(enum ibv_wr_opcode op)
{
	if (op == FLUSH_OP)
		return ROCE_OP_READ; /* of no bytes: answered when all earlier writes are done */
	switch (op) {
	case IBV_WR_SEND_WITH_IMM:
		return ROCE_OP_SEND_IMM;
	case IBV_WR_SEND_WITH_INV:
		return ROCE_OP_SEND_INV;
	case IBV_WR_RDMA_WRITE:
		return ROCE_OP_WRITE;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return ROCE_OP_WRITE_IMM;
	case IBV_WR_RDMA_READ:
		return ROCE_OP_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return ROCE_OP_CMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return ROCE_OP_FETCH_ADD;
	case IBV_WR_ATOMIC_WRITE:
		return ROCE_OP_ATOMIC_WRITE;
	default:
		return ROCE_OP_SEND;
	}
}

int far_post(struct qp *qp, uint64_t path)
{
	uint32_t at = qp->far->posted;
	const struct send_wqe *wqe = &qp->sq.wqes[at & (qp->sq.size - 1)];
	struct roce_wqe to = {
		.id = at,
		.path = path,
		.op = op_of(wqe->opcode),
		.is_solicited = wqe->flags & IBV_SEND_SOLICITED,
		.is_fenced = wqe->flags & IBV_SEND_FENCE,
		.length = wqe->length,
		.imm = wqe->imm,
	};
	int rc;

	if (qp_is_datagram(qp)) {
		to.dest_qpn = wqe->ud.qpn;
		to.qkey = wqe->ud.qkey;
	} else {
		to.addr = wqe->remote_addr;
		to.rkey = wqe->rkey;
	}
	if (to.op == ROCE_OP_CMP_SWAP) {
		to.compare = wqe->compare_add;
		to.swap_add = wqe->swap;
	} else if (to.op == ROCE_OP_FETCH_ADD) {
		to.swap_add = wqe->compare_add;
	}
	rc = roce_qp_post(&qp->far->roce, &to);
	if (!rc)
		qp->far->posted++;
	return rc;
}

/* The transport of UD ends a work request when its packet is written. */
int far_send_datagram(struct qp *qp, const struct send_wqe *wqe, const struct av *av)
{
	struct far *f = qp->far;
	struct udp_path path = far_path(av);
	struct roce_completion c = { .status = ROCE_LOC_LEN };
	uint64_t unused;
	size_t size;

	if (!f)
		return IBV_WC_SUCCESS; /* lost: this process has no sockets */
	if (wqe->length > av->mtu)
		return IBV_WC_LOC_LEN_ERR;
	path.to.port = neighbor_port(&path, wqe->ud.qpn);
	if (!path.to.port)
		return RESP_ASKED;
	f->posted = qp->sq.done;
	if (far_post(qp, 0))
		return IBV_WC_LOC_QP_OP_ERR;
	send_begin();
	size = roce_qp_output(&f->roce, send_room(), &unused, softnic_loop_now_ns());
	if (size)
		send_packet(&path, size);
	send_end();
	far_count(qp, peers_get(&av->dgid));
	if (!roce_qp_completion(&f->roce, &c) || c.status != ROCE_SUCCESS) {
		roce_qp_start_sending(&f->roce);
		return IBV_WC_LOC_PROT_ERR;
	}
	return IBV_WC_SUCCESS;
}
