/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What of a connection may be sent, and its turn. All of who serves its remote alone. */
#ifndef WEIR_LIB_MUX_TX_TX_H
#define WEIR_LIB_MUX_TX_TX_H

#include "lib/mux/local/local.h"

/**
 * weir_mux_tx_limit() - up to where the ring of a connection may be sent now
 * @conn: open
 * @tail: receives up to where the application has written
 *
 * What the application claims to have written and cannot have breaks the connection.
 * Return: a position, not below @conn->posted.
 */
uint64_t weir_mux_tx_limit(struct weir_mux_vconn *conn, uint64_t *tail);

/**
 * weir_mux_tx_is_wanted() - whether a connection has something that may be sent now
 * @limit, @tail: as weir_mux_tx_limit() says
 */
bool weir_mux_tx_is_wanted(const struct weir_mux_vconn *conn, uint64_t limit, uint64_t tail);

/*
 * Posts by the scheduler as long as there is room, unless the remote is lost, and rings the
 * doorbells. Return: whether anything was posted.
 */
bool weir_mux_tx_post(struct weir_mux_remote *remote, uint64_t now_ns);

#endif
