/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer that has the queue pair's shared memory attacks another's receives.
 */
#ifndef WEIR_TESTS_SUPPORT_REDIRECT_H
#define WEIR_TESTS_SUPPORT_REDIRECT_H

#include "softnic/qp/qp.h"
#include "verbs_puppet.h"

/*
 * Make the posted receives at @offset of the buffer name a region, of any domain. Return: their
 * number.
 */
static inline unsigned int redirect(const struct endpoint *e, uint64_t offset,
				    const struct ibv_mr *to)
{
	struct qp *qp = to_qp(e->qp);
	size_t at, end = qp->segment.size - sizeof(struct ibv_sge);
	unsigned int redirected = 0;
	struct ibv_sge *sge;

	for (at = sizeof(struct shared_qp); at <= end; at += sizeof(uint64_t)) {
		sge = (struct ibv_sge *)((uint8_t *)qp->segment.qp + at);
		if (load_relaxed(&sge->addr) != (uintptr_t)e->buf + offset)
			continue;
		store_relaxed(&sge->addr, (uintptr_t)to->addr);
		store_relaxed(&sge->length, to->length);
		store_relaxed(&sge->lkey, to->lkey);
		redirected++;
	}
	store_relaxed(&qp->rq->ring.own->pd, to->pd->handle);
	return redirected;
}

#endif
