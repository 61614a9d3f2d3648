/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posting on the lanes of a node, and what becomes of it. All of its worker alone.
 */
#ifndef WEIR_LIB_MUX_TX_POST_H
#define WEIR_LIB_MUX_TX_POST_H

#include "lib/mux/local/local.h"

/*
 * A work request of @posted.conn: @posted.bytes at @data, and all else as in @wr. The lane has
 * room. It goes out with others: weir_post_ring() rings their doorbell.
 */
void weir_post_append(struct weir_posted posted, uint64_t data, uint32_t lkey,
		      const struct ibv_send_wr *wr);
void weir_post_ring(struct weir_lane *lane);

/**
 * weir_post_control() - send a control message on the connection's lane
 *
 * It goes out with what else is posted, by weir_pieces_post().
 * Return: false: there is no room now.
 */
bool weir_post_control(struct weir_circuit *conn, const struct wire_mux *message);

/* Return: the connection whose it was, or NULL. */
struct weir_circuit *weir_post_completed(struct weir_node *node, const struct ibv_wc *wc);

/*
 * port.c: what of lower levels the node had in flight was @before; and what it may have now, beside
 * other nodes.
 */
void weir_port_changed(struct weir_node *node, uint64_t before);
void weir_port_share(struct weir_node *node);

#endif
