/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When a tenant is gone, however, what is its ends at once: nothing more is posted for it, what is
 * posted completes, the other ends are told; and when nothing refers to its memory any more, at
 * either end, that is given back.
 */
#include "apps/share/daemon.h"

/* Nobody finds it any more, neither usher nor dialers. */
static void unlist_tenant(struct share_tenant *tenant)
{
	struct share_daemon *share = tenant->share;

	pthread_mutex_lock(&share->lock);
	tenant->is_gone = true;
	share_connect_queues_drop(tenant);
	weir_list_del(&tenant->link);
	pthread_mutex_unlock(&share->lock);
}

static void abort_conn(struct weir_mux_local *mux, struct weir_mux_vconn *conn)
{
	pthread_mutex_lock(&mux->lock);
	weir_mux_vconn_abort(conn);
	pthread_mutex_unlock(&mux->lock);
}

/* Who waits to be accepted is cut off as well. */
static void abort_all(struct share_tenant *tenant)
{
	struct weir_mux_local *mux = tenant->share->mux;
	struct weir_mux_vconn *conn;
	unsigned int i;

	for (i = 0; i < WEIR_MUX_IPC_SERVICES_MAX; i++) {
		if (!tenant->offers[i])
			continue;
		while (!weir_mux_service_accept(tenant->offers[i], &conn))
			abort_conn(mux, conn);
		weir_mux_service_close(tenant->offers[i]);
	}
	for (i = 0; i < WEIR_MUX_IPC_CONNS_MAX; i++)
		if (tenant->conns[i])
			abort_conn(mux, tenant->conns[i]);
	/* Of what it had closed itself something may wait for a peer that does not read. */
	pthread_mutex_lock(&mux->lock);
	weir_mux_account_abort_closed(&tenant->account);
	pthread_mutex_unlock(&mux->lock);
}

/* The other ends have heard, and what was posted is done. A dialer ends what it has just made. */
static void wait_for_all(struct share_tenant *tenant)
{
	struct weir_mux_local *mux = tenant->share->mux;
	struct share_daemon *share = tenant->share;

	pthread_mutex_lock(&share->lock);
	while (tenant->connecting)
		pthread_cond_wait(&share->changed, &share->lock);
	pthread_mutex_unlock(&share->lock);
	pthread_mutex_lock(&mux->lock);
	while (tenant->account.nr_conns)
		pthread_cond_wait(&tenant->account.changed, &mux->lock);
	pthread_mutex_unlock(&mux->lock);
}

void share_tenant_end(struct share_tenant *tenant)
{
	unlist_tenant(tenant);
	abort_all(tenant);
	wait_for_all(tenant);
	share_tenant_free(tenant);
}
