/* SPDX-License-Identifier: GPL-2.0-only */
/* An io from the inside; see weir.h. */
#ifndef WEIR_KERNEL_IO_H
#define WEIR_KERNEL_IO_H

#include "kernel/weir/session.h"

/* Its parts go to the engine; what that refuses ends. With nic->lock held. */
void weir_io_admit(struct weir_io *io);

/* One of its parts is done. With nic->lock held. */
void weir_io_part_done(struct weir_part *part);

/* All of them are: to whoever waits for it. Without the lock. Context: process. */
void weir_io_tell(struct weir_io *io);

#endif
