/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Handling completions: of posted work requests, and of receives. */
#include <errno.h>

#include "lib/exchange/bitmap_poll.h"
#include "lib/exchange/post.h"

#define POLLED 32

static void mark_acked(struct weir_exchange *x, uint64_t slots)
{
	if (slots > x->acked)
		x->acked = slots;
}

static int handle_bitmap_read(struct weir_exchange *x)
{
	uint64_t now_ns = weir_now_ns(), arrived = x->out.arrived;
	int found, freed, slot, rc = 0;

	mark_acked(x, x->read_end);
	found = weir_slot_bitmap_rx_read_done(&x->in, x->fresh);
	freed = weir_slot_bitmap_tx_read_done(&x->out,
					      x->fresh + weir_slot_bitmap_words(x->in.slots));
	if (found < 0 || freed < 0)
		return -EPROTO;
	weir_slot_poll_read_done(&x->slot_poll, &x->out, (uint32_t)found, (uint32_t)freed,
				 (uint32_t)(x->out.arrived - arrived), now_ns);
	while (!rc && (slot = weir_slot_bitmap_rx_next_full(&x->in)) >= 0)
		rc = weir_exchange_slot_arrived(x, (uint32_t)slot);
	if (!rc && x->out.arrived != arrived)
		rc = weir_exchange_wake_peer(x, WEIR_EXCHANGE_NEWS);
	return rc;
}

static int handle_gives(struct weir_exchange *x, uint32_t buffer, size_t length)
{
	struct wire_exchange_freed message;
	uint32_t i;
	int rc = wire_exchange_freed_decode(x->recvs + buffer * WEIR_EXCHANGE_RECV_BYTES, length,
					    &message);

	for (i = 0; !rc && i < message.count; i++)
		rc = weir_slot_bitmap_tx_slot_returned(&x->out, message.slots[i]);
	if (!rc && x->sending == WEIR_EXCHANGE_ENDING &&
	    !weir_slot_bitmap_tx_is_full(&x->out, x->end_slot))
		x->sending = WEIR_EXCHANGE_ENDED;
	return rc;
}

/*
 * Handles a notice for a slot and those before it. A chain back to a full slot is a protocol
 * error.
 */
static int handle_notice(struct weir_exchange *x, uint32_t imm)
{
	uint32_t slot = wire_exchange_imm_slot(imm), others = wire_exchange_imm_others(imm);
	int rc;

	for (;; slot = x->arrivals[slot].before) {
		rc = weir_slot_bitmap_rx_slot_filled(&x->in, slot);
		if (!rc)
			rc = weir_exchange_slot_arrived(x, slot);
		if (rc || !others--)
			return rc;
	}
}

/* Immediates in bitmap mode. */
static int handle_imm(struct weir_exchange *x, uint32_t hint)
{
	if (hint == WIRE_EXCHANGE_IMM_DRAINED) {
		if (x->sending == WEIR_EXCHANGE_SENDING)
			return -EPROTO;
		x->sending = WEIR_EXCHANGE_ENDED;
		return 0;
	}
	if (hint == WIRE_EXCHANGE_IMM_WAKE) {
		weir_slot_poll_woken(&x->slot_poll);
		return 0;
	}
	if (hint & WIRE_EXCHANGE_IMM_WAKE)
		return -EPROTO;
	weir_slot_poll_was_notified(&x->slot_poll);
	return handle_notice(x, hint);
}

static int handle_recv(struct weir_exchange *x, const struct ibv_wc *wc)
{
	uint32_t buffer = (uint32_t)wc->wr_id;

	x->spare[x->nr_recvs_spare++] = buffer;
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
	    be32toh(wc->imm_data) == WIRE_EXCHANGE_IMM_CLOSED) {
		x->is_closed = true;
		return 0;
	}
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		return weir_exchange_is_imm(x) ? handle_notice(x, be32toh(wc->imm_data)) :
						 handle_imm(x, be32toh(wc->imm_data));
	return weir_exchange_is_imm(x) ? handle_gives(x, buffer, wc->byte_len) : -EPROTO;
}

static int handle_completion(struct weir_exchange *x, const struct ibv_wc *wc)
{
	x->info.completions++;
	if (wc->status != IBV_WC_SUCCESS)
		return -ECONNRESET;
	switch ((enum weir_exchange_wr_kind)(wc->wr_id >> 56)) {
	case WEIR_EXCHANGE_WR_WRITE:
		mark_acked(x, wc->wr_id & ~(0xffull << 56));
		return 0;
	case WEIR_EXCHANGE_WR_BITMAP_READ:
		return handle_bitmap_read(x);
	case WEIR_EXCHANGE_WR_PROBE:
		x->is_probing = false;
		return 0;
	case WEIR_EXCHANGE_WR_END_ACK:
		x->is_end_ack_posted = false;
		return 0;
	case WEIR_EXCHANGE_WR_CLOSE:
		x->is_close_posted = false;
		return 0;
	case WEIR_EXCHANGE_WR_RETURNS:
		x->return_buffers_free |= 1u << (wc->wr_id & 0xff);
		return 0;
	case WEIR_EXCHANGE_WR_RECV:
		return handle_recv(x, wc);
	default:
		return 0;
	}
}

int weir_exchange_completion_poll(struct weir_exchange *x)
{
	struct ibv_wc wcs[POLLED];
	int i, n, rc = 0;

	do {
		n = x->status ? 0 : ibv_poll_cq(x->cq, POLLED, wcs);
		for (i = 0; !rc && i < n; i++)
			rc = handle_completion(x, &wcs[i]);
		if (n < 0 || rc)
			return weir_exchange_fail(x, rc ? rc : -ECONNRESET);
		if (x->slot_poll.is_reading)
			weir_slot_poll_polled(&x->slot_poll, weir_now_ns());
		if (x->nr_recvs_spare >= WEIR_EXCHANGE_CHAIN)
			rc = weir_exchange_post_recvs(x);
	} while (n == POLLED && !rc);
	return x->status;
}
