/* SPDX-License-Identifier: GPL-2.0-only */
/* Trace events: weir_blk:weir_blk_submit and so on, in the units of the block layer's own events.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM weir_blk

#if !defined(WEIR_KERNEL_BLK_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define WEIR_KERNEL_BLK_TRACE_H

#include <linux/blk-mq.h>
#include <linux/tracepoint.h>

#include "kernel/blk/device.h"

#define weir_blk_trace_op(op)                                            \
	__print_symbolic(op,                                         \
		{ (__force u32)REQ_OP_READ, "read" },                \
		{ (__force u32)REQ_OP_WRITE, "write" },              \
		{ (__force u32)REQ_OP_DISCARD, "discard" },          \
		{ (__force u32)REQ_OP_WRITE_ZEROES, "write-zeroes" })

/* A request goes to the donors of @slots; 0: to no donor. */
TRACE_EVENT(weir_blk_submit,
	TP_PROTO(struct request *rq, u8 slots),
	TP_ARGS(rq, slots),
	TP_STRUCT__entry(
		__field(u32, device)
		__field(u32, op)
		__field(u64, sector)
		__field(u32, bytes)
		__field(u8, slots)
	),
	TP_fast_assign(
		__entry->device = ((struct weir_blk *)rq->q->queuedata)->number;
		__entry->op = (__force u32)req_op(rq);
		__entry->sector = blk_rq_pos(rq);
		__entry->bytes = blk_rq_bytes(rq);
		__entry->slots = slots;
	),
	TP_printk("weir%u %s sector %llu bytes %u replicas %#x", __entry->device,
		  weir_blk_trace_op(__entry->op), __entry->sector, __entry->bytes, __entry->slots)
);

/* All subios have ended; @failed: a bit for each replica that may have missed the request. */
TRACE_EVENT(weir_blk_complete,
	TP_PROTO(struct request *rq, u8 failed, int status),
	TP_ARGS(rq, failed, status),
	TP_STRUCT__entry(
		__field(u32, device)
		__field(u32, op)
		__field(u64, sector)
		__field(u32, bytes)
		__field(u8, failed)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->device = ((struct weir_blk *)rq->q->queuedata)->number;
		__entry->op = (__force u32)req_op(rq);
		__entry->sector = blk_rq_pos(rq);
		__entry->bytes = blk_rq_bytes(rq);
		__entry->failed = failed;
		__entry->status = status;
	),
	TP_printk("weir%u %s sector %llu bytes %u failed %#x status %d", __entry->device,
		  weir_blk_trace_op(__entry->op), __entry->sector, __entry->bytes, __entry->failed,
		  __entry->status)
);

/* A resync step has ended. */
TRACE_EVENT(weir_blk_copy,
	TP_PROTO(struct weir_blk_volume *volume, const struct weir_extents_copy_step *step,
		 int status),
	TP_ARGS(volume, step, status),
	TP_STRUCT__entry(
		__field(u32, device)
		__field(bool, is_read)
		__field(u32, extent)
		__field(u8, slot)
		__field(u32, page)
		__field(u32, pages)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->device = container_of(volume, struct weir_blk, volume)->number;
		__entry->is_read = step->what != WEIR_EXTENTS_COPY_WRITE;
		__entry->extent = step->extent;
		__entry->slot = step->slot;
		__entry->page = step->page;
		__entry->pages = step->pages;
		__entry->status = status;
	),
	TP_printk("weir%u %s piece %u replica %u page %u pages %u status %d", __entry->device,
		  __entry->is_read ? "read" : "write", __entry->extent, __entry->slot,
		  __entry->page, __entry->pages, __entry->status)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH kernel/blk
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
