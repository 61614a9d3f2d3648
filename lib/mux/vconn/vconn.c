/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Life of a connection, from its slot in the table to the last reference. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/futex.h"
#include "lib/mux/local/local.h"

static int id_take(struct weir_mux_local *mux, struct weir_mux_vconn *conn)
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

static void id_give(struct weir_mux_vconn *conn)
{
	if (!conn->id)
		return;
	conn->mux->table[(conn->id & 0xffff) - 1] = NULL;
	conn->mux->nr_conns--;
}

struct weir_mux_vconn *weir_mux_vconn_find(struct weir_mux_local *mux, uint32_t id)
{
	uint32_t index = (id & 0xffff) - 1;
	struct weir_mux_vconn *conn;

	if (index >= mux->options.connections_max)
		return NULL;
	conn = mux->table[index];
	return conn && conn->id == id ? conn : NULL;
}

/*
 * Length of a connection's rings, in slots. In a scheduler round a connection may send its
 * weight in segments. The ring must hold twice as much; otherwise the ring runs empty during
 * refills, and the connection gets less than a fair share.
 */
static unsigned int slots_of(const struct weir_mux_account *account, uint16_t weight,
			     uint64_t window)
{
	const uint32_t ring_bytes = account->mux->options.ring_bytes;
	uint64_t wanted = (uint64_t)weight * weir_mux_account_weight(account) / 2;
	unsigned int slots = 1;

	if (window)
		wanted = (window - 1) / ring_bytes + 1;
	while (slots < WEIR_MUX_RING_SLAB_CONNS && slots < wanted)
		slots *= 2;
	return slots;
}

static struct weir_mux_vconn *conn_alloc(struct weir_mux_account *account,
					 struct weir_mux_remote *remote, uint8_t class)
{
	struct weir_mux_vconn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->app = (struct weir_mux_conn){ .host = &weir_mux_local_ops, .fd = -1, .room_fd = -1 };
	conn->mux = remote->mux;
	conn->account = account;
	conn->remote = remote;
	conn->class = class;
	conn->fd = conn->room_fd = -1;
	weir_list_init(&conn->remote_link);
	weir_list_init(&conn->service_link);
	weir_list_init(&conn->open_link);
	weir_list_init(&conn->wait_link);
	return conn;
}

static void conn_attach(struct weir_mux_vconn *conn)
{
	conn->remote->refs++;
	conn->remote->unused_ns = 0;
	weir_list_add_tail(&conn->remote->conns, &conn->remote_link);
}

int weir_mux_vconn_new(struct weir_mux_account *account, struct weir_mux_remote *remote,
		       uint8_t class, uint16_t weight, uint64_t window, struct weir_mux_vconn **out)
{
	struct weir_mux_vconn *conn;
	int rc;

	rc = class < account->group->first_class ? -EPERM : weir_mux_account_take_conn(account);
	if (rc)
		return rc;
	conn = conn_alloc(account, remote, class);
	if (!conn) {
		weir_mux_account_give_conn(account);
		return -ENOMEM;
	}
	rc = id_take(remote->mux, conn);
	if (!rc)
		rc = weir_mux_sched_group_join(conn);
	if (!rc)
		rc = weir_mux_ring_slab_take(account, conn, slots_of(account, weight, window));
	if (rc) {
		weir_mux_sched_group_leave(conn);
		id_give(conn);
		free(conn);
		weir_mux_account_give_conn(account);
		return rc;
	}
	conn->weight = weight;
	weir_sched_flow_init(&conn->flow, &conn->sched_group->bundle, weight);
	weir_mux_rdma_ops_init(conn);
	conn_attach(conn);
	*out = conn;
	return 0;
}

int weir_mux_vconn_weigh(struct weir_mux_vconn *conn, unsigned int weight)
{
	if (!weight || weight > WEIR_SCHED_WEIGHT_MAX)
		return -EINVAL;
	pthread_mutex_lock(&conn->mux->lock);
	__atomic_store_n(&conn->weight, (uint16_t)weight, __ATOMIC_RELAXED);
	if (!conn->is_detached)
		weir_mux_vconn_notify(conn);
	pthread_mutex_unlock(&conn->mux->lock);
	return 0;
}

static_assert(WEIR_MUX_REFUSALS_MAX >=
		      WIRE_MUX_OPENS_MAX + WEIR_MUX_CLASSES_MAX * WEIR_MUX_QP_CTRLS,
	      "a peer that obeys WIRE_MUX_OPENS_MAX would be cut off");

/*
 * A placeholder: sends a control message, then goes. The caller fills in the message and
 * notifies the worker.
 */
static int ctrl_conn_new(struct weir_mux_remote *remote, uint8_t class, uint32_t ctrl,
			 struct weir_mux_vconn **out)
{
	struct weir_mux_vconn *conn;

	if (remote->nr_refusals == WEIR_MUX_REFUSALS_MAX)
		return -EPROTO;
	conn = conn_alloc(&remote->mux->self, remote, class);
	if (!conn)
		return -ENOMEM;
	remote->nr_refusals++;
	conn->peer = WEIR_MUX_PEER_REFUSED;
	conn->is_closed = conn->fin_sent = true;
	conn->ctrls = ctrl;
	conn_attach(conn);
	*out = conn;
	return 0;
}

int weir_mux_vconn_refuse(struct weir_mux_remote *remote, uint8_t class, uint32_t remote_id,
			  int status)
{
	struct weir_mux_vconn *conn;
	int rc = ctrl_conn_new(remote, class, WEIR_MUX_CTRL_REFUSE, &conn);

	if (rc)
		return rc;
	conn->remote_id = remote_id;
	conn->status = status;
	weir_mux_vconn_notify(conn);
	return 0;
}

int weir_mux_vconn_send_remote_ctrl(struct weir_mux_remote *remote, enum wire_mux_type what)
{
	struct weir_mux_vconn *conn;
	int rc = ctrl_conn_new(remote, 0, WEIR_MUX_CTRL_REMOTE, &conn);

	if (rc)
		return rc;
	conn->service = what;
	weir_mux_vconn_notify(conn);
	return 0;
}

static void set_peer(struct weir_mux_vconn *conn, enum weir_mux_peer_state state)
{
	conn->remote->nr_opens += state == WEIR_MUX_PEER_ASKED;
	conn->remote->nr_opens -= conn->peer == WEIR_MUX_PEER_ASKED;
	__atomic_store_n(&conn->peer, state, __ATOMIC_RELEASE);
}

static void send_open_now(struct weir_mux_vconn *conn)
{
	set_peer(conn, WEIR_MUX_PEER_ASKED);
	__atomic_fetch_or(&conn->ctrls, WEIR_MUX_CTRL_OPEN, __ATOMIC_SEQ_CST);
	weir_mux_vconn_notify(conn);
}

void weir_mux_vconn_send_open(struct weir_mux_vconn *conn)
{
	weir_mux_sched_group_charge(conn);
	if (conn->remote->nr_opens < WIRE_MUX_OPENS_MAX)
		send_open_now(conn);
	else
		weir_list_add_tail(&conn->remote->open_waiters, &conn->open_link);
}

/* Waiting connections are served in order of arrival. */
void weir_mux_vconn_send_next_open(struct weir_mux_remote *remote)
{
	struct weir_mux_vconn *conn;

	if (weir_list_is_empty(&remote->open_waiters) || remote->nr_opens >= WIRE_MUX_OPENS_MAX)
		return;
	conn = weir_list_entry(remote->open_waiters.next, struct weir_mux_vconn, open_link);
	weir_list_del(&conn->open_link);
	send_open_now(conn);
}

void weir_mux_vconn_wake_waiters(struct weir_mux_vconn *conn)
{
	if (conn->waiter)
		pthread_cond_signal(conn->waiter);
	pthread_cond_broadcast(&conn->account->changed);
}

void weir_mux_vconn_set_window(struct weir_mux_vconn *conn, const struct wire_mux_control *m)
{
	conn->peer_ring = (struct weir_mux_peer_ring){ .address = m->position,
						       .rkey = (uint32_t)m->length,
						       .size = m->position ? m->value : 0 };
	__atomic_store_n(&conn->remote_id, m->from, __ATOMIC_RELAXED);
	__atomic_store_n(&conn->granted, m->value, __ATOMIC_RELAXED);
	set_peer(conn, WEIR_MUX_PEER_OPEN);
}

static void wake_armed(struct weir_mux_ring *ring, const int *fd, uint32_t armed)
{
	if (armed & WEIR_MUX_RING_ARMED_FD)
		weir_mux_fd_signal(__atomic_load_n(fd, __ATOMIC_ACQUIRE));
	if (armed & WEIR_MUX_RING_ARMED_CALL)
		weir_futex_wake_shared(&ring->armed);
}

void weir_mux_ring_wake(struct weir_mux_ring *ring, const int *fd)
{
	wake_armed(ring, fd, weir_mux_ring_disarm(ring));
}

void weir_mux_ring_wake_at(struct weir_mux_ring *ring, const int *fd, uint64_t position)
{
	wake_armed(ring, fd, weir_mux_ring_disarm_at(ring, position));
}

void weir_mux_vconn_wake_app(struct weir_mux_vconn *conn)
{
	if (!conn->slab)
		return;
	weir_mux_ring_wake(&conn->shm->in, &conn->fd);
	weir_mux_ring_wake(&conn->shm->out, &conn->room_fd);
}

/* The connection has ended: completes operations not taken by the worker. */
static void cancel_ops(struct weir_mux_vconn *conn, int status)
{
	if (!conn->shm)
		return;
	weir_mux_rdma_op_desc_cancel(&conn->shm->rdma_op, WEIR_MUX_RDMA_OP_SUBMITTED, status);
	weir_mux_rdma_op_desc_cancel(&conn->shm->zc_send, WEIR_MUX_RDMA_OP_SUBMITTED, status);
}

void weir_mux_vconn_peer_finished(struct weir_mux_vconn *conn)
{
	if (!weir_mux_vconn_is_finished(conn))
		set_peer(conn, weir_mux_vconn_was_opened(conn) ? WEIR_MUX_PEER_FINISHED :
								 WEIR_MUX_PEER_REFUSED);
	if (conn->shm)
		__atomic_store_n(&conn->shm->is_finished, 1, __ATOMIC_SEQ_CST);
	cancel_ops(conn, -ENOTCONN);
	weir_mux_vconn_wake_app(conn);
}

void weir_mux_vconn_fail(struct weir_mux_vconn *conn, int status)
{
	int none = 0;

	if (__atomic_compare_exchange_n(&conn->status, &none, status, false, __ATOMIC_SEQ_CST,
					__ATOMIC_RELAXED) &&
	    conn->shm)
		__atomic_store_n(&conn->shm->status, status, __ATOMIC_SEQ_CST);
	cancel_ops(conn, status);
	weir_mux_vconn_wake_app(conn);
}

void weir_mux_vconn_release(struct weir_mux_vconn *conn)
{
	struct weir_mux_account *account = conn->account;

	if (!conn->is_closed || !weir_mux_vconn_is_finished(conn) || !conn->is_detached)
		return;
	if (conn->slab)
		weir_mux_account_give_conn(account);
	else
		conn->remote->nr_refusals--;
	weir_list_del(&conn->remote_link);
	weir_mux_grants_drop(conn);
	weir_mux_sched_group_leave(conn);
	id_give(conn);
	weir_mux_ring_slab_give(conn);
	if (conn->fd >= 0)
		close(conn->fd);
	if (conn->room_fd >= 0)
		close(conn->room_fd);
	weir_mux_remote_put(conn->remote);
	free(conn);
	pthread_cond_broadcast(&account->changed);
}

void weir_mux_vconn_abort(struct weir_mux_vconn *conn)
{
	weir_mux_vconn_fail(conn, -ECONNRESET);
	weir_mux_vconn_close(conn);
}

void weir_mux_vconn_close(struct weir_mux_vconn *conn)
{
	weir_list_del(&conn->service_link);
	__atomic_store_n(&conn->is_closed, true, __ATOMIC_RELEASE);
	if (conn->is_detached)
		weir_mux_vconn_release(conn);
	else
		weir_mux_vconn_notify(conn);
}
