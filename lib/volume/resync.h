/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fills new copies. Context of all: with the lock held. */
#ifndef WEIR_LIB_VOLUME_RESYNC_H
#define WEIR_LIB_VOLUME_RESYNC_H

#include "lib/volume/volume.h"

/* Pushes the next step, unless one is under way. There may be nothing to fill. */
void weir_volume_resync_start(struct weir_volume *v);

/* A step has ended. */
void weir_volume_resync_continue(struct weir_volume *v);

/* A write has ended. */
static inline void weir_volume_resync_write_ended(struct weir_volume *v)
{
	if (v->resync.waits)
		weir_volume_resync_start(v);
}

#endif
