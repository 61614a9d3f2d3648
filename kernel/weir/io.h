/* SPDX-License-Identifier: GPL-2.0-only */
/* Internals of an io; see weir.h. */
#ifndef WEIR_KERNEL_WEIR_IO_H
#define WEIR_KERNEL_WEIR_IO_H

#include "kernel/weir/session.h"

/* Passes the parts to the engine; parts that the engine refuses end. With nic->lock held. */
void kweir_io_admit(struct kweir_io *io);

/* One part has completed. With nic->lock held. */
void kweir_io_part_done(struct kweir_part *part);

/* All parts have completed: calls io->done. Without nic->lock. Context: process. */
void kweir_io_complete(struct kweir_io *io);

#endif
