/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device's lock is held from a check to the end of its copy, and while a registration is
 * removed, so no copy writes after the removal. The peer can write to the slot buffer at any time,
 * even during a copy: therefore the length comes from the device's completion.
 */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

#include "preload/next.h"
#include "preload/unload/discovery/own_qp.h"
#include "preload/unload/hooks/device.h"
#include "preload/unload/memory.h"
#include "preload/unload/hooks/interpose.h"
#include "preload/unload/unload_rx.h"
#include "preload/unload/diag.h"
#include "preload/unload/slot_pool.h"
#include "preload/unload/hooks/tracked_qp.h"

#define RETURNS (WIRE_UNLOAD_SLOTS + 1) /* in the send queue: those in flight, and the last */
#define WCS 16

enum { WR_SLOT = 1, WR_RETURN, WR_LAST };

static int recv_post(struct unload_rx *rx)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = WR_SLOT };

	return ibv_post_recv(rx->qp, &wr, &bad);
}

static int parts_make(struct unload_rx *rx)
{
	struct ibv_pd *pd = device_pd(rx->device);
	struct ibv_qp_cap cap = {
		.max_send_wr = RETURNS,
		.max_recv_wr = WIRE_UNLOAD_SLOTS,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_inline_data = sizeof(uint64_t),
	};

	rx->slots = slot_pool_take();
	if (!rx->slots || !pd)
		return -ENOMEM;
	rx->mr = interpose_reg_own_mr(pd, rx->slots, SLOT_POOL_BYTES,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	rx->cq = NEXT(ibv_create_cq)(pd->context, WIRE_UNLOAD_SLOTS + RETURNS, NULL,
				     rx->device->channel, 0);
	if (!rx->mr || !rx->cq)
		return -ENOMEM;
	rx->qp = own_qp_create(pd, rx->cq, rx->cq, &cap);
	/* A return is always sent inline. */
	return rx->qp && cap.max_inline_data >= sizeof(uint64_t) ? 0 : -ENOMEM;
}

/* The peer sends nothing before receiving the answer. */
static int parts_connect(struct unload_rx *rx, const struct qp_path *path, uint32_t psn)
{
	int i, rc = own_qp_connect(rx->qp, path, rx->offer.qpn, psn, rx->offer.psn);

	for (i = 0; !rc && i < WIRE_UNLOAD_SLOTS; i++)
		rc = recv_post(rx);
	return rc ? rc : rx->device->ops.req_notify_cq(rx->cq, 0);
}

static void parts_free(struct unload_rx *rx)
{
	if (rx->qp)
		NEXT(ibv_destroy_qp)(rx->qp);
	if (rx->cq)
		NEXT(ibv_destroy_cq)(rx->cq);
	if (rx->mr)
		NEXT(ibv_dereg_mr)(rx->mr);
	slot_pool_give(rx->slots);
	free(rx);
}

static void answer(struct unload_rx *rx, uint32_t psn)
{
	rx->answer = rx->offer;
	rx->answer.type = WIRE_DISCOVERY_ACCEPTED;
	rx->answer.addr = (uintptr_t)rx->slots;
	rx->answer.rkey = rx->mr->rkey;
	rx->answer.qpn = rx->qp->qp_num;
	rx->answer.psn = psn;
}

struct unload_rx *unload_rx_open(const struct tracked_qp *w, const struct qp_path *path,
				 const struct wire_discovery_offer *offer)
{
	struct unload_rx *rx;
	uint32_t psn = randombytes_random() & PSN_BITS;
	int rc;

	rx = calloc(1, sizeof(*rx));
	if (!rx)
		return NULL;
	rx->device = w->device;
	rx->offer = *offer;
	rx->program = w->qp;
	rx->pd = w->qp->pd->handle;
	weir_unload_rx_init(&rx->core, WIRE_UNLOAD_SLOTS);
	rc = parts_make(rx);
	if (!rc)
		rc = parts_connect(rx, path, psn);
	if (rc) {
		parts_free(rx);
		return NULL;
	}
	answer(rx, psn);
	rx->next = w->device->receivers;
	w->device->receivers = rx;
	return rx;
}

/* Copies if both the registrations and the program's mappings allow the write; refuses otherwise.
 */
static int copy_slot(struct unload_rx *rx, const struct weir_unload_arrival *write)
{
	int rc = weir_unload_rx_check(&rx->core, &rx->device->remote, rx->pd, write->tag,
				      write->addr, write->length);

	if (!rc && !memory_is_writable(write->addr, write->length))
		return weir_unload_rx_refuse(&rx->core);
	if (!rc)
		weir_unload_rx_store(&rx->core, write->addr, write->data, write->length);
	return rc;
}

static void slot_received(struct unload_rx *rx, const struct ibv_wc *wc)
{
	struct weir_unload_arrival write;
	int rc;

	rx->has_failed |= wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM || recv_post(rx);
	if (rx->has_failed)
		return;
	/* The peer's first message is empty and only asks for a return. */
	if (!rx->core.seen && !wc->byte_len) {
		rx->is_greeted = true;
		rx->core.owes = true;
		return;
	}
	write = weir_unload_wr_arrived(&rx->core, rx->slots, wc);
	rc = copy_slot(rx, &write);
	if (!rc)
		DIAG_COUNT(copied);
	else if (rc == -EACCES)
		DIAG_COUNT(refused);
}

static void send_return(struct unload_rx *rx, uint8_t pause_ms, bool is_last)
{
	struct wire_unload_return report;
	uint64_t word;
	struct ibv_sge sge = { .addr = (uintptr_t)&word, .length = sizeof(word) };
	struct ibv_send_wr *bad, wr = {
		.wr_id = is_last ? WR_LAST : WR_RETURN,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE | (is_last ? IBV_SEND_SIGNALED : 0),
		.wr.rdma = { rx->offer.addr, rx->offer.rkey },
	};

	report = weir_unload_wr_return(&rx->core, pause_ms, &wr);
	word = wire_unload_return_word(&report);
	RETURN_SENT();
	rx->has_failed |= rx->device->ops.post_send(rx->qp, &wr, &bad) != 0;
}

/* How long the peer should pause unloading. */
static uint8_t budget_pause_ms(struct weir_cpu_budget *cpu_budget)
{
	uint8_t ms = weir_cpu_budget_pause_ms(cpu_budget, weir_cpu_ns(), weir_now_ns());

	if (ms)
		DIAG_COUNT(pauses);
	return ms;
}

/* @more: further slots have already arrived. */
static void send_due_return(struct unload_rx *rx, struct weir_cpu_budget *cpu_budget, bool more)
{
	if (!rx->has_failed && weir_unload_rx_must_report(&rx->core, more))
		send_return(rx, budget_pause_ms(cpu_budget), false);
}

static void wr_completed(struct unload_rx *rx, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		rx->has_failed = true;
	else if (wc->wr_id == WR_SLOT)
		slot_received(rx, wc);
	else if (wc->wr_id == WR_RETURN)
		weir_unload_rx_report_arrived(&rx->core);
	else if (wc->wr_id == WR_LAST)
		rx->has_ended = true;
}

/* A QP that has failed by itself accepts nothing more. */
static void refuse_if_ended(struct unload_rx *rx)
{
	uint64_t now_ns = weir_now_ns();

	if (rx->core.is_refused || now_ns - rx->asked_ns < OWN_QP_ASK_NS)
		return;
	rx->asked_ns = now_ns;
	rx->core.is_refused = own_qp_is_in_error(rx->program);
}

uint32_t unload_rx_serve(struct unload_rx *rx, struct weir_cpu_budget *cpu_budget)
{
	struct ibv_wc wcs[WCS];
	int i, n;

	n = rx->has_failed ? 0 : rx->device->ops.poll_cq(rx->cq, WCS, wcs);
	if (n > 0)
		refuse_if_ended(rx);
	for (i = 0; i < n; i++)
		wr_completed(rx, &wcs[i]);
	/* Some completions of a full batch may have been returns, so the peer's news may be old:
	 * send again. */
	send_due_return(rx, cpu_budget, n == WCS);
	return n > 0 ? (uint32_t)n : 0;
}

void unload_rx_arm(struct unload_rx *rx)
{
	if (!rx->has_failed)
		rx->device->ops.req_notify_cq(rx->cq, 0);
}

void unload_rx_retire(struct unload_rx *rx)
{
	if (!rx || rx->is_ending)
		return;
	rx->is_ending = true;
	rx->core.is_refused = true;
	if (!rx->has_failed)
		send_return(rx, 0, true);
}

bool unload_rx_is_over(const struct unload_rx *rx)
{
	return rx->is_ending && (rx->has_ended || rx->has_failed);
}

/* An exiting process must not lose copies that a peer waits for. */
void unload_rx_close(struct unload_rx *rx, uint64_t until_ns)
{
	struct unload_rx **at;
	struct ibv_wc wc;

	unload_rx_retire(rx);
	while (!unload_rx_is_over(rx) && weir_now_ns() < until_ns)
		if (rx->device->ops.poll_cq(rx->cq, 1, &wc) > 0)
			wr_completed(rx, &wc);
	at = &rx->device->receivers;
	while (*at != rx)
		at = &(*at)->next;
	*at = rx->next;
	parts_free(rx);
}
