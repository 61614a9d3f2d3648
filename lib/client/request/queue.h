/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues from the inside. What the engine's core calls a queue is another thing,
 * so this header, and queue.c, see nothing of the core.
 */
#ifndef WEIR_LIB_CLIENT_REQUEST_QUEUE_H
#define WEIR_LIB_CLIENT_REQUEST_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/spinlock.h"

struct weir_event;

/**
 * struct weir_queue - events for whoever asks
 * @lock: guards the rest; innermost
 * @bell: how often it rang; they sleep on it
 * @sleepers: threads that wait
 * @woken: weir_queue_wake() ends a wait
 * @ring, @size: room, a power of two; @size is atomic to read
 * @first, @count: events in it
 * @reserved: events ever in it and to come; atomic. @taken: of those, how many are no longer;
 *	atomic to read. At most @size of the others were told that they fit
 * @fd: an eventfd, readable while there are events; -1 until asked for
 */
struct weir_queue {
	struct weir_spinlock lock;
	uint32_t bell;
	unsigned int sleepers;
	bool woken;
	struct weir_event *ring;
	unsigned int size;
	unsigned int first, count;
	unsigned int reserved, taken;
	int fd;
};

/*
 * There is no room for the @count that were just reserved, @claimed with all others: makes some, or
 * takes them back. Return: as weir_queue_reserve().
 */
__attribute__((cold, noinline)) int weir_queue_grow(struct weir_queue *queue, unsigned int claimed,
						    unsigned int count);

/*
 * Makes sure that @count more events will fit. Return: 0; -ENOMEM. Context: any thread. Inline: it
 * is on the way of each request that goes to a queue.
 */
static inline int weir_queue_reserve(struct weir_queue *queue, unsigned int count)
{
	/* Read first, or it might be of events that were reserved after these. */
	unsigned int taken = __atomic_load_n(&queue->taken, __ATOMIC_ACQUIRE);
	unsigned int claimed =
		__atomic_add_fetch(&queue->reserved, count, __ATOMIC_RELAXED) - taken;

	if (claimed <= __atomic_load_n(&queue->size, __ATOMIC_ACQUIRE))
		return 0;
	return weir_queue_grow(queue, claimed, count);
}

/* That many fewer than were reserved. */
void weir_queue_release(struct weir_queue *queue, unsigned int count);

/*
 * Puts in @count events that were reserved. Cannot fail. Return: the futex on which threads sleep
 * that are to be woken now, or soon; the queue may be gone by then. NULL: none does.
 */
uint32_t *weir_queue_put(struct weir_queue *queue, const struct weir_event *events,
			 unsigned int count);
uint32_t *weir_queue_put_one(struct weir_queue *queue, const struct weir_event *event);

#endif
