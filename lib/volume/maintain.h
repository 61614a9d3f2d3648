/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The two threads of a volume, for weir_thread_create(); the argument is the volume. */
#ifndef WEIR_LIB_VOLUME_MAINTAIN_H
#define WEIR_LIB_VOLUME_MAINTAIN_H

/* Detects lost donors, returns and borrows memory, each second and after a kick. */
void *weir_volume_maintain(void *arg);

/* Fills new copies, when the maintaining thread or a write that ended wakes it. */
void *weir_volume_resync(void *arg);

#endif
