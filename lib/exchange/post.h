/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Work requests, and what their completions mean. All return 0 or @x->status. */
#ifndef WEIR_LIB_EXCHANGE_POST_H
#define WEIR_LIB_EXCHANGE_POST_H

#include "lib/exchange/exchange.h"

/* What a completion is of: the high byte of its wr_id; below it what the tag needs. */
enum weir_exchange_wr_kind {
	WEIR_EXCHANGE_WR_WRITE, /* of slots: how many had been committed then */
	WEIR_EXCHANGE_WR_BITMAP_READ,
	WEIR_EXCHANGE_WR_WAKE,
	WEIR_EXCHANGE_WR_PROBE,
	WEIR_EXCHANGE_WR_END_ACK,
	WEIR_EXCHANGE_WR_GIVES, /* its buffer */
	WEIR_EXCHANGE_WR_RECV, /* its buffer */
};

static inline uint64_t weir_exchange_wr_id(enum weir_exchange_wr_kind tag, uint64_t value)
{
	return (uint64_t)tag << 56 | value;
}

/* Posts the receives that are to be posted again. */
int weir_exchange_post_recvs(struct weir_exchange *x);

/* Posts the writes of slots, headers filled in, and a look behind them if one is due. */
int weir_exchange_post_slots(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			     unsigned int count);

/* Reads the peer's bitmaps; before that, rings its bell if @ring is not 0. */
int weir_exchange_post_bitmap_read(struct weir_exchange *x, uint64_t ring);

/* Tells of all slots that are not shown, by a write of nothing. */
int weir_exchange_post_notice(struct weir_exchange *x, uint64_t now_ns);

/* Wakes the peer. */
int weir_exchange_post_wake(struct weir_exchange *x);

/* Tells the peer that its end was taken. */
int weir_exchange_post_end_ack(struct weir_exchange *x);

/* A write of nothing: fails if the peer is gone. */
int weir_exchange_post_probe(struct weir_exchange *x);

/*
 * Immediate mode: gives back what is to be given back; and has it told that all was written. Some
 * of it waits for the completions of what is under way: so they come after the completions are
 * taken.
 */
int weir_exchange_post_gives(struct weir_exchange *x);
int weir_exchange_post_marker(struct weir_exchange *x);

/* complete.c: takes completions, and does what they say. */
int weir_exchange_completion_poll(struct weir_exchange *x);

#endif
