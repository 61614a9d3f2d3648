/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From the doorbell to the pipeline. WQEs not carried by BlueFlame are read from memory, several at
 * once, and the QP's PU takes them in order. All PUs share the pipeline, which sets the message
 * rate of the NIC. A missing context stalls the pipeline for a while, and delays its own message
 * longer.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/nic/stages.h"

#define WQE_BYTES 64

static struct sim_wqe *wqe_at(const struct sim_qp *qp, uint64_t number)
{
	return &qp->sq[number % qp->depth];
}

static struct sim_pu *pu_of(const struct sim_qp *qp)
{
	return &qp->nic->pus[qp->number % qp->nic->profile->pus];
}

static void skip_fetched(struct sim_qp *qp)
{
	while (qp->fetched < qp->visible && wqe_at(qp, qp->fetched)->is_fetched)
		qp->fetched++;
}

/* One read at a time for each QP, of as many WQEs as possible. */
static void fetch(struct sim_qp *qp)
{
	struct sim_nic *nic = qp->nic;
	uint64_t left;

	skip_fetched(qp);
	left = qp->visible - qp->fetched;
	if (qp->fetching || !left)
		return;
	qp->fetching =
		(uint32_t)(left < nic->profile->fetch_wqes ? left : nic->profile->fetch_wqes);
	nic->counts.fetches++;
	/* The fetch overtakes payload reads: it uses bandwidth but does not wait for them. */
	sim_pcie_read(nic, nic->clock->now_ps, qp->fetching * WQE_BYTES);
	sim_clock_in(nic->clock, &qp->fetch,
		     2 * nic->profile->pcie_ps +
			     sim_bytes_ps(qp->fetching * WQE_BYTES, nic->profile->pcie_read_mbps));
}

void sim_fetch_over(struct sim_event *event)
{
	struct sim_qp *qp = container_of(event, struct sim_qp, fetch);

	for (; qp->fetching; qp->fetching--) {
		struct sim_wqe *wqe = wqe_at(qp, qp->fetched++);

		wqe->is_fetched = true;
		sim_wqe_cached(qp->nic, wqe);
	}
	fetch(qp);
	sim_qp_wants_pu(qp);
}

static void doorbell_arrives(struct sim_event *event)
{
	struct sim_wqe *first = container_of(event, struct sim_wqe, event);
	struct sim_qp *qp = first->qp;

	qp->visible += first->chain;
	if (first->is_fetched)
		sim_wqe_cached(qp->nic, first);
	fetch(qp);
	sim_qp_wants_pu(qp);
}

struct sim_wqe *sim_qp_put(struct sim_qp *qp, const struct sim_wr *wr)
{
	struct sim_wqe *wqe = wqe_at(qp, qp->posted);

	if (wqe->is_bound)
		return NULL;
	*wqe = (struct sim_wqe){ .wr = *wr, .qp = qp, .is_bound = true };
	weir_list_init(&wqe->link);
	qp->posted++;
	qp->nic->counts.reads += wr->op == SIM_OP_READ;
	return wqe;
}

void sim_qp_ring(struct sim_qp *qp, struct sim_wqe *first, uint32_t count, bool blueflame)
{
	struct sim_nic *nic = qp->nic;

	nic->counts.doorbells++;
	nic->counts.wqes += count;
	first->chain = count;
	first->is_fetched = blueflame;
	first->event.happen = doorbell_arrives;
	sim_clock_in(nic->clock, &first->event, nic->profile->pcie_ps);
}

static bool has_work(const struct sim_qp *qp)
{
	const struct sim_wqe *wqe = wqe_at(qp, qp->sent);

	if (qp->sent == qp->visible || !wqe->is_fetched)
		return false;
	return !sim_op_is_read(wqe->wr.op) || qp->reads < qp->nic->profile->reads_max;
}

static uint64_t service_ps(const struct sim_profile *p, uint8_t op)
{
	if (sim_op_is_read(op))
		return p->tx_read_ps;
	return op == SIM_OP_SEND ? p->tx_send_ps : p->tx_write_ps;
}

static void lookup_contexts(struct sim_qp *qp, const struct sim_wqe *wqe,
			    struct sim_cache_misses *looks)
{
	uint32_t i;

	sim_lookup_qp(qp->nic, qp, looks);
	sim_lookup_wqe(qp->nic, wqe, looks);
	for (i = 0; i < wqe->wr.nr_sge && !wqe->wr.is_inline; i++)
		sim_lookup_memory(qp->nic, wqe->wr.sge[i].key, wqe->wr.sge[i].addr,
				  wqe->wr.sge[i].length, looks);
}

static void leaves_pipeline(struct sim_event *event)
{
	struct sim_wqe *wqe = container_of(event, struct sim_wqe, event);

	sim_stream_put(&wqe->qp->requests, wqe, sim_op_is_read(wqe->wr.op) ? 0 : wqe->wr.bytes);
}

static void serve_wqe(struct sim_pu *pu, struct sim_qp *qp)
{
	struct sim_nic *nic = qp->nic;
	struct sim_wqe *wqe = wqe_at(qp, qp->sent++);
	uint64_t now_ps = nic->clock->now_ps, ps = service_ps(nic->profile, wqe->wr.op), done_ps;
	struct sim_cache_misses looks = { 0 };

	qp->reads += sim_op_is_read(wqe->wr.op);
	lookup_contexts(qp, wqe, &looks);
	done_ps = sim_server_take(&nic->pipe, now_ps, ps + looks.stall_ps);

	ps = now_ps + ps * nic->profile->pus;
	pu->is_busy = true;
	sim_clock_at(nic->clock, &pu->event, ps > done_ps ? ps : done_ps);

	done_ps += nic->profile->tx_latency_ps + looks.later_ps;
	if (done_ps < qp->out_ps)
		done_ps = qp->out_ps;
	qp->out_ps = done_ps;
	wqe->event.happen = leaves_pipeline;
	sim_clock_at(nic->clock, &wqe->event, done_ps);
}

static struct sim_qp *next_of(struct sim_pu *pu)
{
	int class;

	for (class = 0; class < SIM_CLASSES; class ++) {
		if (!weir_list_is_empty(&pu->ready[class]))
			return weir_list_entry(pu->ready[class].next, struct sim_qp, link);
	}
	return NULL;
}

static void run_pu(struct sim_pu *pu)
{
	struct sim_qp *qp = next_of(pu);

	if (pu->is_busy || !qp)
		return;
	weir_list_del(&qp->link);
	serve_wqe(pu, qp);
	sim_qp_wants_pu(qp);
}

void sim_pu_free(struct sim_event *event)
{
	struct sim_pu *pu = container_of(event, struct sim_pu, event);

	pu->is_busy = false;
	run_pu(pu);
}

void sim_qp_wants_pu(struct sim_qp *qp)
{
	struct sim_pu *pu = pu_of(qp);

	if (!weir_list_is_empty(&qp->link) || !has_work(qp))
		return;
	weir_list_add_tail(&pu->ready[qp->class], &qp->link);
	run_pu(pu);
}
