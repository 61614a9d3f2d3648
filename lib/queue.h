/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues from the inside. What the engine's core calls a queue is another thing,
 * so this header, and queue.c, see nothing of the core.
 */
#ifndef WEIR_LIB_QUEUE_H
#define WEIR_LIB_QUEUE_H

struct weir_queue;

/* Makes sure that one more event will fit. Return: 0; -ENOMEM. Context: any thread. */
int weir_queue_reserve(struct weir_queue *queue);

/* Gives that up. */
void weir_queue_unreserve(struct weir_queue *queue);

/* Puts in an event that was reserved. Cannot fail. */
void weir_queue_put(struct weir_queue *queue, void *arg, int status);

#endif
