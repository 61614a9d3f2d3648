/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/prefault.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define WAITING_MAX 16
#define SLICE (2u << 20) /* a huge page; bounds how long the address space is locked */
#define NICE 10

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct range {
	char *memory;
	size_t length;
};

struct prefault {
	pthread_t thread;
	pthread_mutex_t lock; /* guards the fields below */
	pthread_cond_t changed;
	struct range waiting[WAITING_MAX]; /* oldest first */
	unsigned int nr;
	bool stop;
};

/* Waits for the next slice. Returns false to end the thread. */
static bool next_slice(struct prefault *prefault, struct range *slice)
{
	struct range *first = &prefault->waiting[0];
	bool go_on;

	pthread_mutex_lock(&prefault->lock);
	while (!prefault->nr && !prefault->stop)
		pthread_cond_wait(&prefault->changed, &prefault->lock);
	go_on = !prefault->stop;
	if (go_on) {
		*slice = *first;
		if (slice->length > SLICE)
			slice->length = SLICE;
		first->memory += slice->length;
		first->length -= slice->length;
		if (!first->length) {
			prefault->nr--;
			for (unsigned int i = 0; i < prefault->nr; i++)
				prefault->waiting[i] = prefault->waiting[i + 1];
		}
	}
	pthread_mutex_unlock(&prefault->lock);
	return go_on;
}

static void *touch_pages(void *arg)
{
	struct range slice;

	setpriority(PRIO_PROCESS, gettid(), NICE);
	/* Kernels before 5.14 lack this: there the first writer faults the pages in. */
	while (next_slice(arg, &slice))
		(void)madvise(slice.memory, slice.length, MADV_POPULATE_WRITE);
	return NULL;
}

int prefault_start(struct prefault **prefault)
{
	struct prefault *new = calloc(1, sizeof(*new));

	if (!new)
		return -ENOMEM;
	pthread_mutex_init(&new->lock, NULL);
	pthread_cond_init(&new->changed, NULL);
	if (pthread_create(&new->thread, NULL, touch_pages, new)) {
		free(new);
		return -EAGAIN;
	}
	pthread_setname_np(new->thread, "weir-touch");
	*prefault = new;
	return 0;
}

void prefault_queue(struct prefault *prefault, void *memory, size_t length)
{
	pthread_mutex_lock(&prefault->lock);
	if (prefault->nr < WAITING_MAX)
		prefault->waiting[prefault->nr++] = (struct range){ memory, length };
	pthread_cond_signal(&prefault->changed);
	pthread_mutex_unlock(&prefault->lock);
}

void prefault_stop(struct prefault *prefault)
{
	pthread_mutex_lock(&prefault->lock);
	prefault->stop = true;
	pthread_cond_signal(&prefault->changed);
	pthread_mutex_unlock(&prefault->lock);
	pthread_join(prefault->thread, NULL);
}

void prefault_free(struct prefault *prefault)
{
	pthread_mutex_destroy(&prefault->lock);
	pthread_cond_destroy(&prefault->changed);
	free(prefault);
}
