/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Work requests and completions. All functions return 0 or @x->status. */
#ifndef WEIR_LIB_EXCHANGE_POST_H
#define WEIR_LIB_EXCHANGE_POST_H

#include "lib/exchange/exchange.h"

/* The kind of a work request: high byte of the wr_id; the low bytes depend on the kind. */
enum weir_exchange_wr_kind {
	WEIR_EXCHANGE_WR_WRITE, /* of slots: how many had been committed */
	WEIR_EXCHANGE_WR_BITMAP_READ,
	WEIR_EXCHANGE_WR_WAKE,
	WEIR_EXCHANGE_WR_PROBE,
	WEIR_EXCHANGE_WR_END_ACK,
	WEIR_EXCHANGE_WR_RETURNS, /* buffer index */
	WEIR_EXCHANGE_WR_RECV, /* buffer index */
	WEIR_EXCHANGE_WR_CLOSE,
};

static inline uint64_t weir_exchange_wr_id(enum weir_exchange_wr_kind tag, uint64_t value)
{
	return (uint64_t)tag << 56 | value;
}

/* Posts the spare receives again. */
int weir_exchange_post_recvs(struct weir_exchange *x);

/* Posts writes of slots, then a bitmap read if due. The caller has set the headers' flags. */
int weir_exchange_post_slots(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			     unsigned int count);

/* Reads the peer's bitmaps; first rings the peer's doorbell with @ring unless 0. */
int weir_exchange_post_bitmap_read(struct weir_exchange *x, uint64_t ring);

/* Notifies the peer of all unshown slots, by an empty write with an immediate. */
int weir_exchange_post_notice(struct weir_exchange *x, uint64_t now_ns);

/* Wakes the peer. */
int weir_exchange_post_wake(struct weir_exchange *x);

/* Acknowledges the peer's end slot. */
int weir_exchange_post_end_ack(struct weir_exchange *x);

/* Tells the peer that this end closes. */
int weir_exchange_post_close(struct weir_exchange *x);

/* Posts an empty write, which fails if the peer is gone. */
int weir_exchange_post_probe(struct weir_exchange *x);

/*
 * Immediate mode: returns freed slots to the peer. Call after taking completions, which free
 * buffers.
 */
int weir_exchange_post_returns(struct weir_exchange *x);
/* Immediate mode: posts a signalled write to learn when earlier writes are done. Call as above. */
int weir_exchange_post_marker(struct weir_exchange *x);

/* Takes completions and handles them. */
int weir_exchange_completion_poll(struct weir_exchange *x);

#endif
