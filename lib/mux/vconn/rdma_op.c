/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is read, written or sent from an application's region. It leaves an order in its door; the
 * worker copies it, which the application may change meanwhile, and checks it: that the region is
 * its own, that the other end has granted what the handle names, with these rights, and that
 * neither is left. What is posted after that cannot fail for its sake. It goes segment by segment,
 * in the turns of the connection, and the region stays until nothing of it is in flight.
 *
 * A loan is an order too: to send what lies in the region, as a part of the stream.
 */
#include <errno.h>

#include "lib/mux/local/local.h"

void weir_errands_open(struct weir_circuit *conn)
{
	conn->errand = (struct weir_errand){ .conn = conn, .order = &conn->door->order };
	conn->loan = (struct weir_errand){ .conn = conn, .order = &conn->door->loan };
}

static bool is_loan(const struct weir_errand *e)
{
	return e == &e->conn->loan;
}

/*
 * The application has its order back. Of a loan it may wait by the descriptor that says there is
 * room.
 */
static void order_done(struct weir_errand *e, int status)
{
	weir_order_done(e->order, status);
	if (is_loan(e))
		weir_ring_tell(&e->conn->door->out, &e->conn->room_fd);
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
static int errand_begin(struct weir_errand *e, const struct weir_order *order)
{
	struct weir_plot *plot = weir_plot_find(e->conn->owner, order->region);
	struct weir_reach *reach = is_loan(e) ? NULL : reach_of(e->conn, order);

	if (!plot || !is_within(order->at, order->length, plot->length))
		return -EINVAL;
	if (!is_loan(e) && !reach)
		return -EACCES;
	plot->refs++;
	e->plot = plot;
	e->status = 0;
	e->local = (uintptr_t)plot->base + order->at;
	e->left = order->length;
	e->reach = reach;
	if (reach) {
		reach->users++;
		e->is_read = order->is_read;
		e->remote = reach->address + order->there;
	}
	return 0;
}

/* The record of a loan that is none stands in the stream: the other end would wait for it. */
static void errand_refuse(struct weir_errand *e, int status)
{
	if (is_loan(e)) {
		status = -EPROTO;
		weir_circuit_fail(e->conn, status);
		weir_circuit_news(e->conn);
	}
	order_done(e, status);
}

/* What the application has filled in; it may begin to wait meanwhile. */
static struct weir_order order_read(const struct weir_order *order)
{
	return (struct weir_order){
		.is_read = order->is_read,
		.handle = order->handle,
		.region = order->region,
		.there = order->there,
		.at = order->at,
		.length = order->length,
	};
}

void weir_errand_take(struct weir_errand *e)
{
	pthread_mutex_t *lock = &e->conn->hub->lock;
	uint32_t given = WEIR_ORDER_GIVEN;
	struct weir_order copy;
	int rc;

	if (e->plot ||
	    !__atomic_compare_exchange_n(&e->order->state, &given, WEIR_ORDER_TAKEN, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	copy = order_read(e->order);
	pthread_mutex_lock(lock);
	rc = errand_begin(e, &copy);
	pthread_mutex_unlock(lock);
	if (rc)
		errand_refuse(e, rc);
}

void weir_errand_drop(struct weir_errand *e, int status)
{
	struct weir_circuit *conn = e->conn;

	if (!e->plot)
		return;
	e->plot->refs--;
	if (e->reach && !--e->reach->users && e->reach->is_withdrawn)
		__atomic_fetch_or(&conn->chores, WEIR_CHORE_GRANTS, __ATOMIC_ACQ_REL);
	e->plot = NULL;
	e->left = 0;
	pthread_cond_broadcast(&conn->owner->changed);
	order_done(e, status);
}

/*
 * All that was posted is done, and nothing more will be. FIN or WITHDRAWN may have waited for it.
 */
static void errand_finish(struct weir_errand *e)
{
	struct weir_circuit *conn = e->conn;

	pthread_mutex_lock(&conn->hub->lock);
	weir_errand_drop(e, e->status);
	pthread_mutex_unlock(&conn->hub->lock);
	if (!is_loan(e))
		weir_circuit_news(conn);
}

void weir_errand_end(struct weir_errand *e, int status)
{
	if (!e->plot)
		return;
	if (!e->status)
		e->status = status;
	e->left = 0;
	if (!e->wrs)
		errand_finish(e);
}

void weir_errand_done(struct weir_errand *e)
{
	if (!--e->wrs && !e->left)
		errand_finish(e);
}
