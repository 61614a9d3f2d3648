/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device's lock is held from a check to the end of its copy, and where a registration goes:
 * nothing is written after it has gone. The peer can write to the buffer at any time, also while it
 * is read here: the address is looked at once, and the length comes from the device.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "unload/clock.h"
#include "unload/connect.h"
#include "unload/device.h"
#include "unload/next.h"
#include "unload/ring.h"
#include "unload/say.h"
#include "unload/slots.h"
#include "unload/watch.h"

#define HEAD offsetof(struct wire_slot, data)
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

static int parts_make(struct ring *ring, struct ibv_pd *pd)
{
	struct ibv_qp_cap cap = {
		.max_send_wr = RETURNS_MAX + 1, .max_recv_wr = WIRE_SLOTS, .max_send_sge = 1,
		.max_recv_sge = 1, .max_inline_data = sizeof(uint64_t),
	};

	ring->slots = slots_take();
	if (!ring->slots)
		return -ENOMEM;
	ring->mr = next_reg_mr(pd, ring->slots, SLOTS_BYTES);
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
	struct ring *ring = calloc(1, sizeof(*ring));
	uint32_t psn = connect_psn();
	int err;

	if (!ring)
		return NULL;
	ring->device = w->device;
	ring->offer = *offer;
	ring->pd = w->qp->pd->handle;
	err = parts_make(ring, w->qp->pd);
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

/*
 * The end of a message comes last, in a word where it is one: programs poll it, and expect all
 * before it to be there, as behind a NIC. memcpy() promises no order. At least one byte.
 */
static void copy_in_order(uint8_t *to, const uint8_t *from, uint32_t n)
{
	uint64_t word;

	if (n < sizeof(word) || ((uintptr_t)to + n) % sizeof(word)) {
		memcpy(to, from, --n);
		__atomic_store_n(to + n, from[n], __ATOMIC_RELEASE);
		return;
	}
	n -= sizeof(word);
	memcpy(to, from, n);
	memcpy(&word, from + n, sizeof(word));
	__atomic_store_n((uint64_t *)(to + n), word, __ATOMIC_RELEASE);
}

/* Copies what @slot says to where it says, if that is allowed. @length: head and data, bytes. */
static int copy(struct ring *ring, const struct wire_slot *slot, uint32_t length, uint32_t tag)
{
	uint64_t addr;

	if (length <= HEAD || length > sizeof(*slot))
		return -EACCES;
	addr = __atomic_load_n(&slot->addr, __ATOMIC_RELAXED);
	length -= HEAD;
	if (weir_umtt_check(&ring->device->remote, ring->pd, tag, addr, length))
		return -EACCES;
	copy_in_order((uint8_t *)(uintptr_t)addr, slot->data, length);
	return 0;
}

static void received(struct ring *ring, const struct ibv_wc *wc)
{
	ring->has_failed |= wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM || recv_post(ring);
	if (ring->is_refused || ring->has_failed)
		return;
	if (!ring->began_ns)
		ring->began_ns = clock_ns();
	if (copy(ring, &ring->slots[ring->seen % WIRE_SLOTS], wc->byte_len, ntohl(wc->imm_data))) {
		ring->is_refused = true;
		COUNT(refused);
		return;
	}
	ring->seen++;
	COUNT(copied);
}

static void tell(struct ring *ring, uint8_t pause_ms, bool is_last)
{
	const struct wire_return told = { .done = ring->seen, .is_refused = ring->is_refused,
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
	ring->returned = ring->seen;
	ring->is_told = ring->is_refused;
	RETURN_SENT();
	ring->has_failed |= ring->device->ops.post_send(ring->qp, &wr, &bad) != 0;
}

/* For how long the peer is to unload nothing. */
static uint8_t pause_ms(struct ring *ring, struct weir_ceiling *ceiling)
{
	uint64_t ns = weir_ceiling_spent(ceiling, ring->began_ns, clock_ns());

	ring->began_ns = 0;
	if (ns)
		COUNT(pauses);
	return (uint8_t)((ns + NS_PER_MS - 1) / NS_PER_MS);
}

/* @more: further slots are there already: it can wait until there is enough to tell. */
static void tell_news(struct ring *ring, struct weir_ceiling *ceiling, bool more)
{
	uint16_t done = (uint16_t)(ring->seen - ring->returned);
	bool is_news = done || ring->is_refused != ring->is_told;

	if (!is_news || ring->has_failed || ring->returns >= RETURNS_MAX)
		return;
	if (!more || done >= TELL_MAX || ring->is_refused)
		tell(ring, pause_ms(ring, ceiling), false);
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

uint32_t ring_serve(struct ring *ring, struct weir_ceiling *ceiling)
{
	struct ibv_wc wcs[WCS];
	int i, n;

	n = ring->has_failed ? 0 : ring->device->ops.poll_cq(ring->cq, WCS, wcs);
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

void ring_end(struct ring *ring)
{
	if (!ring || ring->is_ending)
		return;
	ring->is_ending = true;
	ring->is_refused = true;
	if (!ring->has_failed)
		tell(ring, 0, true);
}

/* Who ends must not take along what a peer waits for. */
void ring_close(struct ring *ring, uint64_t until_ns)
{
	struct ring **at;
	struct ibv_wc wc;

	if (!ring)
		return;
	ring_end(ring);
	while (!ring->has_ended && !ring->has_failed && clock_ns() < until_ns)
		if (ring->device->ops.poll_cq(ring->cq, 1, &wc) > 0)
			completed(ring, &wc);
	at = &ring->device->rings;
	while (*at != ring)
		at = &(*at)->next;
	*at = ring->next;
	parts_free(ring);
}
