/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/deferred_work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "apps/mount/mount.h"

int chores_init(struct chores *chores)
{
	pthread_mutex_init(&chores->lock, NULL);
	chores->first = NULL;
	chores->last = &chores->first;
	chores->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return chores->fd < 0 ? -errno : 0;
}

void chores_fini(struct chores *chores)
{
	while (chores->first) {
		struct chore *chore = chores->first;

		chores->first = chore->next;
		chore_free(chore);
	}
	close(chores->fd);
}

int chore_add(struct mount *m, chore_fn *fn, const void *arg, size_t length)
{
	struct chores *chores = &m->chores;
	struct chore *chore = malloc(sizeof(*chore) + length);

	if (!chore)
		return -ENOMEM;
	chore->next = NULL;
	chore->mount = m;
	chore->fn = fn;
	if (length)
		memcpy(chore->arg, arg, length);

	pthread_mutex_lock(&chores->lock);
	*chores->last = chore;
	chores->last = &chore->next;
	pthread_mutex_unlock(&chores->lock);
	chores_wake(chores);
	return 0;
}

void chore_free(struct chore *chore)
{
	free(chore);
}

void chores_wake(struct chores *chores)
{
	/* Fails only when it is about to overflow: it is readable then. */
	(void)!eventfd_write(chores->fd, 1);
}

static struct chore *take(struct chores *chores)
{
	struct chore *chore;

	pthread_mutex_lock(&chores->lock);
	chore = chores->first;
	if (chore) {
		chores->first = chore->next;
		if (!chores->first)
			chores->last = &chores->first;
	}
	pthread_mutex_unlock(&chores->lock);
	return chore;
}

void chores_do(struct chores *chores)
{
	struct chore *chore;
	eventfd_t count;

	(void)!eventfd_read(chores->fd, &count);
	while ((chore = take(chores)))
		chore->fn(chore);
}
