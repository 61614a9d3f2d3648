/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What completions say: of what was posted, and of what has come. */
#include <errno.h>

#include "lib/exchange/bitmap_poll.h"
#include "lib/exchange/post.h"

#define POLLED 32

static void acknowledge(struct weir_exchange *x, uint64_t slots)
{
	if (slots > x->acked)
		x->acked = slots;
}

static int looked(struct weir_exchange *x)
{
	uint64_t now_ns = weir_now_ns(), arrived = x->out.arrived;
	int found, freed, slot, rc = 0;

	acknowledge(x, x->look_end);
	found = weir_confirm_in_looked(&x->in, x->fresh);
	freed = weir_confirm_out_looked(&x->out, x->fresh + weir_confirm_words(x->in.slots));
	if (found < 0 || freed < 0)
		return -EPROTO;
	weir_look_back(&x->look, &x->out, (uint32_t)found, (uint32_t)freed,
		       (uint32_t)(x->out.arrived - arrived), now_ns);
	while (!rc && (slot = weir_confirm_in_find(&x->in)) >= 0)
		rc = weir_exchange_arrive(x, (uint32_t)slot);
	if (!rc && x->out.arrived != arrived)
		rc = weir_exchange_answer(x, WEIR_EXCHANGE_NEWS);
	return rc;
}

static int gives_received(struct weir_exchange *x, uint32_t buffer, size_t length)
{
	struct wire_gives gives;
	uint32_t i;
	int rc = wire_gives_decode(x->recvs + buffer * WEIR_EXCHANGE_RECV_BYTES, length, &gives);

	for (i = 0; !rc && i < gives.count; i++)
		rc = weir_confirm_out_told(&x->out, gives.slots[i]);
	if (!rc && x->is_ending && !weir_confirm_out_is_full(&x->out, x->end_slot))
		x->is_heard = true;
	return rc;
}

/* Of a slot, and of those before it. A chain that leads back to one of them breaks the rules. */
static int told(struct weir_exchange *x, uint32_t imm)
{
	uint32_t slot = wire_tell_slot(imm), others = wire_tell_others(imm);
	int rc;

	for (;; slot = x->arrivals[slot].before) {
		rc = weir_confirm_in_told(&x->in, slot);
		if (!rc)
			rc = weir_exchange_arrive(x, slot);
		if (rc || !others--)
			return rc;
	}
}

/* Bitmap mode. */
static int hinted(struct weir_exchange *x, uint32_t hint)
{
	if (hint == WIRE_HEARD) {
		x->is_heard = x->is_ending;
		return x->is_ending ? 0 : -EPROTO;
	}
	if (hint == WIRE_WAKE) {
		weir_look_woken(&x->look);
		return 0;
	}
	if (hint & WIRE_WAKE)
		return -EPROTO;
	weir_look_told(&x->look);
	return told(x, hint);
}

static int received(struct weir_exchange *x, const struct ibv_wc *wc)
{
	uint32_t buffer = (uint32_t)wc->wr_id;

	x->spare[x->nr_spare++] = buffer;
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		return weir_exchange_is_imm(x) ? told(x, be32toh(wc->imm_data)) :
						 hinted(x, be32toh(wc->imm_data));
	return weir_exchange_is_imm(x) ? gives_received(x, buffer, wc->byte_len) : -EPROTO;
}

static int completed(struct weir_exchange *x, const struct ibv_wc *wc)
{
	x->info.completions++;
	if (wc->status != IBV_WC_SUCCESS)
		return -ECONNRESET;
	switch ((enum weir_exchange_tag)(wc->wr_id >> 56)) {
	case WEIR_EXCHANGE_OF_WRITE:
		acknowledge(x, wc->wr_id & ~(0xffull << 56));
		return 0;
	case WEIR_EXCHANGE_OF_LOOK:
		return looked(x);
	case WEIR_EXCHANGE_OF_PROBE:
		x->is_probing = false;
		return 0;
	case WEIR_EXCHANGE_OF_HEARD:
		x->is_telling = false;
		return 0;
	case WEIR_EXCHANGE_OF_GIVES:
		x->gives_free |= 1u << (wc->wr_id & 0xff);
		return 0;
	case WEIR_EXCHANGE_OF_RECV:
		return received(x, wc);
	default:
		return 0;
	}
}

int weir_exchange_queue_poll(struct weir_exchange *x)
{
	struct ibv_wc wcs[POLLED];
	int i, n, rc = 0;

	do {
		n = x->status ? 0 : ibv_poll_cq(x->cq, POLLED, wcs);
		for (i = 0; !rc && i < n; i++)
			rc = completed(x, &wcs[i]);
		if (n < 0 || rc)
			return weir_exchange_fail(x, rc ? rc : -ECONNRESET);
		if (x->look.is_looking)
			weir_look_polled(&x->look, weir_now_ns());
		if (x->nr_spare >= WEIR_EXCHANGE_CHAIN)
			rc = weir_exchange_queue_recvs(x);
	} while (n == POLLED && !rc);
	return x->status;
}
