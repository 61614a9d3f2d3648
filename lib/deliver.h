/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Callbacks: run by whoever has polled, outside the lock, never one inside another.
 *
 * A callback may submit, and what it submits may be done before the submitting call
 * returns; were its callback run there and then, the stack would grow without end. So
 * inside a callback nothing is delivered: the delivery that runs the callback comes round.
 */
#ifndef WEIR_LIB_DELIVER_H
#define WEIR_LIB_DELIVER_H

#include <stdbool.h>

struct weir_session;

/* Gives up nic->lock, which is held, and runs what waits to be run. */
void weir_deliver(struct weir_session *session);

/* Is this thread running a callback? */
bool weir_deliver_is_inside(void);

#endif
