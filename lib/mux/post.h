/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posting on the lanes of a node, and what becomes of it. All of its worker alone.
 */
#ifndef WEIR_LIB_MUX_POST_H
#define WEIR_LIB_MUX_POST_H

#include "lib/mux/hub.h"

/**
 * weir_post_limit() - up to where the ring of a connection may be sent now
 * @conn: open
 * @tail: receives up to where the application has written
 *
 * What the application claims to have written and cannot have breaks the connection.
 * Return: a position, not below @conn->posted.
 */
uint64_t weir_post_limit(struct weir_circuit *conn, uint64_t *tail);

/**
 * weir_post_is_wanted() - whether a connection has something that may be sent now
 * @limit, @tail: as weir_post_limit() says
 */
bool weir_post_is_wanted(const struct weir_circuit *conn, uint64_t limit, uint64_t tail);

/**
 * weir_post_control() - send a control message on the connection's lane
 *
 * It goes out with what else is posted, by weir_post_turns().
 * Return: false: there is no room now.
 */
bool weir_post_control(struct weir_circuit *conn, const struct wire_mux *message);

/*
 * Posts by the scheduler as long as there is room, unless the node is lost, and rings the
 * doorbells. Return: whether anything was posted.
 */
bool weir_post_turns(struct weir_node *node, uint64_t now_ns);

/* Return: the connection whose it was, or NULL. */
struct weir_circuit *weir_post_completed(struct weir_node *node, const struct ibv_wc *wc);

/*
 * port.c: what of lower levels the node had in flight was @before; and what it may have now, beside
 * other nodes.
 */
void weir_port_changed(struct weir_node *node, uint64_t before);
void weir_port_share(struct weir_node *node);

#endif
