/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations on an application's region: RDMA reads and writes, and zero-copy sends. The
 * application fills in a descriptor in the control block and may change the fields at any time.
 * So the worker checks a copy: the application owns the region, and the peer has granted the
 * handle's range with the rights needed. Afterwards no bad descriptor can make a work request
 * fail. The operation goes out segment by segment, as the scheduler picks the connection; the
 * region is pinned until the last work request completes.
 *
 * A zero-copy send is an operation, too: the region's bytes become a part of the stream.
 */
#include <errno.h>

#include "lib/mux/local/local.h"

void weir_mux_rdma_ops_init(struct weir_mux_vconn *conn)
{
	conn->rdma_op = (struct weir_mux_rdma_op){ .conn = conn, .desc = &conn->shm->rdma_op };
	conn->zc_send = (struct weir_mux_rdma_op){ .conn = conn, .desc = &conn->shm->zc_send };
}

static bool is_zc_send(const struct weir_mux_rdma_op *e)
{
	return e == &e->conn->zc_send;
}

/* Returns the descriptor to the application, which may wait for a zero-copy send by @room_fd. */
static void complete_op(struct weir_mux_rdma_op *e, int status)
{
	weir_mux_rdma_op_desc_complete(e->desc, status);
	if (is_zc_send(e))
		weir_mux_ring_wake(&e->conn->shm->out, &e->conn->room_fd);
}

static bool is_within(uint64_t at, uint64_t length, uint64_t whole)
{
	return length && at <= whole && length <= whole - at;
}

static struct weir_mux_remote_mr *find_remote_mr(struct weir_mux_vconn *conn,
						 const struct weir_mux_rdma_op_desc *desc)
{
	uint16_t right = desc->is_read ? WIRE_MUX_MAY_READ : WIRE_MUX_MAY_WRITE;
	unsigned int i;

	for (i = 0; desc->handle && i < WEIR_MUX_GRANTS_MAX; i++) {
		struct weir_mux_remote_mr *remote_mr = &conn->remote_mrs[i];

		if (remote_mr->handle == desc->handle && !remote_mr->is_withdrawn &&
		    remote_mr->rights & right &&
		    is_within(desc->there, desc->length, remote_mr->length))
			return remote_mr;
	}
	return NULL;
}

/* With mux->lock held. */
static int begin_op(struct weir_mux_rdma_op *e, const struct weir_mux_rdma_op_desc *desc)
{
	struct weir_mux_mr *mr = weir_mux_mr_find(e->conn->account, desc->region);
	struct weir_mux_remote_mr *remote_mr = is_zc_send(e) ? NULL : find_remote_mr(e->conn, desc);

	if (!mr || !is_within(desc->at, desc->length, mr->length))
		return -EINVAL;
	if (!is_zc_send(e) && !remote_mr)
		return -EACCES;
	mr->refs++;
	e->mr = mr;
	e->status = 0;
	e->local = (uintptr_t)mr->base + desc->at;
	e->left = desc->length;
	e->remote_mr = remote_mr;
	if (remote_mr) {
		remote_mr->users++;
		e->is_read = desc->is_read;
		e->remote = remote_mr->address + desc->there;
	}
	return 0;
}

/*
 * The record of a refused zero-copy send is already in the stream and the peer would wait for
 * its bytes, so the connection fails.
 */
static void refuse_op(struct weir_mux_rdma_op *e, int status)
{
	if (is_zc_send(e)) {
		status = -EPROTO;
		weir_mux_vconn_fail(e->conn, status);
		weir_mux_vconn_notify(e->conn);
	}
	complete_op(e, status);
}

/* Copies the application's fields only; the application may set is_awaited at the same time. */
static struct weir_mux_rdma_op_desc copy_desc(const struct weir_mux_rdma_op_desc *desc)
{
	return (struct weir_mux_rdma_op_desc){
		.is_read = desc->is_read,
		.handle = desc->handle,
		.region = desc->region,
		.there = desc->there,
		.at = desc->at,
		.length = desc->length,
	};
}

void weir_mux_rdma_op_start(struct weir_mux_rdma_op *e)
{
	pthread_mutex_t *lock = &e->conn->mux->lock;
	uint32_t given = WEIR_MUX_RDMA_OP_SUBMITTED;
	struct weir_mux_rdma_op_desc copy;
	int rc;

	if (e->mr || __atomic_load_n(&e->desc->state, __ATOMIC_SEQ_CST) != given ||
	    !__atomic_compare_exchange_n(&e->desc->state, &given, WEIR_MUX_RDMA_OP_STARTED, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	copy = copy_desc(e->desc);
	pthread_mutex_lock(lock);
	rc = begin_op(e, &copy);
	pthread_mutex_unlock(lock);
	if (rc)
		refuse_op(e, rc);
}

void weir_mux_rdma_op_drop(struct weir_mux_rdma_op *e, int status)
{
	struct weir_mux_vconn *conn = e->conn;

	if (!e->mr)
		return;
	e->mr->refs--;
	if (e->remote_mr && !--e->remote_mr->users && e->remote_mr->is_withdrawn)
		__atomic_fetch_or(&conn->ctrls, WEIR_MUX_CTRL_GRANTS, __ATOMIC_SEQ_CST);
	e->mr = NULL;
	e->left = 0;
	pthread_cond_broadcast(&conn->account->changed);
	complete_op(e, status);
}

/* The last work request has completed. FIN or WITHDRAWN may have waited for this. */
static void finish_op(struct weir_mux_rdma_op *e)
{
	struct weir_mux_vconn *conn = e->conn;

	pthread_mutex_lock(&conn->mux->lock);
	weir_mux_rdma_op_drop(e, e->status);
	pthread_mutex_unlock(&conn->mux->lock);
	if (!is_zc_send(e))
		weir_mux_vconn_notify(conn);
}

void weir_mux_rdma_op_stop(struct weir_mux_rdma_op *e, int status)
{
	if (!e->mr)
		return;
	if (!e->status)
		e->status = status;
	e->left = 0;
	if (!e->wrs)
		finish_op(e);
}

void weir_mux_rdma_op_wr_done(struct weir_mux_rdma_op *e)
{
	if (!--e->wrs && !e->left)
		finish_op(e);
}
