/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Credits: flow control of a channel. No end sends a message for which the peer has no posted
 * buffer.
 *
 * Each end posts a fixed number of receive buffers and announces the number in its HELLO or
 * WELCOME. A message takes one credit. After reading a message and posting the buffer again, the
 * receiver owes the credit, and returns it with the next message. A receiver that owes half of its
 * buffers and has nothing to send sends a bare WIRE_CONTROL_CREDIT. A CREDIT takes a credit too;
 * the last one is reserved for it, so that neither end can starve the other.
 *
 * Pure; the owner serialises.
 */
#ifndef WEIR_CORE_LINK_CREDIT_H
#define WEIR_CORE_LINK_CREDIT_H

#include "core/base/platform.h"

#define WEIR_CREDITS_MIN 4 /* a handshake with fewer is refused */
#define WEIR_CREDIT_RNR_RETRIES 6 /* credits make retries needless; 7 would mean for ever */

/**
 * struct weir_credit - one end's account
 * @ours: buffers posted at this end; @theirs: buffers posted by the peer
 * @spendable: messages that this end may still send
 * @open: messages that the peer may still send; @owed: buffers posted again, not yet granted
 *
 * open + owed is at most ours, spendable at most theirs.
 */
struct weir_credit {
	uint16_t ours, theirs;
	uint16_t spendable;
	uint16_t open, owed;
};

/* Return: 0; -EPROTO @ours or @theirs is below WEIR_CREDITS_MIN. */
int weir_credit_init(struct weir_credit *credit, uint16_t ours, uint16_t theirs);

/* Return: true if a message with a body may be sent now. */
bool weir_credit_has_room(const struct weir_credit *credit);

/* Return: true if a bare WIRE_CONTROL_CREDIT is due and there is a credit for it. */
bool weir_credit_is_due(const struct weir_credit *credit);

/* Return: true if a WIRE_CONTROL_CREDIT may be sent, due or not: it may take the last credit. */
bool weir_credit_may_send_bare(const struct weir_credit *credit);

/* Counts a sent message, after one of the above was true. Return: the message's head.credits. */
uint16_t weir_credit_spend(struct weir_credit *credit);

/**
 * weir_credit_received() - count a received message and the peer's grant
 * @credits: head.credits of the message
 *
 * The caller posts the buffer again before sending anything.
 *
 * Return: 0; -EPROTO the peer sent more than allowed, or granted more than it posted.
 */
int weir_credit_received(struct weir_credit *credit, uint16_t credits);

#endif
