// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each tag has its io and its scatterlist in it from the beginning: what is written out needs no
 * memory. Zeroes are written from one buffer, again and again.
 */
#include <linux/blk-mq.h>

#include "kernel/blk/device.h"
#include "kernel/blk/queue.h"

#define DEPTH 128
#define QUEUES_MAX 8
#define REQUEST_BYTES_MAX SZ_1M
#define ZEROES_ORDER 4
#define ZEROES_BYTES (PAGE_SIZE << ZEROES_ORDER)

static struct page *zeroes;

struct command {
	struct weir_io io;
	struct scatterlist sgl[WEIR_IO_SEGMENTS];
};

static void done(struct weir_io *io)
{
	blk_mq_complete_request(blk_mq_rq_from_pdu(container_of(io, struct command, io)));
}

static void complete_request(struct request *rq)
{
	struct command *command = blk_mq_rq_to_pdu(rq);

	blk_mq_end_request(rq, errno_to_blk_status(command->io.status));
}

/* Returns entries. */
static unsigned int list_zeroes(struct command *command, u64 bytes)
{
	unsigned int nents = 0;

	sg_init_table(command->sgl, DIV_ROUND_UP_ULL(bytes, ZEROES_BYTES));
	for (; bytes; nents++) {
		unsigned int length = min_t(u64, bytes, ZEROES_BYTES);

		sg_set_page(&command->sgl[nents], zeroes, length, 0);
		bytes -= length;
	}
	return nents;
}

static blk_status_t prepare(struct weir_blk *blk, struct request *rq)
{
	struct command *command = blk_mq_rq_to_pdu(rq);
	enum weir_op op = WEIR_OP_WRITE;
	unsigned int nents;

	switch (req_op(rq)) {
	case REQ_OP_READ:
		op = WEIR_OP_READ;
		fallthrough;
	case REQ_OP_WRITE:
		sg_init_table(command->sgl, blk_rq_nr_phys_segments(rq));
		nents = blk_rq_map_sg(rq->q, rq, command->sgl);
		break;
	case REQ_OP_WRITE_ZEROES:
		nents = list_zeroes(command, blk_rq_bytes(rq));
		break;
	default:
		return BLK_STS_NOTSUPP;
	}
	command->io.done = done;
	switch (weir_io_prepare(&command->io, &blk->region, blk_rq_pos(rq) << SECTOR_SHIFT, op,
				command->sgl, nents)) {
	case 0:
		return BLK_STS_OK;
	case -ENOMEM:
		return BLK_STS_RESOURCE;
	default:
		return BLK_STS_IOERR;
	}
}

static blk_status_t queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *data)
{
	struct weir_blk *blk = hctx->queue->queuedata;
	struct request *rq = data->rq;
	struct command *command = blk_mq_rq_to_pdu(rq);
	blk_status_t status = prepare(blk, rq);

	if (status)
		return status;
	blk_mq_start_request(rq);
	weir_io_submit(&command->io);
	return BLK_STS_OK;
}

/* The io has a deadline, and ends by itself: only then is its memory the caller's again. */
static enum blk_eh_timer_return timed_out(struct request *rq)
{
	return BLK_EH_RESET_TIMER;
}

static const struct blk_mq_ops ops = {
	.queue_rq = queue_rq,
	.complete = complete_request,
	.timeout = timed_out,
};

int weir_queue_tags(struct blk_mq_tag_set *tags, const struct weir_blk *blk)
{
	tags->ops = &ops;
	tags->nr_hw_queues = min_t(unsigned int, num_online_cpus(), QUEUES_MAX);
	tags->queue_depth = DEPTH;
	tags->numa_node = NUMA_NO_NODE;
	tags->cmd_size = sizeof(struct command);
	tags->flags = BLK_MQ_F_SHOULD_MERGE | BLK_MQ_F_NO_SCHED_BY_DEFAULT;
	/* Ours end by their deadline; the block layer's clock only looks after them. */
	tags->timeout = msecs_to_jiffies(2 * blk->options.timeout_ms);
	return blk_mq_alloc_tag_set(tags);
}

void weir_queue_limits(struct queue_limits *limits)
{
	memset(limits, 0, sizeof(*limits));
	limits->logical_block_size = PAGE_SIZE;
	limits->physical_block_size = PAGE_SIZE;
	limits->io_opt = REQUEST_BYTES_MAX;
	limits->max_hw_sectors = REQUEST_BYTES_MAX >> SECTOR_SHIFT;
	limits->max_segments = WEIR_IO_SEGMENTS;
	limits->max_segment_size = REQUEST_BYTES_MAX;
	limits->max_write_zeroes_sectors = (WEIR_IO_SEGMENTS * ZEROES_BYTES) >> SECTOR_SHIFT;
}

int weir_queue_init(void)
{
	zeroes = alloc_pages(GFP_KERNEL | __GFP_ZERO, ZEROES_ORDER);
	return zeroes ? 0 : -ENOMEM;
}

void weir_queue_exit(void)
{
	__free_pages(zeroes, ZEROES_ORDER);
}
