/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory for slot buffers that peers write to: pieces of huge pages if possible, so that a NIC
 * needs few translations for all buffers. Each piece is registered separately, for one QP.
 *
 * Context of all: any.
 */
#ifndef WEIR_PRELOAD_UNLOAD_SLOT_POOL_H
#define WEIR_PRELOAD_UNLOAD_SLOT_POOL_H

#include "wire/unload.h"

#define SLOT_POOL_BYTES (WIRE_UNLOAD_SLOTS * sizeof(struct wire_unload_slot))

/* Return: WIRE_UNLOAD_SLOTS zeroed slots, aligned to their total size; NULL: out of memory. */
struct wire_unload_slot *slot_pool_take(void);

/* NULL does nothing. */
void slot_pool_give(struct wire_unload_slot *slots);

#endif
