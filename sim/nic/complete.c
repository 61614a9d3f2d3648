/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The ends of a connection, and completion of its work requests in the order posted. */
#include <errno.h>
#include <stdlib.h>

#include "sim/nic/stages.h"

static void cqe_lands(struct sim_event *event)
{
	struct sim_wqe *wqe = container_of(event, struct sim_wqe, event);
	struct sim_wc wc = { .id = wqe->wr.id, .qp = wqe->qp, .status = wqe->status };

	wqe->is_bound = false;
	sim_cq_push(wqe->qp->send_cq, &wc);
}

static void complete(struct sim_wqe *wqe)
{
	struct sim_nic *nic = wqe->qp->nic;

	if (wqe->wr.is_silent && !wqe->status) {
		wqe->is_bound = false;
		return;
	}
	nic->counts.cqes++;
	wqe->event.happen = cqe_lands;
	sim_clock_at(nic->clock, &wqe->event,
		     sim_pcie_write(nic, nic->clock->now_ps, (uint32_t)nic->profile->cqe_bytes));
}

void sim_wqe_done(struct sim_wqe *wqe)
{
	struct sim_qp *qp = wqe->qp;

	wqe->is_done = true;
	while (qp->head < qp->posted && qp->sq[qp->head % qp->depth].is_done)
		complete(&qp->sq[qp->head++ % qp->depth]);
	if (!sim_op_is_read(wqe->wr.op))
		return;
	qp->reads--;
	sim_qp_wants_pu(qp);
}

int sim_qp_init(struct sim_qp *qp, struct sim_nic *nic, struct sim_cq *send_cq,
		struct sim_cq *recv_cq, uint32_t depth, uint8_t class)
{
	*qp = (struct sim_qp){
		.nic = nic,
		.number = nic->nr_qps++,
		.class = class,
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.depth = depth,
		.fetch.happen = sim_fetch_over,
	};
	weir_list_init(&qp->link);
	sim_stream_init(&qp->requests, qp);
	sim_stream_init(&qp->answers, qp);
	qp->sq = calloc(depth, sizeof(*qp->sq));
	return qp->sq ? 0 : -ENOMEM;
}

void sim_qp_fini(struct sim_qp *qp)
{
	free(qp->sq);
}

void sim_qp_connect(struct sim_qp *a, struct sim_qp *b)
{
	a->peer = b;
	b->peer = a;
}
