/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The functions of weir/mux.h, passed to a mux in the process or in weir share. */
#include <stdlib.h>

#include "lib/mux/local/local.h"
#include "lib/mux/proxy/proxy.h"

/* Return: the socket path of the weir share daemon to join, or NULL for a private mux. */
static const char *daemon_of(const struct weir_mux_options *options)
{
	const char *path = options ? options->share : NULL;

	if (!path)
		path = getenv("WEIR_SHARE");
	return path && *path ? path : NULL;
}

int weir_mux_open(const struct weir_mux_options *options, struct weir_mux **mux,
		  struct weir_error *error)
{
	const char *path = daemon_of(options);
	struct weir_mux_local *local;
	int rc;

	if (path)
		return weir_mux_proxy_open(path, mux, error);
	rc = weir_mux_local_open(options, &local, error);
	if (!rc)
		*mux = &local->mux;
	return rc;
}

void weir_mux_close(struct weir_mux *mux)
{
	mux->host->close(mux);
}

void weir_mux_info(struct weir_mux *mux, struct weir_mux_info *info)
{
	mux->host->info(mux, info);
}

int weir_mux_connect(struct weir_mux *mux, const char *peer, uint32_t service,
		     const struct weir_mux_conn_options *options, struct weir_mux_conn **conn,
		     struct weir_error *error)
{
	return mux->host->connect(mux, peer, service, options, conn, error);
}

int weir_mux_conn_weigh(struct weir_mux_conn *conn, unsigned int weight)
{
	return conn->host->weigh(conn, weight);
}

int weir_mux_listen(struct weir_mux *mux, uint32_t service, unsigned int backlog,
		    struct weir_mux_listener **listener)
{
	return mux->host->listen(mux, service, backlog, listener);
}

/* If no connection waits: drain the descriptor, then try again to close the race. */
int weir_mux_listener_accept(struct weir_mux_listener *listener, struct weir_mux_conn **conn)
{
	int rc = listener->host->accept(listener, conn);

	if (rc != -EAGAIN)
		return rc;
	weir_mux_fd_drain(listener->host->listener_fd(listener));
	return listener->host->accept(listener, conn);
}

int weir_mux_listener_fd(const struct weir_mux_listener *listener)
{
	return listener->host->listener_fd(listener);
}

void weir_mux_listener_close(struct weir_mux_listener *listener)
{
	listener->host->listener_close(listener);
}
