/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A waiter counts itself and then looks; who brings something about does so and then looks for
 * waiters. In one order of both, at least one of the two sees the other.
 */
#include "apps/perf/latch.h"

void latch_init(struct latch *latch)
{
	pthread_mutex_init(&latch->lock, NULL);
	pthread_cond_init(&latch->opened, NULL);
	latch->waiters = 0;
}

void latch_fini(struct latch *latch)
{
	pthread_cond_destroy(&latch->opened);
	pthread_mutex_destroy(&latch->lock);
}

void latch_wait(struct latch *latch, bool (*is_open)(const void *arg), const void *arg)
{
	if (is_open(arg))
		return;
	pthread_mutex_lock(&latch->lock);
	__atomic_fetch_add(&latch->waiters, 1, __ATOMIC_SEQ_CST);
	while (!is_open(arg))
		pthread_cond_wait(&latch->opened, &latch->lock);
	__atomic_fetch_sub(&latch->waiters, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&latch->lock);
}

void latch_notify(struct latch *latch)
{
	if (!__atomic_load_n(&latch->waiters, __ATOMIC_SEQ_CST))
		return;
	pthread_mutex_lock(&latch->lock);
	pthread_cond_broadcast(&latch->opened);
	pthread_mutex_unlock(&latch->lock);
}
