/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posting on the lanes of a remote, and what becomes of it. All of its worker alone.
 */
#ifndef WEIR_LIB_MUX_TX_POST_H
#define WEIR_LIB_MUX_TX_POST_H

#include "lib/mux/local/local.h"

/*
 * A work request of @posted.conn: @posted.bytes at @data, and all else as in @wr. The qp has
 * room. It goes out with others: weir_mux_post_doorbell() rings their doorbell.
 */
void weir_mux_post_append(struct weir_mux_posted_wr posted, uint64_t data, uint32_t lkey,
			  const struct ibv_send_wr *wr);
void weir_mux_post_doorbell(struct weir_mux_qp *qp);

/**
 * weir_mux_post_ctrl() - send a control message on the connection's qp
 *
 * It goes out with what else is posted, by weir_mux_tx_post().
 * Return: false: there is no room now.
 */
bool weir_mux_post_ctrl(struct weir_mux_vconn *conn, const struct wire_mux_control *message);

/* Return: the connection whose it was, or NULL. */
struct weir_mux_vconn *weir_mux_post_completed(struct weir_mux_remote *remote,
					       const struct ibv_wc *wc);

/*
 * port.c: what of lower levels the remote had in flight was @before; and what it may have now, beside
 * other nodes.
 */
void weir_mux_port_changed(struct weir_mux_remote *remote, uint64_t before);
void weir_mux_port_divide(struct weir_mux_remote *remote);

#endif
