/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_PRELOAD_UNLOAD_HOOKS_INTERPOSE_H
#define WEIR_PRELOAD_UNLOAD_HOOKS_INTERPOSE_H

#include <infiniband/verbs.h>

/* Registers weir's own memory, which the program does not show to its peers. */
struct ibv_mr *interpose_reg_own_mr(struct ibv_pd *pd, void *addr, size_t length, int access);

#endif
