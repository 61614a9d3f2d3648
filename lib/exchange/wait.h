/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When to sleep, and for what. */
#ifndef WEIR_LIB_EXCHANGE_WAIT_H
#define WEIR_LIB_EXCHANGE_WAIT_H

#include "lib/exchange/exchange.h"

typedef bool weir_exchange_ready_fn(const struct weir_exchange *x);

/**
 * weir_exchange_wait() - wait until @is_ready returns true
 * @want: WEIR_EXCHANGE_NEWS or _ROOM: the kind of event needed
 *
 * Return: 0; -EAGAIN, -ETIMEDOUT; or @x->status.
 */
int weir_exchange_wait(struct weir_exchange *x, weir_exchange_ready_fn *is_ready, unsigned int want,
		       uint64_t timeout_ns);

/* Takes pending events without waiting; if the peer has left, sets @x->status. */
void weir_exchange_take_events(struct weir_exchange *x);

/*
 * Checks on a silent peer, which may have vanished or may just be busy: if the peer is gone, a
 * posted work request fails.
 */
void weir_exchange_probe_peer(struct weir_exchange *x);

#endif
