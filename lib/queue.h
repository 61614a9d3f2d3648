/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues from the inside. What the engine's core calls a queue is another thing,
 * so this header, and queue.c, see nothing of the core.
 */
#ifndef WEIR_LIB_QUEUE_H
#define WEIR_LIB_QUEUE_H

#include <stdint.h>

struct weir_event;
struct weir_queue;

/* Makes sure that @count more events will fit. Return: 0; -ENOMEM. Context: any thread. */
int weir_queue_reserve(struct weir_queue *queue, unsigned int count);

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
