/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "preload/unload/hooks/device.h"
#include "preload/unload/memory.h"
#include "preload/unload/unload_tx.h"
#include "preload/unload/hooks/eligible.h"
#include "preload/unload/hooks/tracked_qp.h"

#define SEND_FLAGS                                                                   \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE | \
	 IBV_SEND_IP_CSUM)

bool eligible_may_be_copied(const struct tracked_qp *w, const struct ibv_send_wr *wr)
{
	int i;

	if (wr->send_flags & IBV_SEND_INLINE)
		return true;
	for (i = 0; i < wr->num_sge; i++)
		if (!device_may_read(w->device, w->qp->pd, &wr->sg_list[i]))
			return false;
	return true;
}

/* The CPU reads inline data on either path. */
bool eligible_is_readable(const struct ibv_send_wr *wr)
{
	int i;

	if (wr->send_flags & IBV_SEND_INLINE)
		return true;
	for (i = 0; i < wr->num_sge; i++)
		if (wr->sg_list[i].length &&
		    !memory_is_readable(wr->sg_list[i].addr, wr->sg_list[i].length))
			return false;
	return true;
}

uint32_t eligible_bytes(const struct ibv_send_wr *wr)
{
	uint64_t length = 0;
	int i;

	if (wr->opcode != IBV_WR_RDMA_WRITE)
		return 0;
	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	return length <= WEIR_UNLOAD_WR_DATA_MAX ? (uint32_t)length : 0;
}

bool eligible_may_be_posted(const struct tracked_qp *w, const struct ibv_send_wr *wr,
			    uint32_t length)
{
	if (wr->send_flags & ~SEND_FLAGS || wr->num_sge > (int)w->cap.max_send_sge)
		return false;
	return !(wr->send_flags & IBV_SEND_INLINE) || length <= w->cap.max_inline_data;
}
