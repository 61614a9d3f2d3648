/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Touches memory before it is on somebody's path: the first touch of a page costs the kernel, and
 * on a virtual machine its host, many times what a write costs. A thread of its own does it, at a
 * low priority; what it touches stays as it is.
 */
#ifndef WEIR_APPS_SERVE_PREFAULT_H
#define WEIR_APPS_SERVE_PREFAULT_H

#include <stddef.h>

struct prefault;

/* Return: 0; -ENOMEM; -EAGAIN no more threads. */
int prefault_start(struct prefault **touch);

/* @memory stays mapped until prefault_stop(). Forgotten if much else waits already. */
void prefault_queue(struct prefault *touch, void *memory, size_t length);

/* Returns soon, with what is left untouched; more may still be handed over, in vain. */
void prefault_stop(struct prefault *touch);
void prefault_free(struct prefault *touch); /* stopped, and nobody has it any more */

#endif
