/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The donor's lock is held from a check to the end of its copy: a registration goes with that lock
 * held, so nothing is written after it has gone. The client can write to the buffer at any time,
 * also while it is read here: the length comes from the device.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/donor/donor.h"
#include "lib/base/error.h"
#include "lib/donor/conn.h"
#include "lib/donor/unload_rx.h"

#define TELL_MAX (WIRE_SLOTS / 4) /* writes done that the client is not told of, while more come */
#define SIGNAL_EVERY (WEIR_RETURNS_MAX / 2)

static struct wire_slot *slots_of(const struct weir_ring *ring)
{
	return (struct wire_slot *)ring->extent->addr;
}

/* A write with immediate takes a receive, and brings nothing along there. */
static int recv_post(struct ibv_qp *qp)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = WEIR_GATE_SLOT };

	return -ibv_post_recv(qp, &wr, &bad);
}

static int buffer_make(struct weir_donor *donor, struct weir_ring *ring, struct ibv_pd *pd,
		       struct weir_error *error)
{
	const size_t length = WIRE_SLOTS * sizeof(struct wire_slot);
	int ret;

	pthread_mutex_lock(&donor->lock);
	ret = weir_arena_take(&donor->arena, length, &ring->extent);
	pthread_mutex_unlock(&donor->lock);
	if (ret)
		return weir_fail(error, ret,
				 "the donor has no %zu bytes for what is to be unloaded", length);
	ring->mr = ibv_reg_mr(pd, ring->extent->addr, length,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return ring->mr ? 0 : weir_fail_memlock(error, "a buffer", length, -errno);
}

int weir_ring_open(struct weir_gate *gate, struct weir_error *error)
{
	struct weir_ring *ring = calloc(1, sizeof(*ring));
	int i, ret;

	if (!ring)
		return weir_fail(error, -ENOMEM, "the donor is out of memory");
	weir_copier_init(&ring->copier, TELL_MAX);
	gate->ring = ring;
	ret = buffer_make(gate->donor, ring, gate->donor->tenants[gate->tenant].pd, error);
	for (i = 0; !ret && i < WIRE_SLOTS; i++) {
		ret = recv_post(gate->id->qp);
		if (ret)
			weir_fail(error, ret, "the donor cannot post receives: %s", strerror(-ret));
	}
	return ret;
}

void weir_ring_close(struct weir_gate *gate)
{
	struct weir_ring *ring = gate->ring;

	if (!ring)
		return;
	if (ring->mr)
		ibv_dereg_mr(ring->mr);
	pthread_mutex_lock(&gate->donor->lock);
	if (ring->extent)
		weir_arena_give(&gate->donor->arena, ring->extent);
	pthread_mutex_unlock(&gate->donor->lock);
	free(ring);
	gate->ring = NULL;
}

void weir_ring_describe(const struct weir_ring *ring, struct wire_welcome *welcome)
{
	welcome->credits = WIRE_SLOTS;
	welcome->buffer = (uintptr_t)ring->extent->addr;
	welcome->rkey = ring->mr->rkey;
}

/* Copies what @slot says to where it says, if that is allowed. */
static int copy(struct weir_gate *gate, const struct wire_slot *slot, uint32_t length, uint32_t tag)
{
	struct weir_donor *donor = gate->donor;
	uint64_t addr;
	int ret;

	length = wire_slot_decode(slot, length, &addr);
	pthread_mutex_lock(&donor->lock);
	ret = weir_copier_copy(&gate->ring->copier, &donor->lender.umtt, gate->tenant, tag, addr,
			       slot->data, length);
	pthread_mutex_unlock(&donor->lock);
	return ret;
}

static void refuse(struct weir_gate *gate, uint32_t length, uint32_t tag)
{
	gate->donor->unload_refused++;
	weir_donor_log(gate->donor, WEIR_LOG_WARNING,
		       "refused an unloaded write peer=%llu client=%s rkey=%#x length=%u",
		       (unsigned long long)weir_peer_id(gate->peer), gate->name, tag, length);
}

int weir_ring_received(struct weir_gate *gate, const struct ibv_wc *wc)
{
	struct weir_ring *ring = gate->ring;
	uint32_t tag = ntohl(wc->imm_data);
	int ret;

	if (!ring || !gate->peer || wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM)
		return -EPROTO;
	if (recv_post(gate->id->qp))
		weir_gate_break(gate, "a receive cannot be posted");
	ret = copy(gate, &slots_of(ring)[ring->copier.seen % WIRE_SLOTS], wc->byte_len, tag);
	gate->donor->unloaded += !ret;
	if (ret == -EACCES)
		refuse(gate, wc->byte_len, tag);
	return 0;
}

void weir_ring_returned(struct weir_ring *ring)
{
	ring->returns -= SIGNAL_EVERY;
}

/* One that cannot be posted ends with the QP. */
static void send_return(struct weir_gate *gate, uint8_t pause_ms)
{
	struct weir_ring *ring = gate->ring;
	const struct wire_return told = { .done = ring->copier.seen,
					  .is_refused = ring->copier.is_refused,
					  .pause_ms = pause_ms };
	struct ibv_send_wr *bad, wr = {
		.wr_id = WEIR_GATE_RETURN,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = htonl(wire_return_encode(&told)),
	};

	if (++ring->unsignalled == SIGNAL_EVERY) {
		ring->unsignalled = 0;
		wr.send_flags = IBV_SEND_SIGNALED;
	}
	ring->returns++;
	weir_copier_told(&ring->copier);
	if (ibv_post_send(gate->id->qp, &wr, &bad))
		weir_gate_break(gate, "a return cannot be sent");
}

/* For how long the client is to unload nothing. */
static uint8_t pause_ms(struct weir_gate *gate)
{
	struct weir_donor *donor = gate->donor;
	uint8_t ms = weir_ceiling_pause_ms(&donor->ceiling, weir_cpu_ns(), weir_now_ns());

	donor->unload_pauses += ms > 0;
	return ms;
}

void weir_ring_answer(struct weir_gate *gate, bool more)
{
	struct weir_ring *ring = gate->ring;

	if (ring->returns < WEIR_RETURNS_MAX && weir_copier_tells(&ring->copier, more))
		send_return(gate, pause_ms(gate));
}
