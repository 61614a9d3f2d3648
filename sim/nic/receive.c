/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From the wire to memory, at both ends. A packet passes the pipeline, in order with the other
 * packets of its QP, and then takes effect. A write is acknowledged before its data has landed, as
 * these NICs do. A later read still sees the data, because PCIe keeps the order.
 */
#include "sim/nic/stages.h"

static void take_request(struct sim_event *event);
static void take_answer(struct sim_event *event);

static uint64_t service_ps(const struct sim_profile *p, uint8_t op)
{
	if (sim_op_is_read(op))
		return p->rx_read_ps;
	return sim_op_wants_recv(op) ? p->rx_send_ps : p->rx_write_ps;
}

/* Passes a packet through the pipeline of the NIC at @end, then to @next. */
static void enter_pipeline(struct sim_packet *packet, struct sim_qp *end, uint64_t ps,
			   uint64_t latency_ps, const struct sim_cache_misses *looks,
			   void (*next)(struct sim_event *event))
{
	struct sim_nic *nic = end->nic;
	uint64_t done_ps = nic->clock->now_ps;

	/* A packet that takes no pipeline time does not queue. */
	if (ps + looks->stall_ps)
		done_ps = sim_server_take(&nic->pipe, done_ps, ps + looks->stall_ps);
	done_ps += latency_ps + looks->later_ps;
	if (done_ps < end->in_ps)
		done_ps = end->in_ps;
	end->in_ps = done_ps;
	packet->event.happen = next;
	sim_clock_at(nic->clock, &packet->event, done_ps);
}

static void request_arrives(struct sim_packet *packet)
{
	struct sim_wqe *wqe = packet->wqe;
	struct sim_qp *end = wqe->qp->peer;
	const struct sim_profile *p = end->nic->profile;
	struct sim_cache_misses looks = { 0 };
	uint64_t ps = 0;

	if (packet->is_first) {
		sim_lookup_qp(end->nic, end, &looks);
		ps = service_ps(p, wqe->wr.op);
	}
	if (wqe->wr.op != SIM_OP_SEND)
		sim_lookup_memory(end->nic, wqe->wr.rkey, wqe->wr.remote + packet->offset,
				  sim_op_is_read(wqe->wr.op) ? wqe->wr.bytes : packet->bytes,
				  &looks);
	enter_pipeline(packet, end, ps, p->rx_latency_ps, &looks, take_request);
}

static void answer_arrives(struct sim_packet *packet)
{
	struct sim_wqe *wqe = packet->wqe;
	struct sim_qp *end = wqe->qp;
	struct sim_cache_misses looks = { 0 };

	if (packet->is_last) {
		sim_lookup_qp(end->nic, end, &looks);
		sim_lookup_wqe(end->nic, wqe, &looks);
		sim_wqe_forgotten(end->nic, wqe);
	}
	enter_pipeline(packet, end, 0, end->nic->profile->ack_latency_ps, &looks, take_answer);
}

void sim_packet_arrives(struct sim_event *event)
{
	struct sim_packet *packet = container_of(event, struct sim_packet, event);

	if (packet->kind == SIM_REQUEST)
		request_arrives(packet);
	else
		answer_arrives(packet);
}

/* A message has taken effect: completes a receive, if the message consumed one. */
static void lands(struct sim_event *event)
{
	struct sim_packet *packet = container_of(event, struct sim_packet, event);
	struct sim_qp *end = packet->wqe->qp->peer;
	struct sim_wc wc = { .qp = end, .bytes = packet->wr.bytes, .is_recv = true };

	if (end->execute)
		end->execute(end->arg, &packet->wr);
	if (sim_op_wants_recv(packet->wr.op))
		sim_cq_push(end->recv_cq, &wc);
	sim_packet_put(end->nic, packet);
}

static void land_at(struct sim_packet *packet, uint64_t at_ps)
{
	packet->wr = packet->wqe->wr;
	packet->event.happen = lands;
	sim_clock_at(packet->wqe->qp->nic->clock, &packet->event, at_ps);
}

static void acknowledge(struct sim_wqe *wqe)
{
	struct sim_nic *nic = wqe->qp->peer->nic;

	sim_port_send(nic, sim_packet_get(nic, wqe, 0, SIM_RESPONSE), nic->clock->now_ps);
}

/* The acknowledgement goes first: the sender may be done with the WQE before the data lands. */
static void take_data(struct sim_packet *packet, struct sim_qp *end)
{
	struct sim_nic *nic = end->nic;
	uint64_t now_ps = nic->clock->now_ps, landed_ps;

	landed_ps = sim_pcie_write(nic, now_ps, packet->bytes);
	if (!packet->is_last) {
		sim_packet_put(nic, packet);
		return;
	}
	acknowledge(packet->wqe);
	if (sim_op_wants_recv(packet->wqe->wr.op)) {
		nic->counts.cqes++;
		landed_ps = sim_pcie_write(nic, now_ps, (uint32_t)nic->profile->cqe_bytes);
	}
	land_at(packet, landed_ps);
}

/* Time when all earlier writes, of any QP, are in memory: no PCIe read passes a write. */
static uint64_t landed_ps(const struct sim_nic *nic)
{
	return nic->pcie_write.free_ps + nic->profile->pcie_ps;
}

static void answer_read(struct sim_packet *packet, struct sim_qp *end)
{
	struct sim_nic *nic = end->nic;
	uint64_t at_ps = nic->clock->now_ps + nic->profile->pcie_ps;

	if (at_ps < landed_ps(nic))
		at_ps = landed_ps(nic);
	if (end->answers.ready_ps < at_ps)
		end->answers.ready_ps = at_ps;
	sim_stream_put(&end->answers, packet->wqe, packet->wqe->wr.bytes);
	land_at(packet, at_ps);
}

static void atomic_is_over(struct sim_event *event)
{
	struct sim_packet *packet = container_of(event, struct sim_packet, event);
	struct sim_qp *end = packet->wqe->qp->peer;

	packet->wr = packet->wqe->wr;
	sim_stream_put(&end->answers, packet->wqe, packet->wr.bytes);
	lands(event);
}

static void begin_atomic(struct sim_packet *packet, struct sim_qp *end)
{
	struct sim_nic *nic = end->nic;
	uint64_t from_ps = nic->clock->now_ps;

	if (from_ps < landed_ps(nic))
		from_ps = landed_ps(nic);
	packet->event.happen = atomic_is_over;
	sim_clock_at(nic->clock, &packet->event,
		     sim_server_take(&nic->atomics, from_ps, nic->profile->atomic_ps));
}

/* Whether a message may be taken: it finds a receive or needs none. */
static bool takes_recv(const struct sim_packet *packet, struct sim_qp *end)
{
	if (!packet->is_first || !sim_op_wants_recv(packet->wqe->wr.op))
		return true;
	if (!end->recvs)
		return false;
	end->recvs--;
	return true;
}

/*
 * A message that finds no receive is sent again after a while, with all later messages. The model
 * holds the message here for the same time; later messages then queue behind it.
 */
static bool stalls(struct sim_packet *packet, struct sim_qp *end)
{
	struct sim_nic *nic = end->nic;

	if (nic->clock->now_ps >= end->stalled_ps) {
		if (takes_recv(packet, end))
			return false;
		nic->counts.rnrs++;
		end->stalled_ps =
			nic->clock->now_ps + nic->profile->rnr_ps + 2 * nic->profile->wire_ps;
	}
	sim_clock_at(nic->clock, &packet->event, end->stalled_ps);
	return true;
}

static void take_request(struct sim_event *event)
{
	struct sim_packet *packet = container_of(event, struct sim_packet, event);
	struct sim_qp *end = packet->wqe->qp->peer;

	if (stalls(packet, end))
		return;
	if (sim_op_is_atomic(packet->wqe->wr.op))
		begin_atomic(packet, end);
	else if (sim_op_is_read(packet->wqe->wr.op))
		answer_read(packet, end);
	else
		take_data(packet, end);
}

/* The CQE is written after the data. */
static void take_answer(struct sim_event *event)
{
	struct sim_packet *packet = container_of(event, struct sim_packet, event);
	struct sim_nic *nic = packet->wqe->qp->nic;

	if (packet->bytes)
		sim_pcie_write(nic, nic->clock->now_ps, packet->bytes);
	if (packet->is_last)
		sim_wqe_done(packet->wqe);
	sim_packet_put(nic, packet);
}
