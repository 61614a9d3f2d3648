/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The life of a connection, from its place in the table to the last who lets go of it. */
#include <stdlib.h>
#include <unistd.h>

#include "lib/futex.h"
#include "lib/mux/mux.h"

static int place_take(struct weir_mux *mux, struct weir_conn *conn)
{
	unsigned int index = mux->next_index, nr = mux->options.connections_max;

	if (mux->nr_conns == nr)
		return -EDQUOT;
	while (mux->table[index])
		index = (index + 1) % nr;
	mux->next_index = (index + 1) % nr;
	mux->nr_conns++;
	mux->table[index] = conn;
	mux->generations[index]++;
	conn->id = (uint32_t)mux->generations[index] << 16 | (index + 1);
	return 0;
}

static void place_give(struct weir_conn *conn)
{
	if (!conn->id)
		return;
	conn->mux->table[(conn->id & 0xffff) - 1] = NULL;
	conn->mux->nr_conns--;
}

struct weir_conn *weir_conn_find(struct weir_mux *mux, uint32_t id)
{
	uint32_t index = (id & 0xffff) - 1;
	struct weir_conn *conn;

	if (index >= mux->options.connections_max)
		return NULL;
	conn = mux->table[index];
	return conn && conn->id == id ? conn : NULL;
}

static struct weir_conn *conn_alloc(struct weir_node *node, uint8_t class, uint16_t weight)
{
	struct weir_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->mux = node->mux;
	conn->node = node;
	conn->class = class;
	conn->fd = conn->room_fd = -1;
	weir_list_init(&conn->node_link);
	weir_list_init(&conn->listener_link);
	weir_list_init(&conn->wait_link);
	weir_flow_init(&conn->flow, class, weight);
	return conn;
}

static void conn_attach(struct weir_conn *conn)
{
	conn->node->refs++;
	weir_list_add_tail(&conn->node->conns, &conn->node_link);
}

int weir_conn_new(struct weir_node *node, uint8_t class, uint16_t weight, struct weir_conn **out)
{
	struct weir_conn *conn = conn_alloc(node, class, weight);
	int rc;

	if (!conn)
		return -ENOMEM;
	rc = place_take(node->mux, conn);
	if (!rc)
		rc = weir_chunk_take(node->mux, conn);
	if (rc) {
		place_give(conn);
		free(conn);
		return rc;
	}
	conn_attach(conn);
	*out = conn;
	return 0;
}

int weir_conn_refuse(struct weir_node *node, uint8_t class, uint32_t remote_id, int status)
{
	struct weir_mux *mux = node->mux;
	struct weir_conn *conn;

	if (mux->nr_refusals == WEIR_REFUSALS_MAX)
		return -EPROTO;
	conn = conn_alloc(node, class, 1);
	if (!conn)
		return -ENOMEM;
	mux->nr_refusals++;
	conn->remote_id = remote_id;
	conn->status = status;
	conn->is_closed = conn->is_finished = conn->fin_sent = true;
	conn->chores = WEIR_CHORE_REFUSE;
	conn_attach(conn);
	weir_conn_news(conn);
	return 0;
}

void weir_conn_granted(struct weir_conn *conn, uint32_t remote_id, uint32_t window)
{
	__atomic_store_n(&conn->remote_id, remote_id, __ATOMIC_RELAXED);
	__atomic_store_n(&conn->granted, window, __ATOMIC_RELAXED);
	__atomic_store_n(&conn->is_open, true, __ATOMIC_RELEASE);
}

void weir_ring_tell(struct weir_ring *ring, const int *fd)
{
	uint32_t armed = weir_ring_disarm(ring);

	if (armed & WEIR_ARMED_FD)
		weir_eventfd_ring(__atomic_load_n(fd, __ATOMIC_ACQUIRE));
	if (armed & WEIR_ARMED_CALL)
		weir_futex_wake(&ring->armed, INT_MAX);
}

void weir_conn_tell(struct weir_conn *conn)
{
	if (!conn->chunk)
		return;
	weir_ring_tell(conn->in.ring, &conn->fd);
	weir_ring_tell(conn->out.ring, &conn->room_fd);
}

void weir_conn_fail(struct weir_conn *conn, int status)
{
	int none = 0;

	__atomic_compare_exchange_n(&conn->status, &none, status, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_RELAXED);
	weir_conn_tell(conn);
}

void weir_conn_release(struct weir_conn *conn)
{
	struct weir_mux *mux = conn->mux;

	if (!conn->is_closed || !conn->is_finished || !conn->is_detached)
		return;
	if (!conn->chunk)
		mux->nr_refusals--;
	weir_list_del(&conn->node_link);
	place_give(conn);
	weir_chunk_give(conn);
	if (conn->fd >= 0)
		close(conn->fd);
	if (conn->room_fd >= 0)
		close(conn->room_fd);
	weir_node_put(conn->node);
	free(conn);
	pthread_cond_broadcast(&mux->changed);
}

void weir_conn_shut(struct weir_conn *conn)
{
	weir_list_del(&conn->listener_link);
	__atomic_store_n(&conn->is_closed, true, __ATOMIC_RELEASE);
	if (conn->is_detached)
		weir_conn_release(conn);
	else
		weir_conn_news(conn);
}

void weir_conn_close(struct weir_conn *conn)
{
	struct weir_mux *mux = conn->mux;

	pthread_mutex_lock(&mux->lock);
	weir_conn_shut(conn);
	pthread_mutex_unlock(&mux->lock);
}
