/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Control messages from another mux. A mux may only name connections of its own remote and of
 * the class of the QP used. Anything else ends the remote.
 */
#include <errno.h>

#include "lib/mux/local/local.h"
#include "wire/status.h"

static int handle_accept(struct weir_mux_vconn *conn, const struct wire_mux_control *m)
{
	if (conn->peer > WEIR_MUX_PEER_ASKED)
		return -EPROTO;
	weir_mux_vconn_set_window(conn, m);
	weir_mux_vconn_send_next_open(conn->remote);
	weir_mux_vconn_wake_waiters(conn);
	return 0;
}

static int mark_finished(struct weir_mux_vconn *conn)
{
	if (weir_mux_vconn_is_finished(conn))
		return -EPROTO;
	weir_mux_vconn_peer_finished(conn);
	weir_mux_vconn_send_next_open(conn->remote);
	weir_mux_vconn_wake_waiters(conn);
	return 0;
}

/* The peer's application closed, or the peer was cut off and has lost unsent data (value not 0). */
static int handle_fin(struct weir_mux_vconn *conn, const struct wire_mux_control *m)
{
	if (m->value)
		weir_mux_vconn_fail(conn, -ECONNRESET);
	return mark_finished(conn);
}

static int handle_refuse(struct weir_mux_vconn *conn, const struct wire_mux_control *m)
{
	if (weir_mux_vconn_was_opened(conn))
		return -EPROTO;
	weir_mux_vconn_fail(conn, wire_status(-(int)m->value));
	return mark_finished(conn);
}

/* A credit's position only grows, by at most a window. */
static int handle_credit(struct weir_mux_vconn *conn, const struct wire_mux_control *m)
{
	if (!weir_mux_vconn_is_open(conn) || m->position < conn->granted ||
	    m->position - conn->granted > WIRE_MUX_WINDOW_MAX)
		return -EPROTO;
	__atomic_store_n(&conn->granted, m->position, __ATOMIC_RELEASE);
	return 0;
}

static int handle_conn_ctrl(struct weir_mux_vconn *conn, const struct wire_mux_control *m)
{
	switch (m->type) {
	case WIRE_MUX_ACCEPT:
		return handle_accept(conn, m);
	case WIRE_MUX_REFUSE:
		return handle_refuse(conn, m);
	case WIRE_MUX_CREDIT:
		return handle_credit(conn, m);
	case WIRE_MUX_GRANT:
	case WIRE_MUX_WITHDRAW:
	case WIRE_MUX_WITHDRAWN:
		return weir_mux_grant_input(conn, m);
	default:
		return weir_mux_vconn_was_opened(conn) ? handle_fin(conn, m) : -EPROTO;
	}
}

int weir_mux_control_input(struct weir_mux_qp *qp, const void *data, size_t length)
{
	struct weir_mux_vconn *conn;
	struct wire_mux_control m;
	int rc = wire_mux_control_decode(data, length, &m);

	if (rc)
		return rc;
	if (!qp->remote->heard)
		qp->remote->heard = ++qp->remote->mux->last_event;
	if (m.type == WIRE_MUX_OPEN)
		return weir_mux_pending_open_input(qp, &m);
	if (m.type >= WIRE_MUX_LEAVE)
		return weir_mux_idle_input(qp, m.type);
	conn = weir_mux_vconn_find(qp->remote->mux, m.to);
	if (!conn || conn->remote != qp->remote || conn->class != qp->class)
		return -EPROTO;
	rc = handle_conn_ctrl(conn, &m);
	if (rc)
		return rc;
	if (conn->is_detached) {
		weir_mux_vconn_release(conn);
		return 0;
	}
	weir_mux_vconn_queue(conn);
	conn->mux->has_queued = true;
	return 0;
}
