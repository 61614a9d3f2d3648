/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Faults in memory before its first use. The first touch of a page costs the kernel (and the host
 * of a virtual machine) many times as much as a write. A thread of low priority does this work and
 * leaves the contents unchanged.
 */
#ifndef WEIR_APPS_SERVE_PREFAULT_H
#define WEIR_APPS_SERVE_PREFAULT_H

#include <stddef.h>

struct prefault;

/* Return: 0; -ENOMEM; -EAGAIN no thread could be started. */
int prefault_start(struct prefault **prefault);

/* Queues memory, which must stay mapped until prefault_stop(). Dropped if the queue is full. */
void prefault_queue(struct prefault *prefault, void *memory, size_t length);

/* Ends the thread soon, with the rest untouched. Later calls of prefault_queue() have no effect. */
void prefault_stop(struct prefault *prefault);
void prefault_free(struct prefault *prefault); /* after prefault_stop(), when no thread uses it */

#endif
