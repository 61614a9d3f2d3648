/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When to look at the peer's bitmaps, to ask it for a sign, and to give one. */
#ifndef WEIR_LIB_EXCHANGE_BITMAP_POLL_H
#define WEIR_LIB_EXCHANGE_BITMAP_POLL_H

#include "lib/exchange/exchange.h"

/* Whether the last slot that is being sent is to tell of all that are not shown: the peer waits. */
bool weir_exchange_must_notify(struct weir_exchange *x, uint64_t now_ns);

/* It does. */
void weir_exchange_notified(struct weir_exchange *x, uint64_t now_ns);

/* Tells of all that was put and is not shown, if the peer waits. Return: whether it did. */
bool weir_exchange_notify(struct weir_exchange *x, uint64_t now_ns);

/* Whether slots that are being sent are to be followed by a look. */
bool weir_exchange_bitmap_read_is_due(const struct weir_exchange *x, uint64_t now_ns);

/* Looks if that is due for @want, or anything was sent that is not known to have arrived. */
int weir_exchange_bitmap_poll(struct weir_exchange *x, unsigned int want, uint64_t now_ns);

/*
 * What was put and is not known to have arrived, or cannot be found, has to be looked for, for
 * @want.
 */
bool weir_exchange_needs_bitmap_read(const struct weir_exchange *x, unsigned int want);

/* Asks the peer for a sign when there is @want, unless it was and gave none, and looks. */
int weir_exchange_request_wake(struct weir_exchange *x, unsigned int want);

/* As weir_slot_poll_has_requested(): and the completion of a look would wake who sleeps on this queue. */
bool weir_exchange_has_requested_wake(const struct weir_exchange *x, unsigned int want);

/* Bits were flipped: wakes the peer if it sleeps for that. */
int weir_exchange_wake_peer(struct weir_exchange *x, unsigned int what);

/*
 * This end has nothing left to do but wait: wakes the peer if it sleeps for room, be it ever so
 * little.
 */
int weir_exchange_wake_peer_for_room(struct weir_exchange *x);

#endif
