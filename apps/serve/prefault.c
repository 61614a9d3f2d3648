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
static bool next_slice(struct prefault *touch, struct range *slice)
{
	struct range *first = &touch->waiting[0];
	bool go_on;

	pthread_mutex_lock(&touch->lock);
	while (!touch->nr && !touch->stop)
		pthread_cond_wait(&touch->changed, &touch->lock);
	go_on = !touch->stop;
	if (go_on) {
		*slice = *first;
		if (slice->length > SLICE)
			slice->length = SLICE;
		first->memory += slice->length;
		first->length -= slice->length;
		if (!first->length) {
			touch->nr--;
			for (unsigned int i = 0; i < touch->nr; i++)
				touch->waiting[i] = touch->waiting[i + 1];
		}
	}
	pthread_mutex_unlock(&touch->lock);
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

int prefault_start(struct prefault **touch)
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
	*touch = new;
	return 0;
}

void prefault_queue(struct prefault *touch, void *memory, size_t length)
{
	pthread_mutex_lock(&touch->lock);
	if (touch->nr < WAITING_MAX)
		touch->waiting[touch->nr++] = (struct range){ memory, length };
	pthread_cond_signal(&touch->changed);
	pthread_mutex_unlock(&touch->lock);
}

void prefault_stop(struct prefault *touch)
{
	pthread_mutex_lock(&touch->lock);
	touch->stop = true;
	pthread_cond_signal(&touch->changed);
	pthread_mutex_unlock(&touch->lock);
	pthread_join(touch->thread, NULL);
}

void prefault_free(struct prefault *touch)
{
	pthread_mutex_destroy(&touch->lock);
	pthread_cond_destroy(&touch->changed);
	free(touch);
}
