/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Null regions (ibv_alloc_null_mr): reads find zeros, and writes are discarded. Local keys only.
 */
#ifndef WEIR_SOFTNIC_REGION_NULL_MR_H
#define WEIR_SOFTNIC_REGION_NULL_MR_H

#include "softnic/verbs/mr.h"

/* ibv_alloc_null_mr(), called through the context. */
struct ibv_mr *null_mr_alloc(struct ibv_pd *pd);

/**
 * null_mr_place() - the memory behind a null region, wherever in the region
 * @base: of the owner's memory for null regions
 * @access: IBV_ACCESS_LOCAL_WRITE: bytes to discard; else zeros
 */
struct mr_place null_mr_place(uint64_t base, uint32_t access);

#endif
