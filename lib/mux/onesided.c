/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Regions, handles, and reads and writes by them, as an application calls for them. */
#include <stdlib.h>

#include "lib/futex.h"
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

int weir_conn_grant(struct weir_conn *conn, const struct weir_mux_region *region, uint64_t at,
		    uint64_t length, unsigned int rights, uint32_t *handle)
{
	return conn->host->grant(conn, region, at, length, rights, handle);
}

int weir_conn_withdraw(struct weir_conn *conn, uint32_t handle)
{
	return conn->host->withdraw(conn, handle);
}

/* Why no order will be taken any more, or 0. Who is cut off is told why before that it is over. */
static int ended(const struct weir_conn *conn)
{
	bool is_finished = __atomic_load_n(&conn->door->is_finished, __ATOMIC_ACQUIRE);
	int status = __atomic_load_n(&conn->status, __ATOMIC_RELAXED);

	if (!status)
		status = __atomic_load_n(&conn->door->status, __ATOMIC_SEQ_CST);
	return !status && is_finished ? -ENOTCONN : status;
}

/* An order that has not been taken when the connection ends is taken back. */
static int wait_for(struct weir_conn *conn, struct weir_order *order)
{
	uint32_t state, given;
	int status;

	while ((state = __atomic_load_n(&order->state, __ATOMIC_ACQUIRE)) != WEIR_ORDER_DONE) {
		status = ended(conn);
		given = WEIR_ORDER_GIVEN;
		if (status == -ENOTCONN &&
		    !__atomic_compare_exchange_n(&order->state, &given, WEIR_ORDER_NONE, false,
						 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			status = 0; /* it is being dealt with */
		if (status)
			return status;
		weir_futex_wait_shared(&order->state, state);
	}
	status = order->status;
	__atomic_store_n(&order->state, WEIR_ORDER_NONE, __ATOMIC_RELAXED);
	return status;
}

static int transfer(struct weir_conn *conn, bool is_read, uint32_t handle, uint64_t there,
		    const struct weir_mux_region *region, uint64_t at, uint64_t length)
{
	struct weir_order *order = &conn->door->order;
	int status = ended(conn);

	if (status)
		return status;
	order->is_read = is_read;
	order->handle = handle;
	order->region = region->number;
	order->there = there;
	order->at = at;
	order->length = length;
	__atomic_store_n(&order->state, WEIR_ORDER_GIVEN, __ATOMIC_RELEASE);
	conn->host->news(conn);
	return wait_for(conn, order);
}

int weir_conn_write(struct weir_conn *conn, uint32_t handle, uint64_t there,
		    const struct weir_mux_region *region, uint64_t at, uint64_t length)
{
	return transfer(conn, false, handle, there, region, at, length);
}

int weir_conn_read(struct weir_conn *conn, uint32_t handle, uint64_t there,
		   const struct weir_mux_region *region, uint64_t at, uint64_t length)
{
	return transfer(conn, true, handle, there, region, at, length);
}
