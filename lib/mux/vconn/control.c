/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What another mux says of connections. It can name its own only: those of its node and of the
 * class of the lane that it speaks on. Whatever else it says ends the node.
 */
#include <errno.h>

#include "lib/mux/local/local.h"

static int accepted(struct weir_circuit *conn, const struct wire_mux *m)
{
	if (conn->is_open || conn->is_finished)
		return -EPROTO;
	weir_circuit_granted(conn, m);
	weir_circuit_answered(conn);
	weir_circuit_changed(conn);
	return 0;
}

static int finished(struct weir_circuit *conn)
{
	if (conn->is_finished)
		return -EPROTO;
	weir_circuit_finished(conn);
	weir_circuit_answered(conn);
	weir_circuit_changed(conn);
	return 0;
}

/* The other end was closed; or was cut off, and has lost what it had still to send. */
static int ended(struct weir_circuit *conn, const struct wire_mux *m)
{
	if (m->value)
		weir_circuit_fail(conn, -ECONNRESET);
	return finished(conn);
}

static int refused(struct weir_circuit *conn, const struct wire_mux *m)
{
	if (conn->is_open)
		return -EPROTO;
	weir_circuit_fail(conn, -(int)m->value);
	return finished(conn);
}

/* A position only goes forward, and no further than a window can reach. */
static int credited(struct weir_circuit *conn, const struct wire_mux *m)
{
	if (!conn->is_open || conn->is_finished || m->position < conn->granted ||
	    m->position - conn->granted > WIRE_WINDOW_MAX)
		return -EPROTO;
	__atomic_store_n(&conn->granted, m->position, __ATOMIC_RELEASE);
	return 0;
}

static int said(struct weir_circuit *conn, const struct wire_mux *m)
{
	switch (m->type) {
	case WIRE_MUX_ACCEPT:
		return accepted(conn, m);
	case WIRE_MUX_REFUSE:
		return refused(conn, m);
	case WIRE_MUX_CREDIT:
		return credited(conn, m);
	case WIRE_MUX_GRANT:
	case WIRE_MUX_WITHDRAW:
	case WIRE_MUX_WITHDRAWN:
		return weir_grant_input(conn, m);
	default:
		return conn->is_open ? ended(conn, m) : -EPROTO;
	}
}

int weir_control_input(struct weir_lane *lane, const void *data, size_t length)
{
	struct weir_circuit *conn;
	struct wire_mux m;
	int rc = wire_mux_decode(data, length, &m);

	if (rc)
		return rc;
	if (!lane->node->heard)
		lane->node->heard = ++lane->node->hub->last_event;
	if (m.type == WIRE_MUX_OPEN)
		return weir_opening_input(lane, &m);
	if (m.type >= WIRE_MUX_LEAVE)
		return weir_leave_input(lane, m.type);
	conn = weir_circuit_find(lane->node->hub, m.to);
	if (!conn || conn->node != lane->node || conn->class != lane->class)
		return -EPROTO;
	rc = said(conn, &m);
	if (rc)
		return rc;
	if (conn->is_detached) {
		weir_circuit_release(conn);
		return 0;
	}
	weir_circuit_leave(conn);
	conn->hub->has_left = true;
	return 0;
}
