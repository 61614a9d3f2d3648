/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The functions of weir/mux.h that are all of the hub's, wherever it is. */
#include "lib/mux/hub.h"

int weir_mux_open(const struct weir_mux_options *options, struct weir_mux **mux,
		  struct weir_error *error)
{
	struct weir_hub *hub;
	int rc = weir_hub_open(options, &hub, error);

	if (!rc)
		*mux = &hub->mux;
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
		     const struct weir_conn_options *options, struct weir_conn **conn,
		     struct weir_error *error)
{
	return mux->host->connect(mux, peer, service, options, conn, error);
}

int weir_mux_listen(struct weir_mux *mux, uint32_t service, unsigned int backlog,
		    struct weir_listener **listener)
{
	return mux->host->listen(mux, service, backlog, listener);
}

/* Who finds nobody silences the descriptor, and then looks once more. */
int weir_listener_accept(struct weir_listener *listener, struct weir_conn **conn)
{
	int rc = listener->host->accept(listener, conn);

	if (rc != -EAGAIN)
		return rc;
	weir_fd_take(listener->host->listener_fd(listener));
	return listener->host->accept(listener, conn);
}

int weir_listener_fd(const struct weir_listener *listener)
{
	return listener->host->listener_fd(listener);
}

void weir_listener_close(struct weir_listener *listener)
{
	listener->host->listener_close(listener);
}
