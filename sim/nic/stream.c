/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From the pipeline to the wire. The NIC reads payload from memory for one QP at a time, a quantum
 * a turn. A lower class gets a turn only when no higher class waits. Data goes to the port in
 * bursts while the NIC reads the rest. Messages without payload, and inline data, need no turn.
 */
#include "sim/nic/stages.h"

void sim_stream_init(struct sim_stream *stream, struct sim_qp *qp)
{
	*stream = (struct sim_stream){ .qp = qp };
	weir_list_init(&stream->link);
	weir_list_init(&stream->messages);
}

static bool is_answer(const struct sim_stream *stream)
{
	return stream == &stream->qp->answers;
}

static uint64_t wire_bytes(const struct sim_profile *p, const struct sim_packet *packet)
{
	uint64_t packets = packet->bytes ? (packet->bytes + p->mtu - 1) / p->mtu : 1;

	if (packet->kind == SIM_RESPONSE && !packet->bytes)
		return p->ack_bytes;
	return packet->bytes + packets * p->header_bytes;
}

/* From this port to the peer's: the first bit arrives while the last is still being sent. */
static void at_port(struct sim_event *event)
{
	struct sim_packet *packet = container_of(event, struct sim_packet, event);
	struct sim_qp *qp = packet->wqe->qp;
	struct sim_nic *from = packet->kind == SIM_REQUEST ? qp->nic : qp->peer->nic;
	struct sim_nic *to = packet->kind == SIM_REQUEST ? qp->peer->nic : qp->nic;
	uint64_t out_ps = sim_bytes_ps(wire_bytes(from->profile, packet), from->profile->link_mbps);
	uint64_t in_ps = sim_bytes_ps(wire_bytes(from->profile, packet), to->profile->link_mbps);
	uint64_t sent_ps = sim_server_take(&from->port_out, from->clock->now_ps, out_ps);
	uint64_t first_ps = sent_ps - out_ps + from->profile->wire_ps;

	from->counts.packets++;
	packet->event.happen = sim_packet_arrives;
	sim_clock_at(from->clock, &packet->event, sim_server_take(&to->port_in, first_ps, in_ps));
}

void sim_port_send(struct sim_nic *nic, struct sim_packet *packet, uint64_t at_ps)
{
	packet->event.happen = at_port;
	sim_clock_at(nic->clock, &packet->event, at_ps);
}

/* Sends one packet of the first message of @stream, not before @at_ps. */
static void send_packet(struct sim_stream *stream, uint32_t bytes, uint64_t at_ps)
{
	struct sim_wqe *wqe = weir_list_entry(stream->messages.next, struct sim_wqe, link);
	struct sim_nic *nic = stream->qp->nic;
	struct sim_packet *packet =
		sim_packet_get(nic, wqe, bytes, is_answer(stream) ? SIM_RESPONSE : SIM_REQUEST);

	if (at_ps < stream->ready_ps)
		at_ps = stream->ready_ps;
	stream->ready_ps = at_ps;
	if (is_answer(stream) || !sim_op_is_read(wqe->wr.op))
		packet->offset = wqe->wr.bytes - wqe->left;
	packet->is_first = !packet->offset;
	wqe->left -= bytes;
	packet->is_last = !wqe->left;
	if (packet->is_last)
		weir_list_del(&wqe->link);
	sim_port_send(nic, packet, at_ps);
}

static bool reads_nothing(const struct sim_stream *stream, const struct sim_wqe *wqe)
{
	return !wqe->left || (wqe->wr.is_inline && !is_answer(stream)) ||
	       sim_op_is_atomic(wqe->wr.op);
}

/* Sends messages that need no turn. Return: whether a message that needs a turn is left. */
static bool pass_quantum(struct sim_stream *stream)
{
	while (!weir_list_is_empty(&stream->messages)) {
		struct sim_wqe *wqe = weir_list_entry(stream->messages.next, struct sim_wqe, link);

		if (!reads_nothing(stream, wqe))
			return true;
		send_packet(stream, wqe->left, stream->qp->nic->clock->now_ps);
	}
	return false;
}

static void read_quantum(struct sim_stream *stream)
{
	struct sim_nic *nic = stream->qp->nic;
	struct sim_wqe *wqe = weir_list_entry(stream->messages.next, struct sim_wqe, link);
	uint64_t now_ps = nic->clock->now_ps, quantum = nic->profile->tx_quantum_bytes;

	if (quantum > wqe->left)
		quantum = wqe->left;
	while (quantum) {
		uint32_t burst = (uint32_t)(quantum < nic->profile->burst_bytes ?
						    quantum :
						    nic->profile->burst_bytes);

		quantum -= burst;
		send_packet(stream, burst, sim_pcie_read(nic, now_ps, burst));
	}
}

static struct sim_stream *next_turn(struct sim_nic *nic)
{
	int class;

	for (class = 0; class < SIM_CLASSES; class ++) {
		if (!weir_list_is_empty(&nic->streams[class]))
			return weir_list_entry(nic->streams[class].next, struct sim_stream, link);
	}
	return NULL;
}

/* Queues the stream at the end of its class, if it needs a turn. */
static void wants_turn(struct sim_stream *stream)
{
	if (pass_quantum(stream))
		weir_list_add_tail(&stream->qp->nic->streams[stream->qp->class], &stream->link);
}

static void take_turn(struct sim_nic *nic)
{
	struct sim_stream *stream = next_turn(nic);

	if (nic->reading || !stream)
		return;
	weir_list_del(&stream->link);
	nic->reading = stream;
	read_quantum(stream);
	sim_clock_at(nic->clock, &nic->turn, nic->pcie_read.free_ps);
}

void sim_stream_quantum_over(struct sim_event *event)
{
	struct sim_nic *nic = container_of(event, struct sim_nic, turn);

	wants_turn(nic->reading);
	nic->reading = NULL;
	take_turn(nic);
}

void sim_stream_put(struct sim_stream *stream, struct sim_wqe *wqe, uint32_t bytes)
{
	struct sim_nic *nic = stream->qp->nic;

	wqe->left = bytes;
	weir_list_add_tail(&stream->messages, &wqe->link);
	if (nic->reading == stream || !weir_list_is_empty(&stream->link))
		return;
	wants_turn(stream);
	take_turn(nic);
}
