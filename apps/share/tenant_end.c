/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When a tenant is gone, for whatever reason, all its connections end: nothing more is posted,
 * posted work requests complete, and the peers are told. The memory is freed once neither end
 * refers to it.
 */
#include "apps/share/daemon.h"

/* Hides the tenant from the doorbell poller and from connect workers. */
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

/* Also cuts off connections that wait to be accepted. */
static void abort_all(struct share_tenant *tenant)
{
	struct weir_mux_local *mux = tenant->share->mux;
	struct weir_mux_vconn *conn;
	unsigned int i;

	for (i = 0; i < WEIR_MUX_IPC_SERVICES_MAX; i++) {
		if (!tenant->services[i])
			continue;
		while (!weir_mux_service_accept(tenant->services[i], &conn))
			abort_conn(mux, conn);
		weir_mux_service_close(tenant->services[i]);
	}
	for (i = 0; i < WEIR_MUX_IPC_CONNS_MAX; i++)
		if (tenant->conns[i])
			abort_conn(mux, tenant->conns[i]);
	/* Connections closed earlier may still wait for a peer that does not read. */
	pthread_mutex_lock(&mux->lock);
	weir_mux_account_abort_closed(&tenant->account);
	pthread_mutex_unlock(&mux->lock);
}

/*
 * Waits until peers are told and posted work requests are done. Connect workers end their new
 * connections themselves.
 */
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
