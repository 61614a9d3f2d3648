/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages to an XRC SRQ whose owner's memory is out of reach, and that are longer than a tray.
 *
 * They travel in pieces, each in the tray of the receive that the message took. The sender fills
 * the tray, and the owner's engine empties it into the receive's buffers and says so. The last
 * piece stays in the tray until the owner polls, as a short message does. One piece is under way at
 * a time. The sender repeats its question until it is answered, because either socket may be full.
 */
#ifndef WEIR_SOFTNIC_QP_PIECE_H
#define WEIR_SOFTNIC_QP_PIECE_H

#include "qp.h"

/**
 * piece_step() - have the owner empty the tray that the sender has filled
 *
 * Context: qp->lock held.
 * Return: IBV_WC_SUCCESS if it is empty, RESP_SILENT until the owner answers, or
 * IBV_WC_REM_OP_ERR if the buffers are invalid.
 */
int piece_step(struct qp *qp);

/** piece_take() - empty a tray of @end for a user of it; nic.lock held */
void piece_take(const struct shm_client *g, struct qp *end, const struct shm_msg *m);

/** piece_answered() - an owner has emptied a tray; on the engine thread, no locks held */
void piece_answered(struct shm_peer *peer, const struct shm_msg *m);

#endif
