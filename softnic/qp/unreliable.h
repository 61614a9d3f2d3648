/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What UC and UD have in common: nobody acknowledges, so what cannot be delivered is
 * dropped, and the sender's work request is done all the same.
 */
#ifndef WEIR_SOFTNIC_QP_UNRELIABLE_H
#define WEIR_SOFTNIC_QP_UNRELIABLE_H

#include "qp.h"

/**
 * unreliable_status() - what becomes of a step's result
 * @qp: UC or UD, lock held
 * @status: as resp_step() returned it
 *
 * Return: the same for what is still going on, for local errors, and for what is flushed as the
 * device has gone; else IBV_WC_SUCCESS.
 */
int unreliable_status(struct qp *qp, int status);

/** unreliable_error() - a local error: the send queue stops (SQE), the receive queue goes on */
void unreliable_error(struct qp *qp);

/** unreliable_client_ended() - a process that may have sent to a queue pair has ended */
void unreliable_client_ended(struct qp *qp, const struct shm_client *client, uint32_t slot);

/** unreliable_peer_ended() - a process that a queue pair may send to has ended. nic.lock held. */
void unreliable_peer_ended(struct qp *qp, struct shm_peer *peer);

#endif
