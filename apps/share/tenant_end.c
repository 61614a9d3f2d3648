/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When a tenant is gone, however, what is its ends at once: nothing more is posted for it, what is
 * posted completes, the other ends are told; and when nothing refers to its memory any more, at
 * either end, that is given back.
 */
#include "apps/share/daemon.h"

/* Nobody finds it any more, neither usher nor dialers. */
static void leave(struct tenant *tenant)
{
	struct share *share = tenant->share;

	pthread_mutex_lock(&share->lock);
	tenant->is_gone = true;
	desks_leave(tenant);
	weir_list_del(&tenant->link);
	pthread_mutex_unlock(&share->lock);
}

static void abort_conn(struct weir_hub *hub, struct weir_circuit *conn)
{
	pthread_mutex_lock(&hub->lock);
	weir_circuit_abort(conn);
	pthread_mutex_unlock(&hub->lock);
}

/* Who waits to be accepted is cut off as well. */
static void end_all(struct tenant *tenant)
{
	struct weir_hub *hub = tenant->share->hub;
	struct weir_circuit *conn;
	unsigned int i;

	for (i = 0; i < WEIR_SHARE_OFFERS_MAX; i++) {
		if (!tenant->offers[i])
			continue;
		while (!weir_offer_accept(tenant->offers[i], &conn))
			abort_conn(hub, conn);
		weir_offer_close(tenant->offers[i]);
	}
	for (i = 0; i < WEIR_SHARE_CONNS_MAX; i++)
		if (tenant->conns[i])
			abort_conn(hub, tenant->conns[i]);
	/* Of what it had closed itself something may wait for a peer that does not read. */
	pthread_mutex_lock(&hub->lock);
	weir_owner_cut(&tenant->owner);
	pthread_mutex_unlock(&hub->lock);
}

/* The other ends have heard, and what was posted is done. A dialer ends what it has just made. */
static void wait_for_all(struct tenant *tenant)
{
	struct weir_hub *hub = tenant->share->hub;
	struct share *share = tenant->share;

	pthread_mutex_lock(&share->lock);
	while (tenant->connecting)
		pthread_cond_wait(&share->changed, &share->lock);
	pthread_mutex_unlock(&share->lock);
	pthread_mutex_lock(&hub->lock);
	while (tenant->owner.nr_conns)
		pthread_cond_wait(&tenant->owner.changed, &hub->lock);
	pthread_mutex_unlock(&hub->lock);
}

void tenant_end(struct tenant *tenant)
{
	leave(tenant);
	end_all(tenant);
	wait_for_all(tenant);
	tenant_free(tenant);
}
