/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When to read the peer's bitmaps, to request a wake-up, and to notify. */
#ifndef WEIR_LIB_EXCHANGE_BITMAP_POLL_H
#define WEIR_LIB_EXCHANGE_BITMAP_POLL_H

#include "lib/exchange/exchange.h"

/* Whether the last slot of a batch must notify the waiting peer of all unshown slots. */
bool weir_exchange_must_notify(struct weir_exchange *x, uint64_t now_ns);

/* Records such a notice. */
void weir_exchange_notified(struct weir_exchange *x, uint64_t now_ns);

/* Notifies a waiting peer of all unshown slots. Return: whether a notice was sent. */
bool weir_exchange_notify(struct weir_exchange *x, uint64_t now_ns);

/* Whether a bitmap read must follow the slots being sent. */
bool weir_exchange_bitmap_read_is_due(const struct weir_exchange *x, uint64_t now_ns);

/*
 * Posts a bitmap read if due for @want, or if the arrival of slots is unconfirmed; a marker, if
 * that is all.
 */
int weir_exchange_bitmap_poll(struct weir_exchange *x, unsigned int want, uint64_t now_ns);

/* Whether unconfirmed slots (for room) or unshown slots (for news) need a bitmap read. */
bool weir_exchange_needs_bitmap_read(const struct weir_exchange *x, unsigned int want);

/* Rings the peer's doorbell for @want, unless already rung, and reads the bitmaps. */
int weir_exchange_request_wake(struct weir_exchange *x, unsigned int want);

/* As weir_slot_poll_has_requested(), and a completion would wake a sleeper on the CQ. */
bool weir_exchange_has_requested_wake(const struct weir_exchange *x, unsigned int want);

/* Wakes the peer if asleep for @what; call after flipping bits. */
int weir_exchange_wake_peer(struct weir_exchange *x, unsigned int what);

/* Wakes a peer that waits for room, however little: this end has nothing else to do. */
int weir_exchange_wake_peer_for_room(struct weir_exchange *x);

#endif
