/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues: the internal interface. */
#ifndef WEIR_LIB_CLIENT_REQUEST_QUEUE_H
#define WEIR_LIB_CLIENT_REQUEST_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/spinlock.h"

struct weir_event;
struct weir_lane_set;

/**
 * struct weir_queue - events to be polled or waited for
 * @lock: guards the rest; innermost
 * @wakeups: number of wake-ups; waiters sleep on this futex
 * @sleepers: threads that wait; atomic to read
 * @woken: weir_queue_wake() ends a wait
 * @ring, @size: room, a power of two; @size is atomic to read
 * @first, @count: events in the ring
 * @reserved: events ever added or reserved; atomic. A successful reservation leaves at most @size
 *	of them untaken
 * @taken: events ever taken; atomic to read
 * @fd: an eventfd, readable while there are events; -1 until asked for; atomic to read
 * @lanes: where events may come from without nic->lock, or NULL; atomic
 */
struct weir_queue {
	struct weir_spinlock lock;
	uint32_t wakeups;
	unsigned int sleepers;
	bool woken;
	struct weir_event *ring;
	unsigned int size;
	unsigned int first, count;
	unsigned int reserved, taken;
	int fd;
	struct weir_lane_set *lanes;
};

/* Whether a thread sleeps in the library, or may sleep on the descriptor. Context: any thread. */
static inline bool weir_queue_has_sleeper(const struct weir_queue *queue)
{
	return __atomic_load_n(&queue->sleepers, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&queue->fd, __ATOMIC_RELAXED) >= 0;
}

/* Whether there is something to take, as of a moment ago. Context: any thread. */
bool weir_queue_may_have(const struct weir_queue *queue);

/*
 * Makes room for the last @count of @claimed reserved events, or cancels their reservation.
 * Return: as weir_queue_reserve().
 */
__attribute__((cold, noinline)) int weir_queue_grow(struct weir_queue *queue, unsigned int claimed,
						    unsigned int count);

/*
 * Reserves room for @count more events. Inline, because every request with a queue calls this
 * function. Context: any thread. Return: 0; -ENOMEM.
 */
static inline int weir_queue_reserve(struct weir_queue *queue, unsigned int count)
{
	/* Read first, or the count could include events reserved after these. */
	unsigned int taken = __atomic_load_n(&queue->taken, __ATOMIC_ACQUIRE);
	unsigned int claimed =
		__atomic_add_fetch(&queue->reserved, count, __ATOMIC_RELAXED) - taken;

	if (claimed <= __atomic_load_n(&queue->size, __ATOMIC_ACQUIRE))
		return 0;
	return weir_queue_grow(queue, claimed, count);
}

/* Cancels the reservation of @count events. */
void weir_queue_release(struct weir_queue *queue, unsigned int count);

/*
 * Adds @count reserved events; cannot fail. Return: the futex to wake sleepers by, now or soon,
 * even when the queue is gone; NULL: no thread sleeps.
 */
uint32_t *weir_queue_put(struct weir_queue *queue, const struct weir_event *events,
			 unsigned int count);
uint32_t *weir_queue_put_one(struct weir_queue *queue, const struct weir_event *event);

#endif
