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

/* Borrows missing memory. Return: 0; -ENOSPC, with the reason in @error if a donor gave one. */
int weir_volume_memory_fetch(struct weir_volume *v, struct weir_error *error);

/*
 * Returns unused memory: that of lost donors and, with @tell, that of donors that answer. Return:
 * true if a donor has room again.
 */
bool weir_volume_memory_return(struct weir_volume *v, bool tell);

/* Asks the silent donor whose turn it is. */
void weir_volume_memory_retry_silent(struct weir_volume *v);

#endif
