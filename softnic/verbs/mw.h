/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory windows: a part of a region with a key and rights of its own, given and taken
 * back by work requests.
 */
#ifndef WEIR_SOFTNIC_VERBS_MW_H
#define WEIR_SOFTNIC_VERBS_MW_H

#include "softnic/qp/qp.h"

/**
 * mw_check_bind() - may this be posted?
 *
 * Return: 0 or an errno value.
 */
int mw_check_bind(const struct qp *qp, const struct ibv_send_wr *wr);

/** mw_fill_bind() - IBV_WR_BIND_MW, without pointers into the program's memory */
void mw_fill_bind(struct send_wqe *wqe, const struct ibv_send_wr *wr);

/**
 * mw_step() - execute IBV_WR_BIND_MW or IBV_WR_LOCAL_INV
 *
 * A key that was taken back is done with once the peer has finished what it began by it.
 *
 * Context: qp->lock held.
 * Return: enum ibv_wc_status, or RESP_BUSY: again a little later.
 */
int mw_step(struct qp *qp, const struct send_wqe *wqe);

/**
 * mw_invalidated() - a message of the peer came that invalidates a window
 * @key: what it says
 *
 * Context: any thread, any locks.
 */
void mw_invalidated(const struct qp *qp, uint32_t key);

/**
 * mw_end_region() - take a region's key back
 * @key: of the region
 *
 * Return: 0, or EBUSY if a window is bound to it.
 */
int mw_end_region(uint32_t key);

/* verbs that are reached through ibv_context.ops */
struct ibv_mw *mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type);
int mw_dealloc(struct ibv_mw *mw);
int mw_bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

#endif
