/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The application's side of regions, grants, and RDMA reads and writes. */
#include <stdlib.h>

#include "lib/base/futex.h"
#include "lib/mux/handle.h"

int weir_mux_region_open(struct weir_mux *mux, size_t length, struct weir_mux_region **out)
{
	struct weir_mux_region *region = calloc(1, sizeof(*region));
	int rc;

	if (!region)
		return -ENOMEM;
	*region = (struct weir_mux_region){ .mux = mux, .length = length };
	rc = mux->host->region_open(mux, region);
	if (rc)
		free(region);
	else
		*out = region;
	return rc;
}

void *weir_mux_region_data(const struct weir_mux_region *region)
{
	return region->data;
}

int weir_mux_region_close(struct weir_mux_region *region)
{
	int rc = region->mux->host->region_close(region);

	if (!rc || rc == -ECONNRESET)
		free(region);
	return rc;
}

int weir_mux_conn_grant(struct weir_mux_conn *conn, const struct weir_mux_region *region,
			uint64_t at, uint64_t length, unsigned int rights, uint32_t *handle)
{
	return conn->host->grant(conn, region, at, length, rights, handle);
}

int weir_mux_conn_withdraw(struct weir_mux_conn *conn, uint32_t handle)
{
	return conn->host->withdraw(conn, handle);
}

/*
 * Reads is_finished before status: a failing connection sets the status first, so an error is
 * not mistaken for a plain end.
 */
int weir_mux_conn_ended(const struct weir_mux_conn *conn)
{
	bool is_finished = __atomic_load_n(&conn->shm->is_finished, __ATOMIC_SEQ_CST);
	int status = __atomic_load_n(&conn->status, __ATOMIC_RELAXED);

	if (!status)
		status = __atomic_load_n(&conn->shm->status, __ATOMIC_SEQ_CST);
	return !status && is_finished ? -ENOTCONN : status;
}

/*
 * Sequentially consistent, paired with weir_mux_rdma_op_desc_wait(): either we see is_awaited,
 * or the waiter sees DONE.
 */
void weir_mux_rdma_op_desc_complete(struct weir_mux_rdma_op_desc *desc, int status)
{
	desc->status = status;
	__atomic_store_n(&desc->state, WEIR_MUX_RDMA_OP_DONE, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&desc->is_awaited, __ATOMIC_SEQ_CST))
		weir_futex_wake_shared(&desc->state);
}

void weir_mux_rdma_op_desc_cancel(struct weir_mux_rdma_op_desc *desc, uint32_t from, int status)
{
	if (!__atomic_compare_exchange_n(&desc->state, &from, WEIR_MUX_RDMA_OP_STARTED, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	weir_mux_rdma_op_desc_complete(desc, status);
}

/* @state: receives the current state if the operation is not done. */
static int poll_desc(struct weir_mux_conn *conn, struct weir_mux_rdma_op_desc *desc,
		     uint32_t *state)
{
	uint32_t given = WEIR_MUX_RDMA_OP_SUBMITTED;
	int status;

	*state = __atomic_load_n(&desc->state, __ATOMIC_SEQ_CST);
	if (*state == WEIR_MUX_RDMA_OP_DONE) {
		status = desc->status;
		__atomic_store_n(&desc->state, WEIR_MUX_RDMA_OP_NONE, __ATOMIC_RELAXED);
		return status;
	}
	status = weir_mux_conn_ended(conn);
	if (status == -ENOTCONN &&
	    !__atomic_compare_exchange_n(&desc->state, &given, WEIR_MUX_RDMA_OP_NONE, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		status = 0; /* the mux has taken the operation and will complete it */
	return status ? status : -EAGAIN;
}

int weir_mux_rdma_op_desc_poll(struct weir_mux_conn *conn, struct weir_mux_rdma_op_desc *desc)
{
	uint32_t state;

	return poll_desc(conn, desc, &state);
}

int weir_mux_rdma_op_desc_wait(struct weir_mux_conn *conn, struct weir_mux_rdma_op_desc *desc)
{
	uint32_t state;
	int status;

	__atomic_store_n(&desc->is_awaited, 1, __ATOMIC_SEQ_CST);
	while ((status = poll_desc(conn, desc, &state)) == -EAGAIN)
		weir_futex_wait_shared(&desc->state, state);
	__atomic_store_n(&desc->is_awaited, 0, __ATOMIC_RELAXED);
	return status;
}

static int run_rdma_op(struct weir_mux_conn *conn, bool is_read, uint32_t handle, uint64_t there,
		       const struct weir_mux_region *region, uint64_t at, uint64_t length)
{
	struct weir_mux_rdma_op_desc *desc = &conn->shm->rdma_op;
	int status = weir_mux_conn_ended(conn);

	if (status)
		return status;
	desc->is_read = is_read;
	desc->handle = handle;
	desc->region = region->number;
	desc->there = there;
	desc->at = at;
	desc->length = length;
	__atomic_store_n(&desc->state, WEIR_MUX_RDMA_OP_SUBMITTED, __ATOMIC_SEQ_CST);
	conn->host->news(conn);
	return weir_mux_rdma_op_desc_wait(conn, desc);
}

int weir_mux_conn_write(struct weir_mux_conn *conn, uint32_t handle, uint64_t there,
			const struct weir_mux_region *region, uint64_t at, uint64_t length)
{
	return run_rdma_op(conn, false, handle, there, region, at, length);
}

int weir_mux_conn_read(struct weir_mux_conn *conn, uint32_t handle, uint64_t there,
		       const struct weir_mux_region *region, uint64_t at, uint64_t length)
{
	return run_rdma_op(conn, true, handle, there, region, at, length);
}
