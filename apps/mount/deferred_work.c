/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/deferred_work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "apps/mount/mount.h"

int deferred_queue_init(struct deferred_queue *deferred)
{
	pthread_mutex_init(&deferred->lock, NULL);
	deferred->first = NULL;
	deferred->last = &deferred->first;
	deferred->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return deferred->fd < 0 ? -errno : 0;
}

void deferred_queue_fini(struct deferred_queue *deferred)
{
	while (deferred->first) {
		struct deferred_work *work = deferred->first;

		deferred->first = work->next;
		deferred_work_free(work);
	}
	close(deferred->fd);
}

int deferred_work_add(struct mount *m, deferred_fn *fn, const void *arg, size_t length)
{
	struct deferred_queue *deferred = &m->deferred;
	struct deferred_work *work = malloc(sizeof(*work) + length);

	if (!work)
		return -ENOMEM;
	work->next = NULL;
	work->mount = m;
	work->fn = fn;
	if (length)
		memcpy(work->arg, arg, length);

	pthread_mutex_lock(&deferred->lock);
	*deferred->last = work;
	deferred->last = &work->next;
	pthread_mutex_unlock(&deferred->lock);
	deferred_queue_wake(deferred);
	return 0;
}

void deferred_work_free(struct deferred_work *work)
{
	free(work);
}

void deferred_queue_wake(struct deferred_queue *deferred)
{
	/* Fails only if the counter would overflow; the descriptor is readable then. */
	(void)!eventfd_write(deferred->fd, 1);
}

static struct deferred_work *take_work(struct deferred_queue *deferred)
{
	struct deferred_work *work;

	pthread_mutex_lock(&deferred->lock);
	work = deferred->first;
	if (work) {
		deferred->first = work->next;
		if (!deferred->first)
			deferred->last = &deferred->first;
	}
	pthread_mutex_unlock(&deferred->lock);
	return work;
}

void deferred_queue_run(struct deferred_queue *deferred)
{
	struct deferred_work *work;
	eventfd_t count;

	(void)!eventfd_read(deferred->fd, &count);
	while ((work = take_work(deferred)))
		work->fn(work);
}
