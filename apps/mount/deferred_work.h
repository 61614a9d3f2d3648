/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Deferred work: what a callback must do but would block for. The main thread runs it in order. */
#ifndef WEIR_APPS_MOUNT_DEFERRED_WORK_H
#define WEIR_APPS_MOUNT_DEFERRED_WORK_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct mount;
struct deferred_work;

/* Runs a piece of work and frees it with deferred_work_free(). */
typedef void deferred_fn(struct deferred_work *work);

struct deferred_work {
	struct deferred_work *next;
	struct mount *mount;
	deferred_fn *fn;
	_Alignas(16) char arg[]; /* a copy of the argument */
};

struct deferred_queue {
	pthread_mutex_t lock; /* guards the list */
	struct deferred_work *first, **last;
	int fd; /* an eventfd: readable when there is work, or after deferred_queue_wake() */
};

int deferred_queue_init(struct deferred_queue *deferred);
void deferred_queue_fini(struct deferred_queue *deferred); /* drops remaining work */

/* Context: any. Copies @length bytes from @arg. Return: 0 or -ENOMEM. */
int deferred_work_add(struct mount *m, deferred_fn *fn, const void *arg, size_t length);
void deferred_work_free(struct deferred_work *work);

void deferred_queue_wake(struct deferred_queue *deferred);
void deferred_queue_run(struct deferred_queue *deferred);

#endif
