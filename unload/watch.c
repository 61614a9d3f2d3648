/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <stdlib.h>

#include "unload/clock.h"
#include "unload/device.h"
#include "unload/say.h"
#include "unload/settings.h"
#include "unload/watch.h"

#define CHAINS 1024
#define COUNTERS (1u << 20) /* pages of 4 GiB; untouched ones take no memory */

pthread_mutex_t watch_life = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct watched *table[CHAINS];

static struct watched **chain_of(uint32_t qpn)
{
	return &table[qpn % CHAINS];
}

/* Context: with table_lock. */
static struct watched *find(const struct ibv_context *context, uint32_t qpn)
{
	struct watched *w = *chain_of(qpn);

	while (w && (w->qp->qp_num != qpn || w->qp->context != context))
		w = w->chain;
	return w;
}

struct watched *watch_find(const struct ibv_context *context, uint32_t qpn)
{
	struct watched *w;

	pthread_rwlock_rdlock(&table_lock);
	w = find(context, qpn);
	pthread_rwlock_unlock(&table_lock);
	return w;
}

void watch_each(void (*visit)(struct watched *w, void *arg), void *arg)
{
	struct watched *w;
	int i;

	for (i = 0; i < CHAINS; i++)
		for (w = table[i]; w; w = w->chain)
			visit(w, arg);
}

static int route_init(struct watched *w)
{
	struct weir_route_config config = {
		.policy = settings_policy(),
		.bytes_max = 1,
		.hot_pages = settings_hot_pages(),
		.nr_counters = COUNTERS,
	};

	if (weir_route_counts(config.policy)) {
		w->counters = calloc(WEIR_ROUTE_BYTES(COUNTERS), 1);
		if (!w->counters)
			return -ENOMEM;
	}
	return weir_route_init(&w->route, &config, w->counters);
}

static void watched_free(struct watched *w)
{
	if (!w)
		return;
	pthread_mutex_destroy(&w->post);
	pthread_mutex_destroy(&w->lock);
	free(w->expected);
	free(w->counters);
	free(w);
}

static struct watched *watched_make(struct ibv_qp *qp, bool sig_all, uint32_t send_wrs)
{
	struct watched *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->qp = qp;
	w->device = device_of(qp->context);
	w->sig_all = sig_all;
	pthread_mutex_init(&w->post, NULL);
	pthread_mutex_init(&w->lock, NULL);
	w->expected_max = 2 * send_wrs + 1;
	w->expected = calloc(w->expected_max, sizeof(*w->expected));
	if (w->device && w->expected && !route_init(w))
		return w;
	watched_free(w);
	return NULL;
}

void watch_created(struct ibv_qp *qp, bool sig_all, uint32_t send_wrs)
{
	struct watched *w;

	if (qp->qp_type != IBV_QPT_RC)
		return;
	w = watched_make(qp, sig_all, send_wrs);
	if (!w)
		return;
	pthread_rwlock_wrlock(&table_lock);
	w->chain = *chain_of(qp->qp_num);
	*chain_of(qp->qp_num) = w;
	pthread_rwlock_unlock(&table_lock);
}

void watch_destroyed(struct ibv_qp *qp)
{
	struct watched **at, *w;

	pthread_rwlock_wrlock(&table_lock);
	at = chain_of(qp->qp_num);
	while (*at && (*at)->qp != qp)
		at = &(*at)->chain;
	w = *at;
	if (w)
		*at = w->chain;
	pthread_rwlock_unlock(&table_lock);
	watched_free(w);
}

void watch_reset(struct watched *w)
{
	pthread_mutex_lock(&w->lock);
	w->posted = w->done = 0;
	w->head = w->tail = 0;
	pthread_mutex_unlock(&w->lock);
	w->seek = SEEK_NONE;
	__atomic_store_n(&w->is_plain, false, __ATOMIC_RELAXED);
}

void watch_make_plain(struct watched *w, const char *why)
{
	if (!__atomic_exchange_n(&w->is_plain, true, __ATOMIC_RELAXED))
		say("QP %#x: nothing is unloaded from now on: %s", w->qp->qp_num, why);
}

bool watch_is_idle(struct watched *w)
{
	bool is_idle;

	pthread_mutex_lock(&w->lock);
	is_idle = w->done == w->posted;
	pthread_mutex_unlock(&w->lock);
	return is_idle;
}

void watch_posting(struct watched *w, bool counts, bool is_signalled, unsigned int path,
		   uint64_t at_ns)
{
	bool is_full = false;

	pthread_mutex_lock(&w->lock);
	w->posted += counts;
	if (is_signalled) {
		w->expected[w->tail] = (struct expected){ w->posted, at_ns, (uint8_t)path };
		w->tail = (w->tail + 1) % w->expected_max;
		is_full = w->tail == w->head;
	}
	pthread_mutex_unlock(&w->lock);
	if (is_full)
		watch_make_plain(w, "more completions are under way than it has room for");
}

void watch_not_posted(struct watched *w, bool counts, bool is_signalled)
{
	pthread_mutex_lock(&w->lock);
	w->posted -= counts;
	if (is_signalled)
		w->tail = (w->tail + w->expected_max - 1) % w->expected_max;
	pthread_mutex_unlock(&w->lock);
}

/* Context: with w->lock. */
static void take_expected(struct watched *w)
{
	const struct expected *e = &w->expected[w->head];

	if (w->head == w->tail)
		return;
	w->head = (w->head + 1) % w->expected_max;
	w->done = e->posted;
	if (e->path & WEIR_PATH_PROBE)
		weir_route_completed(&w->route, e->path, clock_ns() - e->at_ns);
}

static void polled(struct watched *w, const struct ibv_wc *wc)
{
	if (watch_is_plain(w))
		return;
	if (wc->status != IBV_WC_SUCCESS) {
		watch_make_plain(w, "something on it has failed");
		return;
	}
	pthread_mutex_lock(&w->lock);
	take_expected(w);
	pthread_mutex_unlock(&w->lock);
}

/* Another thread may destroy the QP that this completion is of: the lock keeps it here until then. */
void watch_polled(const struct ibv_context *context, const struct ibv_wc *wc)
{
	struct watched *w;

	if (wc->status == IBV_WC_SUCCESS && wc->opcode & IBV_WC_RECV)
		return;
	pthread_rwlock_rdlock(&table_lock);
	w = find(context, wc->qp_num);
	if (w)
		polled(w, wc);
	pthread_rwlock_unlock(&table_lock);
}
