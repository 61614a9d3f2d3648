/* SPDX-License-Identifier: GPL-2.0-only */
/* An io from the inside; see weir.h. */
#ifndef WEIR_KERNEL_IO_H
#define WEIR_KERNEL_IO_H

#include "kernel/weir/session.h"

/* Its parts go to the engine; what that refuses ends. With nic->lock held. */
void kweir_io_admit(struct kweir_io *io);

/* One of its parts is done. With nic->lock held. */
void kweir_io_part_done(struct kweir_part *part);

/* All of them are: to whoever waits for it. Without the lock. Context: process. */
void kweir_io_complete(struct kweir_io *io);

#endif
