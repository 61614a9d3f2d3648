// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Checks when a completion is polled: it frees its WR, and earlier ones of its send queue.
 */
#include <inttypes.h>

#include "softnic/qp/sq.h"
#include "buffer.h"
#include "explain.h"
#include "finding.h"
#include "strict.h"
#include "veil.h"

static void check_source(const struct strict_wr *wr)
{
	uint64_t sum = 0;
	uint32_t i;

	if (!wr->has_sum)
		return;
	for (i = 0; i < wr->num_sge; i++)
		if (!wr->sources[i] && !buffer_sum(wr->sges[i].addr, wr->sges[i].length, &sum))
			return;
	if (sum != wr->sum)
		strict_find(STRICT_SEND_BUFFER,
			    "ibv_post_send(), QP 0x%x, wr_id %" PRIu64 ": the buffer at 0x%" PRIx64
			    ", %" PRIu64 " bytes, was changed before the completion was polled",
			    wr_number(wr), wr->wr_id, wr->sges[0].addr, wr->room);
}

/* Earlier WRs without completions succeeded. */
static void free_earlier(const struct strict_wr *wr)
{
	struct strict_wr *at, *next;

	for (at = wr_first(); at && at != wr; at = next) {
		next = at->next;
		if (at->queue != wr->queue)
			continue;
		check_source(at);
		veil_deliver(at, at->room, true);
		wr_free(at);
	}
}

static uint64_t arrived(const struct strict_wr *wr, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		return 0;
	if (!wr->is_receive)
		return wr->room;
	return wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? 0 : wc->byte_len;
}

/* As on a NIC, which would have found no region when the data came. */
static bool refuse(const struct strict_wr *wr, struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		return false;
	strict_find(STRICT_REGION,
		    "ibv_poll_cq(), QP 0x%x, wr_id %" PRIu64
		    ": its buffer was deregistered or unmapped before the completion",
		    wc->qp_num, wr->wr_id);
	wc->status = IBV_WC_LOC_PROT_ERR;
	return true;
}

static void fail(struct qp *qp)
{
	pthread_mutex_lock(&qp->lock);
	qp_error(qp);
	pthread_mutex_unlock(&qp->lock);
}

static void settle(struct ibv_wc *wc)
{
	struct strict_wr *wr, copy;
	bool is_refused = false;

	wr_lock();
	wr = wr_find(wc->wr_id);
	if (!wr) {
		wr_unlock();
		return;
	}
	wc->wr_id = wr->wr_id;
	if (!wr->is_receive)
		free_earlier(wr);
	if (wc->status == IBV_WC_SUCCESS && !wr->is_receive)
		check_source(wr);
	if (!veil_deliver(wr, arrived(wr, wc), wc->status == IBV_WC_SUCCESS))
		is_refused = refuse(wr, wc);
	copy = *wr;
	wr_free(wr);
	wr_unlock();
	if (is_refused) {
		if (copy.qp)
			fail(copy.qp);
	} else if (wc->status != IBV_WC_SUCCESS) {
		explain_error(&copy, wc->status);
	}
}

/* Under cq->lock, so that completions of one queue are settled in order. */
static int take(struct cq *cq, int room, struct ibv_wc *wc)
{
	int n = cq_take(cq, room, wc), i;

	for (i = 0; i < n; i++)
		settle(&wc[i]);
	return n;
}

void strict_wrap_cq(struct cq *cq)
{
	if (strict_level)
		cq->take = take;
}
