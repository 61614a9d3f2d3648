/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What another mux says of connections. It can name its own only: those of its node and of the
 * class of the lane that it speaks on. Whatever else it says ends the node.
 */
#include <errno.h>

#include "lib/mux/mux.h"

static struct weir_listener *listener_find(struct weir_mux *mux, uint32_t service)
{
	struct weir_list *at;

	for (at = mux->listeners.next; at != &mux->listeners; at = at->next) {
		struct weir_listener *listener = weir_list_entry(at, struct weir_listener, link);

		if (listener->service == service)
			return listener;
	}
	return NULL;
}

static int opened(struct weir_lane *lane, const struct wire_mux *m)
{
	struct weir_listener *listener = listener_find(lane->node->mux, m->to);
	struct weir_conn *conn;
	int rc = -ECONNREFUSED;

	if (listener)
		rc = listener->count < listener->backlog ? 0 : -EAGAIN;
	if (!rc)
		rc = weir_conn_new(lane->node, lane->class, 1, &conn);
	if (rc)
		return weir_conn_refuse(lane->node, lane->class, m->from, rc);
	weir_conn_granted(conn, m->from, m->value);
	__atomic_fetch_or(&conn->chores, WEIR_CHORE_ACCEPT, __ATOMIC_ACQ_REL);
	weir_conn_news(conn);
	weir_list_add_tail(&listener->conns, &conn->listener_link);
	listener->count++;
	weir_eventfd_ring(listener->fd);
	return 0;
}

static int accepted(struct weir_conn *conn, const struct wire_mux *m)
{
	if (conn->is_open || conn->is_finished)
		return -EPROTO;
	weir_conn_granted(conn, m->from, m->value);
	pthread_cond_broadcast(&conn->mux->changed);
	return 0;
}

static int finished(struct weir_conn *conn)
{
	if (conn->is_finished)
		return -EPROTO;
	__atomic_store_n(&conn->is_finished, true, __ATOMIC_RELEASE);
	weir_conn_tell(conn);
	pthread_cond_broadcast(&conn->mux->changed);
	return 0;
}

static int refused(struct weir_conn *conn, const struct wire_mux *m)
{
	if (conn->is_open)
		return -EPROTO;
	weir_conn_fail(conn, -(int)m->value);
	return finished(conn);
}

/* A position only goes forward, and no further than a window can reach. */
static int credited(struct weir_conn *conn, const struct wire_mux *m)
{
	if (!conn->is_open || conn->is_finished || m->position < conn->granted ||
	    m->position - conn->granted > WIRE_WINDOW_MAX)
		return -EPROTO;
	__atomic_store_n(&conn->granted, m->position, __ATOMIC_RELEASE);
	return 0;
}

static int said(struct weir_conn *conn, const struct wire_mux *m)
{
	switch (m->type) {
	case WIRE_MUX_ACCEPT:
		return accepted(conn, m);
	case WIRE_MUX_REFUSE:
		return refused(conn, m);
	case WIRE_MUX_CREDIT:
		return credited(conn, m);
	default:
		return conn->is_open ? finished(conn) : -EPROTO;
	}
}

int weir_control_input(struct weir_lane *lane, const void *data, size_t length)
{
	struct weir_conn *conn;
	struct wire_mux m;
	int rc = wire_mux_decode(data, length, &m);

	if (rc)
		return rc;
	if (m.type == WIRE_MUX_OPEN)
		return opened(lane, &m);
	conn = weir_conn_find(lane->node->mux, m.to);
	if (!conn || conn->node != lane->node || conn->class != lane->class)
		return -EPROTO;
	rc = said(conn, &m);
	if (rc)
		return rc;
	if (!conn->is_detached)
		weir_conn_news(conn);
	else
		weir_conn_release(conn);
	return 0;
}
