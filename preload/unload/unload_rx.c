/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device's lock is held from a check to the end of its copy, and where a registration goes:
 * nothing is written after it has gone. The peer can write to the buffer at any time, also while it
 * is read here: the length comes from the device.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "preload/unload/clock.h"
#include "preload/unload/discovery/own_qp.h"
#include "preload/unload/hooks/device.h"
#include "preload/unload/memory.h"
#include "preload/unload/hooks/next.h"
#include "preload/unload/unload_rx.h"
#include "preload/unload/diag.h"
#include "preload/unload/slot_pool.h"
#include "preload/unload/hooks/tracked_qp.h"

#define TELL_MAX (WIRE_SLOTS / 4) /* writes done that the peer is not told of, while more come */
#define RETURNS_MAX WIRE_SLOTS
#define SIGNAL_EVERY (RETURNS_MAX / 4)
#define WCS 16

enum { WR_SLOT = 1, WR_RETURN, WR_LAST };

static int recv_post(struct ring *ring)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = WR_SLOT };

	return ibv_post_recv(ring->qp, &wr, &bad);
}

static int parts_make(struct ring *ring)
{
	struct ibv_pd *pd = device_pd(ring->device);
	struct ibv_qp_cap cap = {
		.max_send_wr = RETURNS_MAX + 1, .max_recv_wr = WIRE_SLOTS, .max_send_sge = 1,
		.max_recv_sge = 1, .max_inline_data = sizeof(uint64_t),
	};

	ring->slots = slots_take();
	if (!ring->slots || !pd)
		return -ENOMEM;
	ring->mr = next_reg_mr(pd, ring->slots, SLOTS_BYTES,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	ring->cq = NEXT(ibv_create_cq)(pd->context, WIRE_SLOTS + RETURNS_MAX + 1, NULL,
				       ring->device->channel, 0);
	if (!ring->mr || !ring->cq)
		return -ENOMEM;
	ring->qp = connect_make(pd, ring->cq, ring->cq, &cap);
	/* A return is taken from nowhere but the work request. */
	return ring->qp && cap.max_inline_data >= sizeof(uint64_t) ? 0 : -ENOMEM;
}

/* The peer sends nothing before it has the answer. */
static int parts_connect(struct ring *ring, const struct path *path, uint32_t psn)
{
	int i, err = connect_to(ring->qp, path, ring->offer.qpn, psn, ring->offer.psn);

	for (i = 0; !err && i < WIRE_SLOTS; i++)
		err = recv_post(ring);
	return err ? err : ring->device->ops.req_notify_cq(ring->cq, 0);
}

static void parts_free(struct ring *ring)
{
	if (ring->qp)
		NEXT(ibv_destroy_qp)(ring->qp);
	if (ring->cq)
		NEXT(ibv_destroy_cq)(ring->cq);
	if (ring->mr)
		NEXT(ibv_dereg_mr)(ring->mr);
	slots_give(ring->slots);
	free(ring);
}

static void answer(struct ring *ring, uint32_t psn)
{
	ring->answer = ring->offer;
	ring->answer.type = WIRE_OFFER_TAKEN;
	ring->answer.addr = (uintptr_t)ring->slots;
	ring->answer.rkey = ring->mr->rkey;
	ring->answer.qpn = ring->qp->qp_num;
	ring->answer.psn = psn;
}

struct ring *ring_open(const struct watched *w, const struct path *path,
		       const struct wire_offer *offer)
{
	struct ring *ring;
	uint32_t psn;
	int err;

	if (connect_random(&psn, sizeof(psn)))
		return NULL;
	psn &= PSN_BITS;
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return NULL;
	ring->device = w->device;
	ring->offer = *offer;
	ring->program = w->qp;
	ring->pd = w->qp->pd->handle;
	weir_copier_init(&ring->copier, TELL_MAX);
	err = parts_make(ring);
	if (!err)
		err = parts_connect(ring, path, psn);
	if (err) {
		parts_free(ring);
		return NULL;
	}
	answer(ring, psn);
	ring->next = w->device->rings;
	w->device->rings = ring;
	return ring;
}

/* What the map allows, and the program's mappings do, too: else it is refused. */
static int copy(struct ring *ring, uint32_t tag, const struct wire_slot *slot, uint32_t length,
		uint64_t addr)
{
	struct weir_copier *copier = &ring->copier;
	int err = weir_copier_check(copier, &ring->device->remote, ring->pd, tag, addr, length);

	if (!err && !memory_is_writable(addr, length))
		return weir_copier_refuse(copier);
	if (!err)
		weir_copier_store(copier, addr, slot->data, length);
	return err;
}

static void received(struct ring *ring, const struct ibv_wc *wc)
{
	const struct wire_slot *slot = &ring->slots[ring->copier.seen % WIRE_SLOTS];
	uint32_t length;
	uint64_t addr;
	int err;

	ring->has_failed |= wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM || recv_post(ring);
	if (ring->has_failed)
		return;
	/* The first one is empty, and only asks. */
	if (!ring->copier.seen && !wc->byte_len) {
		ring->copier.owes = true;
		return;
	}
	length = wire_slot_decode(slot, wc->byte_len, &addr);
	err = copy(ring, ntohl(wc->imm_data), slot, length, addr);
	if (!err)
		COUNT(copied);
	else if (err == -EACCES)
		COUNT(refused);
}

static void tell(struct ring *ring, uint8_t pause_ms, bool is_last)
{
	const struct wire_return told = { .done = ring->copier.seen,
					  .is_refused = ring->copier.is_refused,
					  .pause_ms = pause_ms };
	uint64_t word = wire_return_word(&told);
	struct ibv_sge sge = { .addr = (uintptr_t)&word, .length = sizeof(word) };
	struct ibv_send_wr *bad, wr = {
		.wr_id = is_last ? WR_LAST : WR_RETURN,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE | (is_last ? IBV_SEND_SIGNALED : 0),
		.wr.rdma = { ring->offer.addr, ring->offer.rkey },
	};

	if (++ring->unsignalled == SIGNAL_EVERY) {
		ring->unsignalled = 0;
		wr.send_flags |= IBV_SEND_SIGNALED;
	}
	ring->returns++;
	weir_copier_told(&ring->copier);
	RETURN_SENT();
	ring->has_failed |= ring->device->ops.post_send(ring->qp, &wr, &bad) != 0;
}

/* For how long the peer is to unload nothing. */
static uint8_t pause_ms(struct weir_ceiling *ceiling)
{
	uint8_t ms = weir_ceiling_pause_ms(ceiling, clock_cpu_ns(), clock_ns());

	if (ms)
		COUNT(pauses);
	return ms;
}

/* @more: further slots are there already. */
static void tell_news(struct ring *ring, struct weir_ceiling *ceiling, bool more)
{
	if (!ring->has_failed && ring->returns < RETURNS_MAX && weir_copier_tells(&ring->copier, more))
		tell(ring, pause_ms(ceiling), false);
}

static void completed(struct ring *ring, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		ring->has_failed = true;
	else if (wc->wr_id == WR_SLOT)
		received(ring, wc);
	else if (wc->wr_id == WR_RETURN)
		ring->returns -= SIGNAL_EVERY;
	else if (wc->wr_id == WR_LAST)
		ring->has_ended = true;
}

/* A QP that has fallen into an error by itself takes nothing any more. */
static void refuse_if_ended(struct ring *ring)
{
	uint64_t now_ns = clock_ns();

	if (ring->copier.is_refused || now_ns - ring->asked_ns < CONNECT_ASK_NS)
		return;
	ring->asked_ns = now_ns;
	ring->copier.is_refused = connect_has_ended(ring->program);
}

uint32_t ring_serve(struct ring *ring, struct weir_ceiling *ceiling)
{
	struct ibv_wc wcs[WCS];
	int i, n;

	n = ring->has_failed ? 0 : ring->device->ops.poll_cq(ring->cq, WCS, wcs);
	if (n > 0)
		refuse_if_ended(ring);
	for (i = 0; i < n; i++)
		completed(ring, &wcs[i]);
	/* Of as many as were asked for some may have been returns: the last news may be old by now. */
	tell_news(ring, ceiling, n == WCS);
	return n > 0 ? (uint32_t)n : 0;
}

void ring_arm(struct ring *ring)
{
	if (!ring->has_failed)
		ring->device->ops.req_notify_cq(ring->cq, 0);
}

void ring_retire(struct ring *ring)
{
	if (!ring || ring->is_ending)
		return;
	ring->is_ending = true;
	ring->copier.is_refused = true;
	if (!ring->has_failed)
		tell(ring, 0, true);
}

bool ring_is_over(const struct ring *ring)
{
	return ring->is_ending && (ring->has_ended || ring->has_failed);
}

/* Who ends must not take along what a peer waits for. */
void ring_close(struct ring *ring, uint64_t until_ns)
{
	struct ring **at;
	struct ibv_wc wc;

	ring_retire(ring);
	while (!ring_is_over(ring) && clock_ns() < until_ns)
		if (ring->device->ops.poll_cq(ring->cq, 1, &wc) > 0)
			completed(ring, &wc);
	at = &ring->device->rings;
	while (*at != ring)
		at = &(*at)->next;
	*at = ring->next;
	parts_free(ring);
}
