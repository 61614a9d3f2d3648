/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The functions of weir/mux.h, passed to a mux in the process or in weir share. */
#include <stdlib.h>

#include "lib/base/sized.h"
#include "lib/mux/local/local.h"
#include "lib/mux/proxy/proxy.h"

/* Return: the socket path of the weir share daemon to join, or NULL for a private mux. */
static const char *daemon_of(const struct weir_mux_options *options)
{
	const char *path = options->share ? options->share : getenv("WEIR_SHARE");

	return path && *path ? path : NULL;
}

/*
 * Copies the classes; classes[0].size is the size of an element. weir_mux_local_open() refuses an
 * array that is too long.
 */
static int copy_classes(struct weir_mux_class *classes, const struct weir_mux_options *options,
			struct weir_error *error)
{
	const char *given = (const char *)options->classes;
	unsigned int i;
	int rc = 0;

	if (options->nr_classes > WEIR_MUX_CLASSES_MAX)
		return 0;
	for (i = 0; !rc && i < options->nr_classes; i++)
		rc = weir_sized_in(&classes[i], sizeof(classes[i]),
				   given + i * options->classes->size, "weir_mux_class", error);
	return rc;
}

int weir_mux_open(const struct weir_mux_options *given, struct weir_mux **mux,
		  struct weir_error *error)
{
	struct weir_mux_class classes[WEIR_MUX_CLASSES_MAX];
	struct weir_mux_options options;
	struct weir_mux_local *local;
	const char *path;
	int rc;

	rc = weir_sized_in(&options, sizeof(options), given, "weir_mux_options", error);
	if (rc)
		return rc;
	path = daemon_of(&options);
	if (path)
		return weir_mux_proxy_open(path, mux, error);
	if (options.classes) {
		rc = copy_classes(classes, &options, error);
		if (rc)
			return rc;
		options.classes = classes;
	}
	rc = weir_mux_local_open(&options, &local, error);
	if (!rc)
		*mux = &local->mux;
	return rc;
}

void weir_mux_close(struct weir_mux *mux)
{
	mux->host->close(mux);
}

int weir_mux_info(struct weir_mux *mux, struct weir_mux_info *info, size_t size)
{
	struct weir_mux_info known;

	mux->host->info(mux, &known);
	return weir_sized_out(info, size, &known, sizeof(known));
}

int weir_mux_connect(struct weir_mux *mux, const char *peer, uint32_t service,
		     const struct weir_mux_conn_options *given, struct weir_mux_conn **conn,
		     struct weir_error *error)
{
	struct weir_mux_conn_options options;
	int rc = weir_sized_in(&options, sizeof(options), given, "weir_mux_conn_options", error);

	if (rc)
		return rc;
	return mux->host->connect(mux, peer, service, given ? &options : NULL, conn, error);
}

int weir_mux_conn_set_weight(struct weir_mux_conn *conn, unsigned int weight)
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
