/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory for the buffers that peers unload to: pieces of huge pages when there are any, so that a
 * NIC needs few translations for all of them. Each is registered by itself: it is one QP's alone.
 *
 * Context of all: any.
 */
#ifndef WEIR_PRELOAD_UNLOAD_SLOT_POOL_H
#define WEIR_PRELOAD_UNLOAD_SLOT_POOL_H

#include "wire/unload.h"

#define SLOTS_BYTES (WIRE_SLOTS * sizeof(struct wire_slot))

/* Return: zeroed, WIRE_SLOTS of them, at a multiple of their size; NULL: out of memory. */
struct wire_slot *slots_take(void);

/* NULL does nothing. */
void slots_give(struct wire_slot *slots);

#endif
