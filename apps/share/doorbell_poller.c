/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The doorbell poller collects news from the doorbell pages and does the work of the connections
 * concerned, unless a worker is at it. It sleeps after a quiet period. Store-load pairing with
 * the tenants: a tenant sets its bits, then tests asleep; the poller sets asleep, then tests the
 * bits.
 *
 * A page may hold garbage, which is harmless: a bit only means to look at a connection, if it
 * exists.
 */
#include "apps/share/daemon.h"

#include "lib/base/clock.h"
#include "lib/base/yield.h"

#include <sys/epoll.h>

#define EVENTS_MAX 64

static bool poll_word(struct share_tenant *tenant, unsigned int group)
{
	uint64_t news = __atomic_exchange_n(&tenant->doorbells->news[group], 0, __ATOMIC_SEQ_CST);
	bool any = news;

	for (; news; news &= news - 1) {
		unsigned int nr = group * 64 + (unsigned int)__builtin_ctzll(news);

		if (tenant->conns[nr])
			weir_mux_vconn_queue(tenant->conns[nr]);
	}
	return any;
}

static bool poll_doorbells(struct share_tenant *tenant)
{
	uint64_t groups;
	bool any = false;

	if (!__atomic_load_n(&tenant->doorbells->groups, __ATOMIC_SEQ_CST))
		return false;
	groups = __atomic_exchange_n(&tenant->doorbells->groups, 0, __ATOMIC_SEQ_CST);
	for (; groups; groups &= groups - 1)
		any |= poll_word(tenant, (unsigned int)__builtin_ctzll(groups));
	return any;
}

static bool poll_all_doorbells(struct share_daemon *share)
{
	struct weir_list *at;
	bool any = false;

	pthread_mutex_lock(&share->lock);
	for (at = share->tenants.next; at != &share->tenants; at = at->next)
		any |= poll_doorbells(weir_list_entry(at, struct share_tenant, link));
	pthread_mutex_unlock(&share->lock);
	if (any || share->has_more)
		share->has_more = weir_mux_local_combine(share->mux);
	return any || share->has_more;
}

static void publish_asleep(struct share_daemon *share, uint32_t asleep)
{
	struct weir_list *at;

	pthread_mutex_lock(&share->lock);
	for (at = share->tenants.next; at != &share->tenants; at = at->next)
		__atomic_store_n(&weir_list_entry(at, struct share_tenant, link)->doorbells->asleep,
				 asleep, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&share->lock);
}

/*
 * Nobody reads the tenants' bells: with EPOLLET only a new signal raises another event. A tenant
 * could make a read of its bell block.
 */
static void sleep_until_rung(struct share_daemon *share)
{
	struct epoll_event events[EVENTS_MAX];
	int i, n = 0;

	publish_asleep(share, 1);
	if (!poll_all_doorbells(share))
		n = epoll_wait(share->epoll, events, EVENTS_MAX, -1);
	publish_asleep(share, 0);
	for (i = 0; i < n; i++)
		if (events[i].data.ptr == share)
			weir_mux_fd_drain(share->wake);
}

static bool is_stopping(struct share_daemon *share)
{
	bool stopping;

	pthread_mutex_lock(&share->lock);
	stopping = share->is_stopping;
	pthread_mutex_unlock(&share->lock);
	return stopping;
}

void *share_doorbell_poller_run(void *arg)
{
	struct share_daemon *share = arg;
	uint64_t worked_ns = weir_now_ns(), now_ns;

	while (!is_stopping(share)) {
		bool any = poll_all_doorbells(share);

		weir_yield(&now_ns);
		if (any)
			worked_ns = now_ns;
		else if (now_ns - worked_ns > share->mux->options.idle_poll_ns)
			sleep_until_rung(share);
	}
	return NULL;
}
