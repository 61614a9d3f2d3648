/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The volume's memory at donors. Context of all: the opening or the maintaining thread; sleep. */
#ifndef WEIR_LIB_VOLUME_MEMORY_H
#define WEIR_LIB_VOLUME_MEMORY_H

#include "lib/volume/volume.h"

/* Allocates the map of @v->bytes over @v->nr_targets donors. Return: 0; -ENOMEM; -EINVAL. */
int weir_volume_memory_init(struct weir_volume *v);

/* The same, with @v->stripe given. */
int weir_volume_memory_lay_out(struct weir_volume *v);
void weir_volume_memory_fini(struct weir_volume *v);

/* Asks a donor how much memory it would lend. Return: 0, or an errno. */
int weir_volume_memory_query_room(struct weir_volume *v, uint8_t donor);

/*
 * Borrows and returns memory as core/volume/borrow.h decides, in the phases from @first to @last.
 * If memory is missing afterwards, @v->borrow.is_short, and @error has the reason if a donor gave
 * one; @error may be NULL.
 */
void weir_volume_memory_round(struct weir_volume *v, enum weir_borrow_phase first,
			      enum weir_borrow_phase last, struct weir_error *error);

#endif
