/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A ring that grows when a request is submitted, so that it never has to when one
 * completes. The descriptor exists once somebody has asked for it: who does not, pays
 * no system calls for it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <weir/request.h>
#include "lib/clock.h"
#include "lib/queue.h"

#define EVENTS_MIN 64

/**
 * struct weir_queue - events for whoever asks
 * @lock: guards the rest; innermost
 * @filled: there is an event
 * @ring, @size: room, a power of two
 * @first, @count: events in it
 * @reserved: events to come
 * @fd: an eventfd, readable while there are events; -1 until asked for
 */
struct weir_queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct weir_event *ring;
	unsigned int size;
	unsigned int first, count;
	unsigned int reserved;
	int fd;
};

int weir_queue_create(struct weir_queue **queue)
{
	struct weir_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->ring = calloc(EVENTS_MIN, sizeof(*q->ring));
	if (!q->ring) {
		free(q);
		return -ENOMEM;
	}
	q->size = EVENTS_MIN;
	q->fd = -1;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->filled, NULL);
	*queue = q;
	return 0;
}

void weir_queue_destroy(struct weir_queue *queue)
{
	if (!queue)
		return;
	if (queue->fd >= 0)
		close(queue->fd);
	pthread_cond_destroy(&queue->filled);
	pthread_mutex_destroy(&queue->lock);
	free(queue->ring);
	free(queue);
}

/* Doubles the ring, and unrolls it. */
static int grow(struct weir_queue *q)
{
	struct weir_event *ring = calloc(2 * (size_t)q->size, sizeof(*ring));
	unsigned int i;

	if (!ring)
		return -ENOMEM;
	for (i = 0; i < q->count; i++)
		ring[i] = q->ring[(q->first + i) & (q->size - 1)];
	free(q->ring);
	q->ring = ring;
	q->size *= 2;
	q->first = 0;
	return 0;
}

int weir_queue_reserve(struct weir_queue *queue)
{
	int rc = 0;

	pthread_mutex_lock(&queue->lock);
	if (queue->count + queue->reserved == queue->size)
		rc = grow(queue);
	if (!rc)
		queue->reserved++;
	pthread_mutex_unlock(&queue->lock);
	return rc;
}

void weir_queue_unreserve(struct weir_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->reserved--;
	pthread_mutex_unlock(&queue->lock);
}

static void fd_raise(const struct weir_queue *q)
{
	uint64_t one = 1;

	if (q->fd >= 0 && write(q->fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: it is readable */
}

static void fd_lower(const struct weir_queue *q)
{
	uint64_t count;

	if (q->fd >= 0 && read(q->fd, &count, sizeof(count)) < 0)
		return; /* it was not readable */
}

void weir_queue_put(struct weir_queue *queue, void *arg, int status)
{
	pthread_mutex_lock(&queue->lock);
	queue->reserved--;
	queue->ring[(queue->first + queue->count) & (queue->size - 1)] =
		(struct weir_event){ arg, status };
	if (queue->count++ == 0) {
		fd_raise(queue);
		pthread_cond_broadcast(&queue->filled);
	}
	pthread_mutex_unlock(&queue->lock);
}

int weir_queue_fd(const struct weir_queue *queue)
{
	struct weir_queue *q = (struct weir_queue *)queue; /* its owner cannot see the difference */

	pthread_mutex_lock(&q->lock);
	if (q->fd < 0) {
		q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (q->count)
			fd_raise(q);
	}
	pthread_mutex_unlock(&q->lock);
	return q->fd;
}

/* With the lock held. */
static int take(struct weir_queue *q, struct weir_event *events, int max)
{
	int taken = 0;

	while (taken < max && q->count) {
		events[taken++] = q->ring[q->first];
		q->first = (q->first + 1) & (q->size - 1);
		q->count--;
	}
	if (taken && !q->count)
		fd_lower(q);
	return taken;
}

int weir_queue_poll(struct weir_queue *queue, struct weir_event *events, int max)
{
	int taken;

	pthread_mutex_lock(&queue->lock);
	taken = take(queue, events, max);
	pthread_mutex_unlock(&queue->lock);
	return taken;
}

int weir_queue_wait(struct weir_queue *queue, struct weir_event *events, int max, int timeout_ms)
{
	struct timespec at =
		weir_timespec(weir_now_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) *
						      WEIR_NS_PER_MS);
	int rc = 0, taken;

	pthread_mutex_lock(&queue->lock);
	while (!queue->count && rc != ETIMEDOUT) {
		if (timeout_ms < 0)
			rc = pthread_cond_wait(&queue->filled, &queue->lock);
		else
			rc = pthread_cond_clockwait(&queue->filled, &queue->lock, CLOCK_MONOTONIC,
						    &at);
	}
	taken = take(queue, events, max);
	pthread_mutex_unlock(&queue->lock);
	return taken;
}
