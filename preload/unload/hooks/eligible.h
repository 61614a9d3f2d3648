/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which of the program's writes may be unloaded. Context of all: any. */
#ifndef WEIR_PRELOAD_UNLOAD_HOOKS_ELIGIBLE_H
#define WEIR_PRELOAD_UNLOAD_HOOKS_ELIGIBLE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct tracked_qp;

/* The length of a write that fits a slot; 0: not such a write. */
uint32_t eligible_bytes(const struct ibv_send_wr *wr);

/* Would the device accept the WR? The device itself must refuse bad WRs. @length: by
 * eligible_bytes() */
bool eligible_may_be_posted(const struct tracked_qp *w, const struct ibv_send_wr *wr,
			    uint32_t length);

/* May the QP read the source memory of @wr, where given by address? */
bool eligible_may_be_copied(const struct tracked_qp *w, const struct ibv_send_wr *wr);

/* May the CPU read the source memory? Costs a system call for each piece that is not inline. */
bool eligible_is_readable(const struct ibv_send_wr *wr);

#endif
