/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which of what a program posts could be unloaded. Context of all: any. */
#ifndef WEIR_PRELOAD_UNLOAD_HOOKS_ELIGIBLE_H
#define WEIR_PRELOAD_UNLOAD_HOOKS_ELIGIBLE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct tracked_qp;

/* The length of a write that a slot has room for; 0: it is none. */
uint32_t eligible_bytes(const struct ibv_send_wr *wr);

/* What the device would not take is for it to refuse. @length: by eligible_bytes() */
bool eligible_may_be_posted(const struct tracked_qp *w, const struct ibv_send_wr *wr,
			    uint32_t length);

/* Whether the QP may read it, where it is read by address. */
bool eligible_may_be_copied(const struct tracked_qp *w, const struct ibv_send_wr *wr);

/* Whether the CPU may: it takes a system call for each piece that is not inline. */
bool eligible_is_readable(const struct ibv_send_wr *wr);

#endif
