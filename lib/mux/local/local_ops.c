/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A hub in the process that uses it. */
#include <errno.h>
#include <sys/eventfd.h>

#include "lib/mux/local/local.h"

static struct weir_hub *hub_of(struct weir_mux *mux)
{
	return container_of(mux, struct weir_hub, mux);
}

static struct weir_circuit *circuit_of(struct weir_conn *conn)
{
	return container_of(conn, struct weir_circuit, app);
}

static struct weir_offer *offer_of(struct weir_listener *listener)
{
	return container_of(listener, struct weir_offer, listener);
}

static void mux_close(struct weir_mux *mux)
{
	weir_hub_close(hub_of(mux));
}

static void mux_info(struct weir_mux *mux, struct weir_mux_info *info)
{
	weir_hub_info(hub_of(mux), info);
}

static int mux_connect(struct weir_mux *mux, const char *peer, uint32_t service,
		       const struct weir_conn_options *options, struct weir_conn **conn,
		       struct weir_error *error)
{
	struct weir_hub *hub = hub_of(mux);
	struct weir_circuit *circuit;
	int rc = weir_circuit_connect(&hub->self, peer, service, options,
				      weir_hub_deadline_ns(hub), &circuit, error);

	if (!rc)
		*conn = &circuit->app;
	return rc;
}

static int mux_listen(struct weir_mux *mux, uint32_t service, unsigned int backlog,
		      struct weir_listener **listener)
{
	int rc, fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct weir_offer *offer;

	if (fd < 0)
		return -ENOMEM;
	rc = weir_offer_open(&hub_of(mux)->self, service, backlog, fd, &offer);
	if (!rc)
		*listener = &offer->listener;
	return rc;
}

static int listener_accept(struct weir_listener *listener, struct weir_conn **conn)
{
	struct weir_circuit *circuit;
	int rc = weir_offer_accept(offer_of(listener), &circuit);

	if (!rc)
		*conn = &circuit->app;
	return rc;
}

static int listener_fd(const struct weir_listener *listener)
{
	return container_of(listener, struct weir_offer, listener)->fd;
}

static void listener_close(struct weir_listener *listener)
{
	weir_offer_close(offer_of(listener));
}

/* What has been written there, and not read or sent. */
static uint64_t left_in(const struct weir_ring *ring)
{
	return __atomic_load_n(&ring->tail, __ATOMIC_RELAXED) -
	       __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
}

/*
 * Something small is to be sent, and something small to be read, after which more will most likely
 * be.
 */
static bool is_gathering(const struct weir_conn *conn)
{
	const uint64_t unsent = left_in(conn->out.ring), unread = left_in(conn->in.ring);

	return unsent && unsent < WIRE_PIECE_MAX && unread && unread < WIRE_PIECE_MAX;
}

static void conn_news(struct weir_conn *conn)
{
	struct weir_circuit *circuit = circuit_of(conn);

	if (is_gathering(conn)) {
		weir_circuit_news(circuit); /* the worker's, if this thread is not there first */
	} else {
		weir_circuit_leave(circuit);
		weir_node_serve(circuit->node);
	}
}

/* Readable at first: whoever waits on it looks once, and so arms. */
static int conn_fd(struct weir_conn *conn, bool out)
{
	struct weir_circuit *circuit = circuit_of(conn);
	int *at = out ? &circuit->room_fd : &circuit->fd;

	pthread_mutex_lock(&circuit->hub->lock);
	if (*at < 0)
		__atomic_store_n(at, eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK), __ATOMIC_RELEASE);
	__atomic_store_n(out ? &conn->room_fd : &conn->fd, *at, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&circuit->hub->lock);
	return *at < 0 ? -ENOMEM : *at;
}

static void conn_close(struct weir_conn *conn)
{
	struct weir_circuit *circuit = circuit_of(conn);
	struct weir_hub *hub = circuit->hub;

	pthread_mutex_lock(&hub->lock);
	weir_circuit_shut(circuit);
	pthread_mutex_unlock(&hub->lock);
}

static int region_open(struct weir_mux *mux, struct weir_mux_region *region)
{
	struct weir_plot *plot;
	int rc = weir_plot_new(&hub_of(mux)->self, region->length, &plot);

	if (!rc) {
		region->number = plot->number;
		region->data = plot->base;
	}
	return rc;
}

static int region_close(struct weir_mux_region *region)
{
	return weir_plot_close(&hub_of(region->mux)->self, region->number);
}

static int conn_grant(struct weir_conn *conn, const struct weir_mux_region *region, uint64_t at,
		      uint64_t length, unsigned int rights, uint32_t *handle)
{
	return weir_circuit_grant(circuit_of(conn), region->number, at, length, rights, handle);
}

static int conn_withdraw(struct weir_conn *conn, uint32_t handle)
{
	return weir_circuit_withdraw(circuit_of(conn), handle);
}

static int conn_weigh(struct weir_conn *conn, unsigned int weight)
{
	return weir_circuit_weigh(circuit_of(conn), weight);
}

const struct weir_mux_host weir_local_host = {
	.close = mux_close,
	.info = mux_info,
	.connect = mux_connect,
	.listen = mux_listen,
	.accept = listener_accept,
	.listener_fd = listener_fd,
	.listener_close = listener_close,
	.news = conn_news,
	.fd = conn_fd,
	.conn_close = conn_close,
	.region_open = region_open,
	.region_close = region_close,
	.grant = conn_grant,
	.withdraw = conn_withdraw,
	.weigh = conn_weigh,
};
