/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Becoming a tenant of weir share's. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/mux/proxy/proxy.h"
#include "lib/base/thread.h"

static struct weir_tenant *tenant_new(int socket)
{
	struct weir_tenant *tenant = calloc(1, sizeof(*tenant));

	if (!tenant)
		return NULL;
	*tenant = (struct weir_tenant){ .mux = { &weir_tenant_host },
					.socket = socket,
					.bell = -1 };
	pthread_mutex_init(&tenant->lock, NULL);
	pthread_mutex_init(&tenant->fds, NULL);
	pthread_cond_init(&tenant->answered, NULL);
	weir_list_init(&tenant->calls);
	weir_list_init(&tenant->conns);
	weir_list_init(&tenant->offers);
	weir_list_init(&tenant->chunks);
	return tenant;
}

/* The first words, before there is a reader. */
static int hello(struct weir_tenant *tenant, const char *path, struct weir_error *error)
{
	struct weir_share_ask ask = { .what = WEIR_SHARE_HELLO, .value = WEIR_SHARE_VERSION };
	struct weir_share_answer answer = { .status = -ECONNRESET };
	int fds[WEIR_SHARE_FDS_MAX];
	char *board;
	int rc = weir_share_send(tenant->socket, &ask, sizeof(ask), NULL, 0);

	weir_share_patience(tenant->socket, WEIR_SHARE_HELLO_S);
	if (!rc)
		rc = weir_share_recv(tenant->socket, &answer, sizeof(answer), fds);
	weir_share_patience(tenant->socket, 0);
	if (rc == -ETIMEDOUT)
		return weir_fail(error, rc, "%s does not answer: is 'weir share' stopped?", path);
	if (rc)
		return weir_fail(error, rc, "%s does not speak as weir share does", path);
	if (answer.status)
		return weir_fail(error, answer.status, "%s", answer.text);
	tenant->bell = fds[1];
	/* They come in this order: without the bell the board may have come, too. */
	if (fds[1] < 0) {
		if (fds[0] >= 0)
			close(fds[0]);
		return weir_fail(error, -EMFILE, "no room for weir share's descriptors: raise the "
						 "limit (ulimit -n)");
	}
	rc = weir_tenant_map(fds[0], sizeof(*tenant->board), &board);
	if (rc)
		return weir_fail(error, rc, "no memory of weir share's");
	tenant->board = (void *)board;
	return 0;
}

int weir_tenant_open(const char *path, struct weir_mux **mux, struct weir_error *error)
{
	int rc, socket = weir_share_dial(path, error);
	struct weir_tenant *tenant;

	if (socket < 0)
		return socket;
	tenant = tenant_new(socket);
	if (!tenant) {
		close(socket);
		return weir_fail(error, -ENOMEM, "no memory");
	}
	rc = hello(tenant, path, error);
	if (!rc)
		rc = weir_thread_create(&tenant->reader, "weir-tenant", weir_tenant_reader,
					tenant, error);
	if (rc)
		weir_tenant_free(tenant);
	else
		*mux = &tenant->mux;
	return rc;
}
