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

#define SLOT_POOL_BYTES (WIRE_UNLOAD_SLOTS * sizeof(struct wire_unload_slot))

/* Return: zeroed, WIRE_UNLOAD_SLOTS of them, at a multiple of their size; NULL: out of memory. */
struct wire_unload_slot *slot_pool_take(void);

/* NULL does nothing. */
void slot_pool_give(struct wire_unload_slot *slots);

#endif
