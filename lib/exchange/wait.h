/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When to sleep, and for what. */
#ifndef WEIR_LIB_EXCHANGE_WAIT_H
#define WEIR_LIB_EXCHANGE_WAIT_H

#include "lib/exchange/exchange.h"

typedef bool weir_exchange_ready_fn(const struct weir_exchange *x);

/**
 * weir_exchange_wait() - until @is_ready says so
 * @want: WEIR_EXCHANGE_NEWS or _ROOM: what has to come for that
 *
 * Return: 0; -EAGAIN, -ETIMEDOUT; or @x->status.
 */
int weir_exchange_wait(struct weir_exchange *x, weir_exchange_ready_fn *is_ready, unsigned int want,
		       uint64_t timeout_ns);

/* Takes what events there are, without waiting: if the peer has left, @x->status says so. */
void weir_exchange_take_events(struct weir_exchange *x);

/*
 * Of who hears of nothing for long: the peer may have vanished without a word, or be busy with what
 * it gives back little of. If it is gone, what is posted here fails.
 */
void weir_exchange_probe_peer(struct weir_exchange *x);

#endif
