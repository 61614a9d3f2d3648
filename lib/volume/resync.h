/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fills new copies. Context of all: with the lock held, but for init and fini. */
#ifndef WEIR_LIB_VOLUME_RESYNC_H
#define WEIR_LIB_VOLUME_RESYNC_H

#include "lib/volume/volume.h"

/* Allocates the chunks. Return: false without memory. */
bool weir_volume_resync_init(struct weir_volume *v);
void weir_volume_resync_fini(struct weir_volume *v);

/* Pushes the next step of each copy, unless one is under way. There may be nothing to fill. */
void weir_volume_resync_start(struct weir_volume *v);

/* A step has ended. */
void weir_volume_resync_continue(struct weir_volume_resync *r);

/* A write has ended. */
void weir_volume_resync_write_ended(struct weir_volume *v);

/* Whether any step is under way. */
bool weir_volume_resync_is_busy(const struct weir_volume *v);

#endif
