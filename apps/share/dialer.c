/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What may take as long as the timeout, in a thread of its own, so that the clerk hears when the
 * tenant is gone: a connect, or until what it has closed is sent.
 */
#include "apps/share/share.h"

#include "lib/error.h"
#include "lib/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct dialer {
	struct tenant *tenant;
	struct weir_share_ask ask;
};

/* The class that it may use, of those that there are. */
static int options_fill(struct tenant *tenant, const struct weir_share_ask *ask,
			struct weir_conn_options *options, struct weir_error *error)
{
	const unsigned int last = tenant->share->hub->options.nr_classes - 1;
	unsigned int first;

	pthread_mutex_lock(&tenant->share->lock);
	first = tenant->terms.class_nr < last ? tenant->terms.class_nr : last;
	pthread_mutex_unlock(&tenant->share->lock);
	*options = (struct weir_conn_options){ ask->class_nr, ask->weight };
	if (ask->class_nr == WEIR_SHARE_CLASS_DEFAULT)
		options->class_nr = last;
	if (options->class_nr < first)
		return weir_fail(error, -EPERM, "class %u is not for this tenant: %u is the most "
				 "urgent that weir share's configuration allows", ask->class_nr,
				 first);
	return 0;
}

void tenant_settle(struct tenant *tenant, struct weir_circuit *conn,
		   struct weir_share_answer *answer)
{
	struct weir_hub *hub = tenant->share->hub;
	int rc = -ECONNRESET;

	pthread_mutex_lock(&tenant->share->lock);
	if (!tenant->is_gone)
		rc = tenant_put(tenant, conn);
	if (!rc) {
		/* In its place the tenant may name it, and have it closed, once the lock is free. */
		answer->nr = conn->nr;
		answer->chunk = conn->chunk->number;
		answer->slot = conn->slot;
		answer->ring_bytes = conn->size;
	}
	pthread_mutex_unlock(&tenant->share->lock);
	answer->status = rc;
	if (!rc)
		return;
	pthread_mutex_lock(&hub->lock);
	weir_circuit_abort(conn);
	pthread_mutex_unlock(&hub->lock);
	weir_fail((struct weir_error *)answer->text, rc, "%s", weir_strerror(rc));
}

static void dial(struct tenant *tenant, const struct weir_share_ask *ask)
{
	struct weir_share_answer answer = { .number = ask->number };
	struct weir_conn_options options;
	struct weir_error error = { "" };
	struct weir_circuit *conn;

	answer.status = options_fill(tenant, ask, &options, &error);
	if (!answer.status)
		answer.status = weir_circuit_connect(&tenant->owner, ask->peer, ask->service,
						     &options, &conn, &error);
	if (answer.status)
		memcpy(answer.text, error.text, sizeof(answer.text));
	else
		tenant_settle(tenant, conn, &answer);
	tenant_answer(tenant, &answer, NULL, 0);
}

static void drain(struct tenant *tenant, const struct weir_share_ask *ask)
{
	struct weir_share_answer answer = { .number = ask->number };

	weir_hub_linger(tenant->share->hub, &tenant->owner);
	tenant_answer(tenant, &answer, NULL, 0);
}

static void *dialer_run(void *arg)
{
	struct dialer *dialer = arg;
	struct tenant *tenant = dialer->tenant;
	struct share *share = tenant->share;

	if (dialer->ask.what == WEIR_SHARE_DRAIN)
		drain(tenant, &dialer->ask);
	else
		dial(tenant, &dialer->ask);
	free(dialer);
	pthread_mutex_lock(&share->lock);
	tenant->dialing--;
	pthread_cond_broadcast(&share->changed);
	pthread_mutex_unlock(&share->lock);
	return NULL;
}

static void uncount(struct tenant *tenant)
{
	pthread_mutex_lock(&tenant->share->lock);
	tenant->dialing--;
	pthread_mutex_unlock(&tenant->share->lock);
}

int dialer_start(struct tenant *tenant, const struct weir_share_ask *ask)
{
	struct dialer *dialer;
	pthread_t thread;
	bool may;

	pthread_mutex_lock(&tenant->share->lock);
	may = tenant->dialing < SHARE_DIALERS_MAX;
	tenant->dialing += may;
	pthread_mutex_unlock(&tenant->share->lock);
	if (!may)
		return -EAGAIN;
	dialer = malloc(sizeof(*dialer));
	if (dialer) {
		dialer->tenant = tenant;
		dialer->ask = *ask;
		dialer->ask.peer[sizeof(ask->peer) - 1] = '\0';
		if (!weir_thread_create(&thread, "weir-dialer", dialer_run, dialer, NULL)) {
			pthread_detach(thread);
			return 0;
		}
	}
	free(dialer);
	uncount(tenant);
	return -ENOMEM;
}
