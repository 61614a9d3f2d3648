/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory windows: a part of a region with its own key and rights, bound and invalidated by WRs.
 */
#ifndef WEIR_SOFTNIC_VERBS_MW_H
#define WEIR_SOFTNIC_VERBS_MW_H

#include "softnic/qp/qp.h"

/**
 * mw_check_bind() - may this IBV_WR_BIND_MW be posted?
 *
 * Return: 0 or an errno value.
 */
int mw_check_bind(const struct qp *qp, const struct ibv_send_wr *wr);

/** mw_fill_bind() - copy IBV_WR_BIND_MW to a WQE, without pointers to the program's memory */
void mw_fill_bind(struct send_wqe *wqe, const struct ibv_send_wr *wr);

/**
 * mw_step() - execute IBV_WR_BIND_MW or IBV_WR_LOCAL_INV
 *
 * An invalidation is done when the peer has finished its copies that use the key.
 *
 * Context: qp->lock held.
 * Return: enum ibv_wc_status, or RESP_BUSY: retry a little later.
 */
int mw_step(struct qp *qp, const struct send_wqe *wqe);

/**
 * mw_invalidated() - a received message invalidates a window
 * @key: the key from the message
 *
 * Context: Any thread, any locks.
 */
void mw_invalidated(const struct qp *qp, uint32_t key);

/**
 * mw_end_region() - revoke a region's key
 * @key: key of the region
 *
 * Return: 0, or EBUSY if a window is bound to it.
 */
int mw_end_region(uint32_t key);

/* Verbs called through ibv_context.ops. */
struct ibv_mw *mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type);
int mw_dealloc(struct ibv_mw *mw);
int mw_bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

#endif
