/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The mux operations of a tenant of weir share. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/mux/local/local.h"
#include "lib/mux/proxy/proxy.h"

static struct weir_mux_proxy *proxy_of(struct weir_mux *mux)
{
	return container_of(mux, struct weir_mux_proxy, mux);
}

static struct weir_mux_proxy_conn *conn_of(struct weir_mux_conn *conn)
{
	return container_of(conn, struct weir_mux_proxy_conn, app);
}

static struct weir_mux_proxy_listener *listener_of(struct weir_mux_listener *listener)
{
	return container_of(listener, struct weir_mux_proxy_listener, listener);
}

static int conn_close_nr(struct weir_mux_proxy *tenant, uint32_t nr)
{
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_CLOSE, .nr = nr };
	struct weir_mux_ipc_reply answer;

	return weir_mux_proxy_call(tenant, &ask, &answer, NULL);
}

/* Makes the tenant's end of a new connection. */
static int conn_new(struct weir_mux_proxy *tenant, const struct weir_mux_ipc_reply *answer,
		    struct weir_mux_conn **out)
{
	struct weir_mux_proxy_conn *conn = calloc(1, sizeof(*conn));
	struct weir_mux_proxy_slab *slab;
	struct weir_mux_conn_shm *shm;
	int rc = conn ? weir_mux_proxy_slab(tenant, answer->slab, &slab) : -ENOMEM;

	if (rc) {
		free(conn);
		conn_close_nr(tenant, answer->nr);
		return rc;
	}
	shm = weir_mux_ring_slab_conn_shm(slab->base, answer->slot, slab->ring_bytes);
	conn->tenant = tenant;
	conn->nr = answer->nr;
	conn->app = (struct weir_mux_conn){
		.host = tenant->mux.host, .shm = shm, .fd = -1, .room_fd = -1
	};
	weir_mux_ring_slab_rings(slab->base, answer->slot, slab->ring_bytes, answer->ring_bytes,
				 &conn->app.out, &conn->app.in);
	pthread_mutex_lock(&tenant->lock);
	weir_list_add_tail(&tenant->conns, &conn->link);
	if (tenant->is_lost)
		conn->app.status = -ECONNRESET;
	pthread_mutex_unlock(&tenant->lock);
	*out = &conn->app;
	return 0;
}

/* The tenant resolves names, so the daemon never waits for a name server. */
static int peer_fill(struct weir_mux_ipc_request *ask, const char *peer, struct weir_error *error)
{
	char host[WEIR_ADDRESS_MAX], port[8];
	struct addrinfo *list;
	int rc = weir_address_resolve(peer, NULL, &list, error);

	if (rc)
		return rc;
	if (getnameinfo(list->ai_addr, list->ai_addrlen, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		rc = weir_error_set(error, -EINVAL, "'%s' has no numeric address", peer);
	else
		snprintf(ask->peer, sizeof(ask->peer), strchr(host, ':') ? "[%s]:%s" : "%s:%s",
			 host, port);
	freeaddrinfo(list);
	return rc;
}

static int mux_connect(struct weir_mux *mux, const char *peer, uint32_t service,
		       const struct weir_mux_conn_options *options, struct weir_mux_conn **conn,
		       struct weir_error *error)
{
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_CONNECT,
					    .service = service,
					    .class_nr = WEIR_MUX_IPC_CLASS_DEFAULT };
	struct weir_mux_ipc_reply answer;
	int rc = peer_fill(&ask, peer, error);

	if (rc)
		return rc;
	if (options) {
		ask.class_nr = options->class_nr;
		ask.weight = options->weight;
		ask.length = options->ring_bytes;
	}
	answer.text[0] = '\0';
	rc = weir_mux_proxy_call(proxy_of(mux), &ask, &answer, NULL);
	if (rc)
		return weir_error_set(error, rc, "%s",
				      answer.text[0] ? answer.text : "weir share is gone");
	rc = conn_new(proxy_of(mux), &answer, conn);
	return rc ? weir_error_set(error, rc, "cannot map weir share's memory: %s",
				   weir_strerror(rc)) :
		    0;
}

static void request_unlisten(struct weir_mux_proxy *tenant, uint32_t nr)
{
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_UNLISTEN, .nr = nr };
	struct weir_mux_ipc_reply answer;

	weir_mux_proxy_call(tenant, &ask, &answer, NULL);
}

static int mux_listen(struct weir_mux *mux, uint32_t service, unsigned int backlog,
		      struct weir_mux_listener **listener)
{
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_LISTEN,
					    .service = service,
					    .value = backlog };
	struct weir_mux_proxy_listener *own = calloc(1, sizeof(*own));
	struct weir_mux_proxy *tenant = proxy_of(mux);
	struct weir_mux_ipc_reply answer = { .status = -ECONNRESET };
	int rc, fds[WEIR_MUX_IPC_FDS_MAX];

	if (!own)
		return -ENOMEM;
	rc = weir_mux_proxy_call(tenant, &ask, &answer, fds);
	if (rc) {
		if (!answer.status)
			request_unlisten(tenant, answer.nr);
		free(own);
		return rc;
	}
	*own = (struct weir_mux_proxy_listener){
		.listener = { mux->host }, .tenant = tenant, .nr = answer.nr, .fd = fds[0]
	};
	pthread_mutex_lock(&tenant->lock);
	weir_list_add_tail(&tenant->listeners, &own->link);
	pthread_mutex_unlock(&tenant->lock);
	*listener = &own->listener;
	return 0;
}

static int listener_accept(struct weir_mux_listener *listener, struct weir_mux_conn **conn)
{
	struct weir_mux_proxy_listener *own = listener_of(listener);
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_ACCEPT, .nr = own->nr };
	struct weir_mux_ipc_reply answer;
	int rc = weir_mux_proxy_call(own->tenant, &ask, &answer, NULL);

	return rc ? rc : conn_new(own->tenant, &answer, conn);
}

static int listener_fd(const struct weir_mux_listener *listener)
{
	return container_of(listener, struct weir_mux_proxy_listener, listener)->fd;
}

static void listener_free(struct weir_mux_proxy_listener *own)
{
	weir_list_del(&own->link);
	close(own->fd);
	free(own);
}

static void listener_close(struct weir_mux_listener *listener)
{
	struct weir_mux_proxy_listener *own = listener_of(listener);
	struct weir_mux_proxy *tenant = own->tenant;

	request_unlisten(tenant, own->nr);
	pthread_mutex_lock(&tenant->lock);
	listener_free(own);
	pthread_mutex_unlock(&tenant->lock);
}

static void notify_conn(struct weir_mux_conn *app)
{
	struct weir_mux_proxy_conn *conn = conn_of(app);
	struct weir_mux_ipc_doorbells *doorbells = conn->tenant->doorbells;

	__atomic_fetch_or(&doorbells->news[conn->nr / 64], 1ull << conn->nr % 64, __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&doorbells->groups, 1ull << conn->nr / 64, __ATOMIC_SEQ_CST);
	if (__atomic_exchange_n(&doorbells->asleep, 0, __ATOMIC_SEQ_CST))
		weir_mux_fd_signal(conn->tenant->wakeup);
}

static int conn_fd(struct weir_mux_conn *app, bool out)
{
	struct weir_mux_proxy_conn *conn = conn_of(app);
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_FD, .nr = conn->nr, .value = out };
	int *at = out ? &app->room_fd : &app->fd, fds[WEIR_MUX_IPC_FDS_MAX];
	struct weir_mux_ipc_reply answer;
	int rc = 0;

	pthread_mutex_lock(&conn->tenant->fds);
	if (*at < 0)
		rc = weir_mux_proxy_call(conn->tenant, &ask, &answer, fds);
	if (*at < 0 && !rc)
		__atomic_store_n(at, fds[0], __ATOMIC_RELEASE);
	pthread_mutex_unlock(&conn->tenant->fds);
	return rc ? rc : *at;
}

static void conn_free(struct weir_mux_proxy_conn *conn)
{
	weir_list_del(&conn->link);
	if (conn->app.fd >= 0)
		close(conn->app.fd);
	if (conn->app.room_fd >= 0)
		close(conn->app.room_fd);
	free(conn);
}

static void conn_close(struct weir_mux_conn *app)
{
	struct weir_mux_proxy_conn *conn = conn_of(app);
	struct weir_mux_proxy *tenant = conn->tenant;
	uint32_t nr = conn->nr;

	pthread_mutex_lock(&tenant->lock);
	conn_free(conn);
	pthread_mutex_unlock(&tenant->lock);
	conn_close_nr(tenant, nr);
}

static void mux_info(struct weir_mux *mux, struct weir_mux_info *info)
{
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_INFO };
	struct weir_mux_ipc_reply answer;

	*info = (struct weir_mux_info){ 0 };
	if (!weir_mux_proxy_call(proxy_of(mux), &ask, &answer, NULL))
		*info = answer.info;
}

static int region_open(struct weir_mux *mux, struct weir_mux_region *region)
{
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_REGION, .length = region->length };
	struct weir_mux_ipc_reply answer = { .status = -ECONNRESET };
	int rc, fds[WEIR_MUX_IPC_FDS_MAX];

	rc = weir_mux_proxy_call(proxy_of(mux), &ask, &answer, fds);
	if (!rc)
		rc = weir_mux_proxy_map(fds[0], region->length, &region->data);
	if (rc && !answer.status) {
		ask = (struct weir_mux_ipc_request){ .what = WEIR_MUX_IPC_UNREGION,
						     .nr = answer.nr };
		weir_mux_proxy_call(proxy_of(mux), &ask, &answer, NULL);
	}
	region->number = answer.nr;
	return rc;
}

static int region_close(struct weir_mux_region *region)
{
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_UNREGION, .nr = region->number };
	struct weir_mux_ipc_reply answer;
	int rc = weir_mux_proxy_call(proxy_of(region->mux), &ask, &answer, NULL);

	if (!rc || rc == -ECONNRESET)
		munmap(region->data, region->length);
	return rc;
}

static int conn_grant(struct weir_mux_conn *app, const struct weir_mux_region *region, uint64_t at,
		      uint64_t length, unsigned int rights, uint32_t *handle)
{
	struct weir_mux_proxy_conn *conn = conn_of(app);
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_GRANT,
					    .nr = conn->nr,
					    .value = region->number,
					    .at = at,
					    .length = length,
					    .weight = rights };
	struct weir_mux_ipc_reply answer;
	int rc = weir_mux_proxy_call(conn->tenant, &ask, &answer, NULL);

	if (!rc)
		*handle = answer.nr;
	return rc;
}

static int conn_withdraw(struct weir_mux_conn *app, uint32_t handle)
{
	struct weir_mux_proxy_conn *conn = conn_of(app);
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_WITHDRAW,
					    .nr = conn->nr,
					    .value = handle };
	struct weir_mux_ipc_reply answer;

	return weir_mux_proxy_call(conn->tenant, &ask, &answer, NULL);
}

void weir_mux_proxy_free(struct weir_mux_proxy *tenant)
{
	while (!weir_list_is_empty(&tenant->conns))
		conn_free(weir_list_entry(tenant->conns.next, struct weir_mux_proxy_conn, link));
	while (!weir_list_is_empty(&tenant->listeners))
		listener_free(weir_list_entry(tenant->listeners.next,
					      struct weir_mux_proxy_listener, link));
	weir_mux_proxy_unmap(tenant);
	if (tenant->doorbells)
		munmap(tenant->doorbells, sizeof(*tenant->doorbells));
	if (tenant->wakeup >= 0)
		close(tenant->wakeup);
	close(tenant->socket);
	pthread_cond_destroy(&tenant->answered);
	pthread_mutex_destroy(&tenant->fds);
	pthread_mutex_destroy(&tenant->lock);
	free(tenant);
}

static void mux_close(struct weir_mux *mux)
{
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_DRAIN };
	struct weir_mux_proxy *tenant = proxy_of(mux);
	struct weir_mux_ipc_reply answer;

	while (!weir_list_is_empty(&tenant->conns))
		conn_close(&weir_list_entry(tenant->conns.next, struct weir_mux_proxy_conn, link)
				    ->app);
	weir_mux_proxy_call(tenant, &ask, &answer, NULL);
	shutdown(tenant->socket, SHUT_RDWR);
	pthread_join(tenant->reader, NULL);
	weir_mux_proxy_free(tenant);
}

static int conn_weigh(struct weir_mux_conn *app, unsigned int weight)
{
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_WEIGH,
					    .nr = conn_of(app)->nr,
					    .weight = weight };
	struct weir_mux_ipc_reply answer;

	return weir_mux_proxy_call(conn_of(app)->tenant, &ask, &answer, NULL);
}

const struct weir_mux_ops weir_mux_proxy_ops = {
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
