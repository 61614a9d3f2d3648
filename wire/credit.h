/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Credits: how two ends of a channel never send what the other has posted no buffer for.
 *
 * Each end posts a fixed number of receive buffers and says so in its HELLO or WELCOME. A
 * message takes one; once it is read and its buffer is posted again, the receiver owes that
 * credit back, and pays with its next message, whatever that is. When it has none to send and
 * owes half of its buffers, it sends a bare WIRE_CONTROL_CREDIT. That one takes a credit too; so the
 * last credit is kept for it, and neither end can starve the other.
 *
 * Pure; the owner serialises.
 */
#ifndef WEIR_WIRE_CREDIT_H
#define WEIR_WIRE_CREDIT_H

#include "wire/platform.h"

#define WIRE_CREDITS_MIN 4 /* fewer than this is refused in a handshake */

/**
 * struct wire_credit_balance - one end's account
 * @ours: buffers that we posted; @theirs: that the peer posted
 * @spendable: messages that we may still send
 * @open: messages that the peer may still send; @owed: read and posted anew, not yet granted
 *
 * open + owed is at most ours, spendable at most theirs.
 */
struct wire_credit_balance {
	uint16_t ours, theirs;
	uint16_t spendable;
	uint16_t open, owed;
};

/* Return: 0; -EPROTO one of the two is below WIRE_CREDITS_MIN. */
int wire_credit_init(struct wire_credit_balance *credit, uint16_t ours, uint16_t theirs);

/* May a message with a body be sent now? */
bool wire_credit_has_room(const struct wire_credit_balance *credit);

/* Is a bare WIRE_CONTROL_CREDIT due, and is there a credit for it? */
bool wire_credit_is_due(const struct wire_credit_balance *credit);

/* A message is sent: either of the two above was true. Return: what its head.credits says. */
uint16_t wire_credit_spend(struct wire_credit_balance *credit);

/**
 * wire_credit_received() - a message came, with this in its head.credits
 *
 * The caller posts the buffer again before it sends anything.
 * Return: 0; -EPROTO the peer sent more than it may, or grants more than it ever posted.
 */
int wire_credit_received(struct wire_credit_balance *credit, uint16_t credits);

#endif
