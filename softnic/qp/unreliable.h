/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The common part of UC and UD. No acknowledgement exists, so an undeliverable message is dropped
 * and the sender's WR completes with success.
 */
#ifndef WEIR_SOFTNIC_QP_UNRELIABLE_H
#define WEIR_SOFTNIC_QP_UNRELIABLE_H

#include "qp.h"

/**
 * unreliable_status() - translate the result of a step for an unreliable transport
 * @qp: UC or UD
 * @status: as resp_step() returned it
 *
 * Context: qp->lock held.
 * Return: @status if the WR is unfinished, failed locally, or is flushed because the device is
 *	gone; else IBV_WC_SUCCESS.
 */
int unreliable_status(struct qp *qp, int status);

/** unreliable_error() - after a local error, stop the send queue (SQE); receives continue */
void unreliable_error(struct qp *qp);

/** unreliable_client_ended() - a process that may have sent to a queue pair has ended */
void unreliable_client_ended(struct qp *qp, const struct shm_client *client, uint32_t slot);

/** unreliable_peer_ended() - a process that a queue pair may send to has ended; nic.lock held */
void unreliable_peer_ended(struct qp *qp, struct shm_peer *peer);

#endif
