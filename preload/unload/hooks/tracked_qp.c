/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "preload/unload/hooks/device.h"
#include "preload/unload/hooks/fork.h"
#include "preload/unload/pressure.h"
#include "preload/unload/unload_rx.h"
#include "preload/unload/diag.h"
#include "preload/unload/settings.h"
#include "preload/unload/hooks/tracked_qp.h"

#define CHAINS 1024

pthread_mutex_t tracked_qp_life = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct tracked_qp *table[CHAINS];

static struct tracked_qp **chain_of(uint32_t qpn)
{
	return &table[qpn % CHAINS];
}

/* Context: with table_lock. */
static struct tracked_qp *find_locked(const struct ibv_context *context, uint32_t qpn)
{
	struct tracked_qp *w = *chain_of(qpn);

	while (w && (w->qp->qp_num != qpn || w->qp->context != context))
		w = w->chain;
	return w;
}

struct tracked_qp *tracked_qp_find(const struct ibv_context *context, uint32_t qpn)
{
	struct tracked_qp *w;

	pthread_rwlock_rdlock(&table_lock);
	w = find_locked(context, qpn);
	pthread_rwlock_unlock(&table_lock);
	return w;
}

void tracked_qp_for_each(void (*visit)(struct tracked_qp *w, void *arg), void *arg)
{
	struct tracked_qp *w;
	int i;

	for (i = 0; i < CHAINS; i++)
		for (w = table[i]; w; w = w->chain)
			visit(w, arg);
}

struct tracked_qp *tracked_qp_on_device(const struct unload_device *device)
{
	struct tracked_qp *w;
	int i;

	for (i = 0; i < CHAINS; i++)
		for (w = table[i]; w; w = w->chain)
			if (w->device == device)
				return w;
	return NULL;
}

void tracked_qp_retire_rx(struct tracked_qp *w)
{
	pthread_mutex_lock(&w->device->lock);
	unload_rx_retire(w->rx);
	w->rx = NULL;
	pthread_mutex_unlock(&w->device->lock);
}

static int route_init(struct tracked_qp *w)
{
	struct weir_path_config config = {
		.policy = settings_policy(),
		.bytes_max = 1,
		.hot_pages = settings_hot_pages(),
		.nr_counters = WEIR_PATH_COUNTERS_DEFAULT,
	};

	if (weir_path_policy_counts(config.policy)) {
		w->counters = calloc(WEIR_PATH_BYTES(WEIR_PATH_COUNTERS_DEFAULT), 1);
		if (!w->counters)
			return -ENOMEM;
	}
	return weir_path_init(&w->route, &config, w->counters);
}

static void free_tracked_qp(struct tracked_qp *w)
{
	if (!w)
		return;
	pthread_mutex_destroy(&w->post);
	pthread_mutex_destroy(&w->lock);
	free(w->expected);
	free(w->counters);
	free(w);
}

static struct tracked_qp *make_tracked_qp(struct ibv_qp *qp, bool sig_all,
					  const struct ibv_qp_cap *cap)
{
	struct tracked_qp *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->qp = qp;
	w->device = device_of(qp->context);
	w->sig_all = sig_all;
	pthread_mutex_init(&w->post, NULL);
	pthread_mutex_init(&w->lock, NULL);
	w->cap = *cap;
	w->expected_max = 2 * cap->max_send_wr + 1;
	w->expected = calloc(w->expected_max, sizeof(*w->expected));
	if (w->device && w->expected && !route_init(w))
		return w;
	free_tracked_qp(w);
	return NULL;
}

void tracked_qp_created(struct ibv_qp *qp, bool sig_all, const struct ibv_qp_cap *cap)
{
	struct tracked_qp *w;

	if (qp->qp_type != IBV_QPT_RC)
		return;
	w = make_tracked_qp(qp, sig_all, cap);
	if (!w)
		return;
	pthread_rwlock_wrlock(&table_lock);
	w->chain = *chain_of(qp->qp_num);
	*chain_of(qp->qp_num) = w;
	pthread_rwlock_unlock(&table_lock);
}

void tracked_qp_destroyed(struct ibv_qp *qp)
{
	struct tracked_qp **at, *w;

	pthread_rwlock_wrlock(&table_lock);
	at = chain_of(qp->qp_num);
	while (*at && (*at)->qp != qp)
		at = &(*at)->chain;
	w = *at;
	if (w)
		*at = w->chain;
	pthread_rwlock_unlock(&table_lock);
	if (w)
		pressure_add(&w->route);
	free_tracked_qp(w);
}

/* The write will not be timed. Context: with w->lock. */
static void cancel_route(struct tracked_qp *w, unsigned int path)
{
	if (path & WEIR_PATH_PROBE)
		weir_path_abandon_probe(&w->route);
}

void tracked_qp_cancel(struct tracked_qp *w, unsigned int path)
{
	pthread_mutex_lock(&w->lock);
	cancel_route(w, path);
	pthread_mutex_unlock(&w->lock);
}

void tracked_qp_reset(struct tracked_qp *w)
{
	pthread_mutex_lock(&w->lock);
	w->sent = w->over = w->through = 0;
	for (; w->head != w->tail; w->head = (w->head + 1) % w->expected_max)
		cancel_route(w, w->expected[w->head].of.path);
	pthread_mutex_unlock(&w->lock);
	w->seek = SEEK_NONE;
	__atomic_store_n(&w->is_disabled, false, __ATOMIC_RELAXED);
}

void tracked_qp_disable(struct tracked_qp *w, const char *why)
{
	if (!__atomic_exchange_n(&w->is_disabled, true, __ATOMIC_RELAXED))
		diag_disabled(w->qp->qp_num, why);
}

bool tracked_qp_is_idle(struct tracked_qp *w)
{
	bool is_idle;

	pthread_mutex_lock(&w->lock);
	is_idle = w->is_polled && w->over >= w->through;
	pthread_mutex_unlock(&w->lock);
	return is_idle;
}

bool tracked_qp_has_room(struct tracked_qp *w)
{
	bool has_room;

	pthread_mutex_lock(&w->lock);
	has_room = w->sent - w->over < w->cap.max_send_wr;
	pthread_mutex_unlock(&w->lock);
	return has_room;
}

void tracked_qp_posting(struct tracked_qp *w, const struct tracked_wr *of)
{
	bool is_full = false;

	pthread_mutex_lock(&w->lock);
	w->sent++;
	if (!of->is_copied)
		w->through = w->sent;
	if (of->is_signalled) {
		w->expected[w->tail] = (struct expected_wc){ *of, w->sent };
		w->tail = (w->tail + 1) % w->expected_max;
		is_full = w->tail == w->head;
	}
	pthread_mutex_unlock(&w->lock);
	if (is_full)
		tracked_qp_disable(w, "more completions are under way than it has room for");
}

/* The new last WR may have been unloaded; counting it as posted to the QP does no harm. */
void tracked_qp_not_posted(struct tracked_qp *w, bool is_signalled)
{
	pthread_mutex_lock(&w->lock);
	w->sent--;
	if (w->through > w->sent)
		w->through = w->sent;
	if (is_signalled) {
		w->tail = (w->tail + w->expected_max - 1) % w->expected_max;
		cancel_route(w, w->expected[w->tail].of.path);
	}
	pthread_mutex_unlock(&w->lock);
}

/* Context: with w->lock. */
static void take_expected(struct tracked_qp *w)
{
	const struct expected_wc *e = &w->expected[w->head];

	w->head = (w->head + 1) % w->expected_max;
	w->over = e->sent;
	if (e->of.path & WEIR_PATH_PROBE)
		weir_path_completed(&w->route, e->of.path, weir_now_ns() - e->of.at_ns);
}

/* Can an empty write end so because its peer is gone? An empty write has no bad local memory. */
static bool is_of_the_wire(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_LOC_LEN_ERR:
	case IBV_WC_LOC_QP_OP_ERR:
	case IBV_WC_LOC_EEC_OP_ERR:
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
	case IBV_WC_MW_BIND_ERR:
		return false;
	default:
		return true;
	}
}

/*
 * Is this the next expected completion? A flushed receive with the same wr_id may be mistaken for
 * the send. Then the send comes later, is flushed, too, and passes for the receive.
 *
 * Context: with w->lock.
 */
static bool is_expected(const struct tracked_qp *w, const struct ibv_cq *cq,
			const struct ibv_wc *wc)
{
	return w->qp->send_cq == cq && w->head != w->tail &&
	       w->expected[w->head].of.wr_id == wc->wr_id;
}

/* Return: true if the completion was expected. */
static bool complete_expected(struct tracked_qp *w, const struct ibv_cq *cq, struct ibv_wc *wc)
{
	bool is_next;

	pthread_mutex_lock(&w->lock);
	w->is_polled = true;
	is_next = is_expected(w, cq, wc);
	if (is_next && w->expected[w->head].of.is_copied && is_of_the_wire(wc->status)) {
		wc->status = IBV_WC_SUCCESS;
		wc->opcode = IBV_WC_RDMA_WRITE;
		wc->wc_flags = 0;
	}
	if (is_next && wc->status == IBV_WC_SUCCESS)
		take_expected(w);
	pthread_mutex_unlock(&w->lock);
	return is_next;
}

static void note_polled(struct tracked_qp *w, const struct ibv_cq *cq, struct ibv_wc *wc)
{
	const enum ibv_wc_status status = wc->status;
	bool was_expected = complete_expected(w, cq, wc);

	/* A flush only says that the program, or its peer, has ended the QP. */
	if (status == IBV_WC_WR_FLUSH_ERR)
		__atomic_store_n(&w->is_disabled, true, __ATOMIC_RELAXED);
	else if (status != IBV_WC_SUCCESS)
		tracked_qp_disable(w, "something on it has failed");
	else if (!was_expected)
		tracked_qp_disable(w, "it has completed what it was not seen to post");
}

/* Another thread may be destroying the QP of this completion: the lock keeps the QP until the end.
 */
void tracked_qp_polled(const struct ibv_cq *cq, struct ibv_wc *wc)
{
	struct tracked_qp *w;

	if (wc->status == IBV_WC_SUCCESS && wc->opcode & IBV_WC_RECV)
		return;
	pthread_rwlock_rdlock(&table_lock);
	w = find_locked(cq->context, wc->qp_num);
	if (w)
		note_polled(w, cq, wc);
	pthread_rwlock_unlock(&table_lock);
}

void tracked_qp_forget(void)
{
	memset(table, 0, sizeof(table));
	pthread_mutex_init(&tracked_qp_life, NULL);
	pthread_rwlock_init(&table_lock, NULL);
}
