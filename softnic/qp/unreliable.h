/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What UC and UD have in common: nobody acknowledges, so what cannot be delivered is
 * dropped, and the sender's work request is done all the same.
 */
#ifndef WEIR_SOFTNIC_QP_UNRELIABLE_H
#define WEIR_SOFTNIC_QP_UNRELIABLE_H

#include "qp.h"

/**
 * lossy_status() - what becomes of a step's result
 * @qp: UC or UD, lock held
 * @status: as resp_step() returned it
 *
 * Return: the same for what is still going on, for local errors, and for what is flushed as the
 * device has gone; else IBV_WC_SUCCESS.
 */
int lossy_status(struct qp *qp, int status);

/** lossy_error() - a local error: the send queue stops (SQE), the receive queue goes on */
void lossy_error(struct qp *qp);

/** lossy_guest_ended() - a process that may have sent to a queue pair has ended */
void lossy_guest_ended(struct qp *qp, const struct guest *guest, uint32_t slot);

/** lossy_peer_ended() - a process that a queue pair may send to has ended. nic.lock held. */
void lossy_peer_ended(struct qp *qp, struct peer *peer);

#endif
