/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Joining weir share as a tenant. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/mux/proxy/proxy.h"
#include "lib/base/thread.h"

static struct weir_mux_proxy *proxy_new(int socket)
{
	struct weir_mux_proxy *tenant = calloc(1, sizeof(*tenant));

	if (!tenant)
		return NULL;
	*tenant = (struct weir_mux_proxy){ .mux = { &weir_mux_proxy_ops },
					   .socket = socket,
					   .wakeup = -1 };
	pthread_mutex_init(&tenant->lock, NULL);
	pthread_mutex_init(&tenant->fds, NULL);
	pthread_cond_init(&tenant->answered, NULL);
	weir_list_init(&tenant->calls);
	weir_list_init(&tenant->conns);
	weir_list_init(&tenant->listeners);
	weir_list_init(&tenant->slabs);
	return tenant;
}

/* The first exchange, before the reader thread runs. */
static int exchange_hello(struct weir_mux_proxy *tenant, const char *path, struct weir_error *error)
{
	struct weir_mux_ipc_request ask = { .what = WEIR_MUX_IPC_HELLO,
					    .value = WEIR_MUX_IPC_VERSION };
	struct weir_mux_ipc_reply answer = { .status = -ECONNRESET };
	int fds[WEIR_MUX_IPC_FDS_MAX];
	char *doorbells;
	int rc = weir_mux_ipc_send(tenant->socket, &ask, sizeof(ask), NULL, 0);

	weir_mux_ipc_set_timeout(tenant->socket, WEIR_MUX_IPC_HELLO_S);
	if (!rc)
		rc = weir_mux_ipc_recv(tenant->socket, &answer, sizeof(answer), fds);
	weir_mux_ipc_set_timeout(tenant->socket, 0);
	if (rc == -ETIMEDOUT)
		return weir_error_set(error, rc, "%s does not answer: is 'weir share' stopped?",
				      path);
	if (rc)
		return weir_error_set(error, rc, "%s does not speak weir share's protocol", path);
	if (answer.status)
		return weir_error_set(error, answer.status, "%s", answer.text);
	tenant->wakeup = fds[1];
	/*
	 * Descriptors arrive in order: if the bell's is missing, the doorbell page's may still
	 * have come.
	 */
	if (fds[1] < 0) {
		if (fds[0] >= 0)
			close(fds[0]);
		return weir_error_set(error, -EMFILE,
				      "no room for weir share's descriptors: raise the "
				      "limit (ulimit -n)");
	}
	rc = weir_mux_proxy_map(fds[0], sizeof(*tenant->doorbells), &doorbells);
	if (rc)
		return weir_error_set(error, rc, "cannot map weir share's memory");
	tenant->doorbells = (void *)doorbells;
	return 0;
}

int weir_mux_proxy_open(const char *path, struct weir_mux **mux, struct weir_error *error)
{
	int rc, socket = weir_mux_ipc_connect(path, error);
	struct weir_mux_proxy *tenant;

	if (socket < 0)
		return socket;
	tenant = proxy_new(socket);
	if (!tenant) {
		close(socket);
		return weir_error_set(error, -ENOMEM, "no memory");
	}
	rc = exchange_hello(tenant, path, error);
	if (!rc)
		rc = weir_thread_create(&tenant->reader, "weir-tenant", weir_mux_proxy_reader_run,
					tenant, error);
	if (rc)
		weir_mux_proxy_free(tenant);
	else
		*mux = &tenant->mux;
	return rc;
}
