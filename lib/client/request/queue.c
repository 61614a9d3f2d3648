/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A ring that grows on submission and therefore never on completion. The eventfd is created when
 * the user first asks for it; other users pay no system calls.
 *
 * A thread that adds events wakes sleepers only after adding all events to all queues. A sleeper
 * woken by the first event would often find only that event.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <weir/request.h>
#include "lib/base/clock.h"
#include "lib/base/futex.h"
#include "lib/client/channel/lanes.h"
#include "lib/client/request/queue.h"

#define EVENTS_MIN 64

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
	*queue = q;
	return 0;
}

void weir_queue_destroy(struct weir_queue *queue)
{
	if (!queue)
		return;
	if (queue->fd >= 0)
		close(queue->fd);
	free(queue->ring);
	free(queue);
}

/* Doubles the ring, and unrolls the contents. */
static int double_ring(struct weir_queue *q)
{
	struct weir_event *ring = calloc(2 * (size_t)q->size, sizeof(*ring));
	unsigned int i;

	if (!ring)
		return -ENOMEM;
	for (i = 0; i < q->count; i++)
		ring[i] = q->ring[(q->first + i) & (q->size - 1)];
	free(q->ring);
	q->ring = ring;
	q->first = 0;
	__atomic_store_n(&q->size, 2 * q->size, __ATOMIC_RELEASE);
	return 0;
}

int weir_queue_grow(struct weir_queue *q, unsigned int claimed, unsigned int count)
{
	int rc = 0;

	weir_spinlock_lock(&q->lock);
	while (!rc && q->size < claimed)
		rc = double_ring(q);
	weir_spinlock_unlock(&q->lock);
	if (rc)
		weir_queue_release(q, count);
	return rc;
}

void weir_queue_release(struct weir_queue *queue, unsigned int count)
{
	__atomic_fetch_sub(&queue->reserved, count, __ATOMIC_RELAXED);
}

static void fd_raise(const struct weir_queue *q)
{
	uint64_t one = 1;

	if (q->fd >= 0 && write(q->fd, &one, sizeof(one)) < 0)
		return; /* the counter is full and the descriptor readable */
}

static void fd_lower(const struct weir_queue *q)
{
	uint64_t count;

	if (q->fd >= 0 && read(q->fd, &count, sizeof(count)) < 0)
		return; /* it was not readable */
}

/* Return: the futex to wake sleepers by, or NULL. Context: with the lock held. */
static uint32_t *count_wakeup(struct weir_queue *q)
{
	if (!q->sleepers)
		return NULL;
	__atomic_fetch_add(&q->wakeups, 1, __ATOMIC_RELEASE);
	return &q->wakeups;
}

static inline uint32_t *put_events(struct weir_queue *queue, const struct weir_event *events,
				   unsigned int count)
{
	uint32_t *wakeups;
	unsigned int i;

	weir_spinlock_lock(&queue->lock);
	for (i = 0; i < count; i++)
		queue->ring[(queue->first + queue->count + i) & (queue->size - 1)] = events[i];
	if (!queue->count)
		fd_raise(queue);
	queue->count += count;
	wakeups = count_wakeup(queue);
	weir_spinlock_unlock(&queue->lock);
	return wakeups;
}

uint32_t *weir_queue_put(struct weir_queue *queue, const struct weir_event *events,
			 unsigned int count)
{
	return put_events(queue, events, count);
}

uint32_t *weir_queue_put_one(struct weir_queue *queue, const struct weir_event *event)
{
	return put_events(queue, event, 1);
}

void weir_queue_wake(struct weir_queue *queue)
{
	uint32_t *wakeups;

	weir_spinlock_lock(&queue->lock);
	queue->woken = true;
	wakeups = count_wakeup(queue);
	weir_spinlock_unlock(&queue->lock);
	if (wakeups)
		weir_futex_wake(wakeups, INT_MAX);
}

int weir_queue_fd(const struct weir_queue *queue)
{
	struct weir_queue *q = (struct weir_queue *)queue; /* logically const for the owner */

	weir_spinlock_lock(&q->lock);
	if (q->fd < 0) {
		__atomic_store_n(&q->fd, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), __ATOMIC_RELAXED);
		if (q->count)
			fd_raise(q);
	}
	weir_spinlock_unlock(&q->lock);
	return q->fd;
}

/* With the lock held. */
static int take_events(struct weir_queue *q, struct weir_event *events, int max)
{
	unsigned int i, taken = max > 0 ? (unsigned int)max : 0;

	if (taken > q->count)
		taken = q->count;
	for (i = 0; i < taken; i++)
		events[i] = q->ring[(q->first + i) & (q->size - 1)];
	q->first = (q->first + taken) & (q->size - 1);
	q->count -= taken;
	__atomic_store_n(&q->taken, q->taken + taken, __ATOMIC_RELEASE);
	if (taken && !q->count)
		fd_lower(q);
	return (int)taken;
}

bool weir_queue_may_have(const struct weir_queue *queue)
{
	struct weir_queue *q = (struct weir_queue *)queue; /* as weir_queue_fd() */
	bool may_have;

	weir_spinlock_lock(&q->lock);
	may_have = q->count || q->woken;
	weir_spinlock_unlock(&q->lock);
	return may_have;
}

/* The lanes that may owe events, or NULL. With the lock held. */
static struct weir_lane_set *lanes_of(const struct weir_queue *q)
{
	if (q->count || __atomic_load_n(&q->reserved, __ATOMIC_RELAXED) == q->taken)
		return NULL;
	return __atomic_load_n(&q->lanes, __ATOMIC_RELAXED);
}

int weir_queue_poll(struct weir_queue *queue, struct weir_event *events, int max)
{
	struct weir_lane_set *lanes;
	int taken;

	weir_spinlock_lock(&queue->lock);
	lanes = lanes_of(queue);
	if (lanes) {
		weir_spinlock_unlock(&queue->lock);
		weir_lanes_reap(lanes);
		weir_spinlock_lock(&queue->lock);
	}
	taken = take_events(queue, events, max);
	weir_spinlock_unlock(&queue->lock);
	return taken;
}

/* With the lock held; released while asleep. */
static void sleep_on_queue(struct weir_queue *q, uint64_t deadline_ns)
{
	uint32_t seen = q->wakeups;

	__atomic_store_n(&q->sleepers, q->sleepers + 1, __ATOMIC_RELAXED);
	weir_spinlock_unlock(&q->lock);
	weir_futex_wait(&q->wakeups, seen, deadline_ns);
	weir_spinlock_lock(&q->lock);
	__atomic_store_n(&q->sleepers, q->sleepers - 1, __ATOMIC_RELAXED);
}

/* With the lock held; released while asleep. */
__attribute__((noinline)) static void wait_for_some(struct weir_queue *q, int timeout_ms)
{
	struct weir_lane_set *lanes = lanes_of(q);
	uint64_t deadline_ns = UINT64_MAX;

	if (timeout_ms >= 0)
		deadline_ns = weir_now_ns() + (uint64_t)timeout_ms * WEIR_NS_PER_MS;
	if (lanes) {
		weir_spinlock_unlock(&q->lock);
		weir_lanes_await_event(lanes, q, deadline_ns);
		weir_spinlock_lock(&q->lock);
	}
	while (!q->count && !q->woken && weir_now_ns() < deadline_ns)
		sleep_on_queue(q, deadline_ns);
}

int weir_queue_wait(struct weir_queue *queue, struct weir_event *events, int max, int timeout_ms)
{
	int taken;

	weir_spinlock_lock(&queue->lock);
	if (!queue->count && !queue->woken)
		wait_for_some(queue, timeout_ms);
	queue->woken = false;
	taken = take_events(queue, events, max);
	weir_spinlock_unlock(&queue->lock);
	return taken;
}
