/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a connection may send. Context: the worker. */
#ifndef WEIR_LIB_MUX_TX_TX_H
#define WEIR_LIB_MUX_TX_TX_H

#include "lib/mux/local/local.h"

/**
 * weir_mux_tx_limit() - the position up to which a connection's ring may be sent now
 * @conn: open
 * @tail: receives the position up to which the application has written
 *
 * An impossible position from the application fails the connection.
 * Return: a position, at least @conn->posted.
 */
uint64_t weir_mux_tx_limit(struct weir_mux_vconn *conn, uint64_t *tail);

/**
 * weir_mux_tx_is_wanted() - whether a connection may send something now
 * @limit, @tail: as from weir_mux_tx_limit()
 */
bool weir_mux_tx_is_wanted(const struct weir_mux_vconn *conn, uint64_t limit, uint64_t tail);

/*
 * Posts in the scheduler's order while there is room, unless the remote is lost, and rings the
 * doorbells. Return: whether anything was posted.
 */
bool weir_mux_tx_post(struct weir_mux_remote *remote);

#endif
