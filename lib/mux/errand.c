/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided reads and writes. An application leaves an order in its door; the worker copies it, which
 * the application may change meanwhile, and checks it: that the region is its own, that the
 * other end has granted what the handle names, with these rights, and that neither is left. What is
 * posted after that cannot fail for its sake. It goes segment by segment, in the turns of the
 * connection.
 */
#include <errno.h>

#include "lib/futex.h"
#include "lib/mux/hub.h"

/* The application has its order back. */
static void order_done(struct weir_circuit *conn, int status)
{
	struct weir_order *order = &conn->door->order;

	order->status = status;
	__atomic_store_n(&order->state, WEIR_ORDER_DONE, __ATOMIC_RELEASE);
	weir_futex_wake_shared(&order->state);
}

static bool is_within(uint64_t at, uint64_t length, uint64_t whole)
{
	return length && at <= whole && length <= whole - at;
}

static struct weir_reach *reach_of(struct weir_circuit *conn, const struct weir_order *order)
{
	uint16_t right = order->is_read ? WIRE_MAY_READ : WIRE_MAY_WRITE;
	unsigned int i;

	for (i = 0; order->handle && i < WEIR_GRANTS_MAX; i++) {
		struct weir_reach *reach = &conn->reaches[i];

		if (reach->handle == order->handle && !reach->is_withdrawn &&
		    reach->rights & right && is_within(order->there, order->length, reach->length))
			return reach;
	}
	return NULL;
}

/* With hub->lock held. */
static int errand_begin(struct weir_circuit *conn, const struct weir_order *order)
{
	struct weir_plot *plot = weir_plot_find(conn->owner, order->region);
	struct weir_reach *reach = reach_of(conn, order);

	if (!plot || !is_within(order->at, order->length, plot->length))
		return -EINVAL;
	if (!reach)
		return -EACCES;
	plot->refs++;
	reach->users++;
	conn->errand = (struct weir_errand){
		.plot = plot, .reach = reach, .is_read = order->is_read,
		.local = (uintptr_t)plot->base + order->at,
		.remote = reach->address + order->there, .left = order->length,
	};
	return 0;
}

void weir_errand_take(struct weir_circuit *conn)
{
	uint32_t given = WEIR_ORDER_GIVEN;
	struct weir_order copy;
	int rc;

	if (conn->errand.plot ||
	    !__atomic_compare_exchange_n(&conn->door->order.state, &given, WEIR_ORDER_TAKEN, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	copy = conn->door->order;
	pthread_mutex_lock(&conn->hub->lock);
	rc = errand_begin(conn, &copy);
	pthread_mutex_unlock(&conn->hub->lock);
	if (rc)
		order_done(conn, rc);
}

void weir_errand_drop(struct weir_circuit *conn, int status)
{
	struct weir_errand *e = &conn->errand;

	if (!e->plot)
		return;
	e->plot->refs--;
	if (!--e->reach->users && e->reach->is_withdrawn)
		__atomic_fetch_or(&conn->chores, WEIR_CHORE_GRANTS, __ATOMIC_ACQ_REL);
	e->plot = NULL;
	e->left = 0;
	pthread_cond_broadcast(&conn->hub->changed);
	order_done(conn, status);
}

/* All that was posted is done, and nothing more will be. FIN or WITHDRAWN may have waited for it. */
static void errand_finish(struct weir_circuit *conn)
{
	pthread_mutex_lock(&conn->hub->lock);
	weir_errand_drop(conn, conn->errand.status);
	pthread_mutex_unlock(&conn->hub->lock);
	weir_circuit_news(conn);
}

void weir_errand_end(struct weir_circuit *conn, int status)
{
	struct weir_errand *e = &conn->errand;

	if (!e->plot)
		return;
	if (!e->status)
		e->status = status;
	e->left = 0;
	if (!e->wrs)
		errand_finish(conn);
}

void weir_errand_done(struct weir_circuit *conn)
{
	struct weir_errand *e = &conn->errand;

	if (!--e->wrs && !e->left)
		errand_finish(conn);
}
