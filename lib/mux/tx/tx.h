/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What of a connection may be sent, and its turn. All of who serves its node alone. */
#ifndef WEIR_LIB_MUX_TX_TX_H
#define WEIR_LIB_MUX_TX_TX_H

#include "lib/mux/local/local.h"

/**
 * weir_piece_limit() - up to where the ring of a connection may be sent now
 * @conn: open
 * @tail: receives up to where the application has written
 *
 * What the application claims to have written and cannot have breaks the connection.
 * Return: a position, not below @conn->posted.
 */
uint64_t weir_piece_limit(struct weir_circuit *conn, uint64_t *tail);

/**
 * weir_piece_is_wanted() - whether a connection has something that may be sent now
 * @limit, @tail: as weir_piece_limit() says
 */
bool weir_piece_is_wanted(const struct weir_circuit *conn, uint64_t limit, uint64_t tail);

/*
 * Posts by the scheduler as long as there is room, unless the node is lost, and rings the
 * doorbells. Return: whether anything was posted.
 */
bool weir_pieces_post(struct weir_node *node, uint64_t now_ns);

#endif
