/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Posting on the QPs of a remote, and completions. Context: the worker. */
#ifndef WEIR_LIB_MUX_TX_POST_H
#define WEIR_LIB_MUX_TX_POST_H

#include "lib/mux/local/local.h"

/*
 * Appends a work request of @posted.conn to the chain: @posted.bytes at @data, the rest as in
 * @wr. The QP has room. weir_mux_post_doorbell() posts the chain.
 */
void weir_mux_post_append(struct weir_mux_posted_wr posted, uint64_t data, uint32_t lkey,
			  const struct ibv_send_wr *wr);
void weir_mux_post_doorbell(struct weir_mux_qp *qp);

/**
 * weir_mux_post_ctrl() - send a control message on the connection's QP
 *
 * weir_mux_tx_post() rings the doorbell.
 * Return: false: no room now.
 */
bool weir_mux_post_ctrl(struct weir_mux_vconn *conn, const struct wire_mux_control *message);

/* Handles a completion. Return: the connection of the work request, or NULL. */
struct weir_mux_vconn *weir_mux_post_completed(struct weir_mux_remote *remote,
					       const struct ibv_wc *wc);

/* Accounts for a change of the remote's low-level bytes in flight, which were @before. */
void weir_mux_port_changed(struct weir_mux_remote *remote, uint64_t before);
/* Sets the remote's present share of low_bytes_max. */
void weir_mux_port_divide(struct weir_mux_remote *remote);

#endif
