/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A mux used by its own process. */
#include <errno.h>
#include <sys/eventfd.h>

#include "lib/mux/local/local.h"

static struct weir_mux_local *local_of(struct weir_mux *mux)
{
	return container_of(mux, struct weir_mux_local, mux);
}

static struct weir_mux_vconn *vconn_of(struct weir_mux_conn *conn)
{
	return container_of(conn, struct weir_mux_vconn, app);
}

static struct weir_mux_service *service_of(struct weir_mux_listener *listener)
{
	return container_of(listener, struct weir_mux_service, listener);
}

static void mux_close(struct weir_mux *mux)
{
	weir_mux_local_close(local_of(mux));
}

static void mux_info(struct weir_mux *mux, struct weir_mux_info *info)
{
	weir_mux_local_info(local_of(mux), info);
}

static int mux_connect(struct weir_mux *mux, const char *peer, uint32_t service,
		       const struct weir_mux_conn_options *options, struct weir_mux_conn **conn,
		       struct weir_error *error)
{
	struct weir_mux_local *local = local_of(mux);
	struct weir_mux_vconn *vconn;
	int rc = weir_mux_vconn_connect(&local->self, peer, service, options,
					weir_mux_local_deadline_ns(local), &vconn, error);

	if (!rc)
		*conn = &vconn->app;
	return rc;
}

static int mux_listen(struct weir_mux *mux, uint32_t service, unsigned int backlog,
		      struct weir_mux_listener **listener)
{
	int rc, fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct weir_mux_service *svc;

	if (fd < 0)
		return -ENOMEM;
	rc = weir_mux_service_open(&local_of(mux)->self, service, backlog, fd, &svc);
	if (!rc)
		*listener = &svc->listener;
	return rc;
}

static int listener_accept(struct weir_mux_listener *listener, struct weir_mux_conn **conn)
{
	struct weir_mux_vconn *vconn;
	int rc = weir_mux_service_accept(service_of(listener), &vconn);

	if (!rc)
		*conn = &vconn->app;
	return rc;
}

static int listener_fd(const struct weir_mux_listener *listener)
{
	return container_of(listener, struct weir_mux_service, listener)->fd;
}

static void listener_close(struct weir_mux_listener *listener)
{
	weir_mux_service_close(service_of(listener));
}

/* Bytes written and not yet sent or read. */
static uint64_t bytes_in(const struct weir_mux_ring *ring)
{
	return __atomic_load_n(&ring->tail, __ATOMIC_RELAXED) -
	       __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
}

/* Both few bytes to send and few to read: more are likely to follow. */
static bool is_gathering(const struct weir_mux_conn *conn)
{
	const uint64_t unsent = bytes_in(conn->out.ring), unread = bytes_in(conn->in.ring);

	return unsent && unsent < WIRE_MUX_SEGMENT_MAX && unread && unread < WIRE_MUX_SEGMENT_MAX;
}

static void notify_conn(struct weir_mux_conn *conn)
{
	struct weir_mux_vconn *vconn = vconn_of(conn);

	if (is_gathering(conn)) {
		weir_mux_vconn_notify(vconn); /* for the worker, unless this thread is faster */
	} else {
		weir_mux_vconn_queue(vconn);
		weir_mux_remote_combine(vconn->remote);
	}
}

/* Readable at first: the caller then tries once, which arms the waiter. */
static int conn_fd(struct weir_mux_conn *conn, bool out)
{
	struct weir_mux_vconn *vconn = vconn_of(conn);
	int *at = out ? &vconn->room_fd : &vconn->fd;

	pthread_mutex_lock(&vconn->mux->lock);
	if (*at < 0)
		__atomic_store_n(at, eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK), __ATOMIC_RELEASE);
	__atomic_store_n(out ? &conn->room_fd : &conn->fd, *at, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&vconn->mux->lock);
	return *at < 0 ? -ENOMEM : *at;
}

static void conn_close(struct weir_mux_conn *conn)
{
	struct weir_mux_vconn *vconn = vconn_of(conn);
	struct weir_mux_local *mux = vconn->mux;

	pthread_mutex_lock(&mux->lock);
	weir_mux_vconn_close(vconn);
	pthread_mutex_unlock(&mux->lock);
}

static int region_open(struct weir_mux *mux, struct weir_mux_region *region)
{
	struct weir_mux_mr *mr;
	int rc = weir_mux_mr_new(&local_of(mux)->self, region->length, &mr);

	if (!rc) {
		region->number = mr->number;
		region->data = mr->base;
	}
	return rc;
}

static int region_close(struct weir_mux_region *region)
{
	return weir_mux_mr_close(&local_of(region->mux)->self, region->number);
}

static int conn_grant(struct weir_mux_conn *conn, const struct weir_mux_region *region, uint64_t at,
		      uint64_t length, unsigned int rights, uint32_t *handle)
{
	return weir_mux_vconn_grant(vconn_of(conn), region->number, at, length, rights, handle);
}

static int conn_withdraw(struct weir_mux_conn *conn, uint32_t handle)
{
	return weir_mux_vconn_withdraw(vconn_of(conn), handle);
}

static int conn_weigh(struct weir_mux_conn *conn, unsigned int weight)
{
	return weir_mux_vconn_weigh(vconn_of(conn), weight);
}

const struct weir_mux_ops weir_mux_local_ops = {
	.close = mux_close,
	.info = mux_info,
	.connect = mux_connect,
	.listen = mux_listen,
	.accept = listener_accept,
	.listener_fd = listener_fd,
	.listener_close = listener_close,
	.news = notify_conn,
	.fd = conn_fd,
	.conn_close = conn_close,
	.region_open = region_open,
	.region_close = region_close,
	.grant = conn_grant,
	.withdraw = conn_withdraw,
	.weigh = conn_weigh,
};
