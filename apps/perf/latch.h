/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waiting for something that other threads bring about by atomics, which cost nothing while
 * nobody waits.
 */
#ifndef WEIR_APPS_PERF_LATCH_H
#define WEIR_APPS_PERF_LATCH_H

#include <pthread.h>
#include <stdbool.h>

struct latch {
	pthread_mutex_t lock;
	pthread_cond_t opened;
	unsigned int waiters; /* atomic */
};

void latch_init(struct latch *latch);
void latch_fini(struct latch *latch);

/* Returns when @is_open says so. What it reads others write and notify about, all by
 * sequentially consistent atomics. */
void latch_wait(struct latch *latch, bool (*is_open)(const void *arg), const void *arg);

/* What a waiter's @is_open reads has just been written. Context: any thread. */
void latch_notify(struct latch *latch);

#endif
