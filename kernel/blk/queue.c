// SPDX-License-Identifier: GPL-2.0-only
#include <linux/blk-mq.h>
#include <linux/sched/mm.h>

#include "kernel/blk/request.h"
#include "kernel/blk/target.h"
#include "kernel/blk/queue.h"
#include "kernel/blk/trace.h"
#include "kernel/compat.h"

#define DEPTH 128
#define QUEUES_MAX 8
#define REQUEUE_MS 20 /* of a write that a pool's donor has missed */
#define POLL_QUEUES 1 /* any poller takes completions for all */
#define ZEROED_BYTES_MAX SZ_256M

static void done(struct kweir_io *io)
{
	struct weir_blk_subio *subio = container_of(io, struct weir_blk_subio, io);
	struct weir_blk_request *command = blk_mq_rq_to_pdu(subio->rq);

	if (io->status)
		atomic_or(1 << subio->slot, &command->failed);
	if (atomic_dec_and_test(&command->subios))
		blk_mq_complete_request(subio->rq);
}

int weir_blk_subio_prepare(struct weir_blk_subio *subio, struct request *rq, u8 slot,
			   enum weir_op op, unsigned int nents)
{
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);
	struct weir_blk_volume *volume = weir_blk_volume_of(rq);
	struct kweir_region *region;

	subio->rq = rq;
	subio->slot = slot;
	subio->donor = volume->core.extent[command->extent].replica[slot].donor;
	subio->io.done = done;
	region = weir_blk_volume_region(volume, command->extent, slot);
	if (!region->session) /* a pool's donor, not connected now */
		return -ENODEV;
	return kweir_io_prepare(&subio->io, region, (u64)command->page << PAGE_SHIFT, op,
				subio->sgl, nents);
}

blk_status_t weir_blk_request_status(int rc)
{
	return rc == -ENOMEM ? BLK_STS_RESOURCE : errno_to_blk_status(rc);
}

/* The failure of a donor becomes known within a moment. */
static void requeue_soon(struct request *rq)
{
	struct request_queue *queue = rq->q;

	blk_mq_requeue_request(rq, false);
	blk_mq_delay_kick_requeue_list(queue, REQUEUE_MS);
}

static void finish_request(struct request *rq)
{
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);
	u8 failed = atomic_read(&command->failed);
	int rc = req_op(rq) == REQ_OP_READ ? weir_blk_read_end(rq) : weir_blk_write_end(rq);

	trace_weir_blk_complete(rq, failed, rc);
	if (rc == -EINPROGRESS)
		requeue_soon(rq);
	else if (rc == -EAGAIN)
		blk_mq_requeue_request(rq, true);
	else
		blk_mq_end_request(rq, errno_to_blk_status(rc));
}

/* Decrypts a read that has ended, or encrypts a write that was queued. */
static void crypt_request(struct work_struct *work)
{
	struct request *rq = container_of(work, struct weir_blk_seal, work)->rq;
	unsigned int flags = memalloc_noio_save();

	if (req_op(rq) == REQ_OP_READ)
		finish_request(rq);
	else
		weir_blk_write_encrypt(rq);
	memalloc_noio_restore(flags);
}

static void complete_request(struct request *rq)
{
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);

	if (command->seal && req_op(rq) == REQ_OP_READ)
		weir_blk_seal_queue(command->seal);
	else
		finish_request(rq);
}

static int init_request(struct blk_mq_tag_set *tags, struct request *rq, unsigned int hctx,
			unsigned int node)
{
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);
	const struct weir_blk *blk = tags->driver_data;
	int rc;

	if (!blk->volume.cipher.aead)
		return 0;
	rc = weir_blk_seal_alloc(&blk->volume.cipher, WEIR_BLK_SEAL_PIECES, &command->seal);
	if (rc)
		return rc;
	command->seal->rq = rq;
	INIT_WORK(&command->seal->work, crypt_request);
	return 0;
}

static void exit_request(struct blk_mq_tag_set *tags, struct request *rq, unsigned int hctx)
{
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);

	if (!command->seal)
		return;
	/* It may still run after the request has ended. */
	cancel_work_sync(&command->seal->work);
	weir_blk_seal_free(command->seal);
	command->seal = NULL;
}

/*
 * A request may come twice: a read for another replica, or a request that could not be mapped for
 * the device.
 */
static void begin_request(struct request *rq)
{
	struct weir_blk_volume *volume = weir_blk_volume_of(rq);
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);
	u64 offset = (u64)blk_rq_pos(rq) << SECTOR_SHIFT;

	if (rq->rq_flags & RQF_DONTPREP)
		return;
	rq->rq_flags |= RQF_DONTPREP;
	command->tried = command->wrong = 0;
	command->give_up = jiffies + msecs_to_jiffies(volume->options.timeout_ms);
	weir_blk_volume_find(volume, offset, &command->extent, &command->page);
	command->pages = blk_rq_bytes(rq) >> PAGE_SHIFT;
}

/* Fills in the first subio's list. Returns its length. */
static unsigned int map(struct request *rq)
{
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);

	sg_init_table(command->subio[0].sgl, blk_rq_nr_phys_segments(rq));
	return blk_rq_map_sg(rq->q, rq, command->subio[0].sgl);
}

static blk_status_t queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *data)
{
	struct request *rq = data->rq;

	begin_request(rq);
	blk_mq_start_request(rq);
	switch (req_op(rq)) {
	case REQ_OP_READ:
		return weir_blk_read_queue(rq, map(rq));
	case REQ_OP_WRITE:
		return weir_blk_write_queue(rq, map(rq));
	case REQ_OP_DISCARD:
	case REQ_OP_WRITE_ZEROES:
		return weir_blk_write_zeroes(rq);
	default:
		return BLK_STS_NOTSUPP;
	}
}

/* Each io has a deadline and ends by itself; only then does its memory belong to the caller again.
 */
static enum blk_eh_timer_return timed_out(struct request *rq)
{
	return BLK_EH_RESET_TIMER;
}

static int poll(struct blk_mq_hw_ctx *hctx, struct io_comp_batch *batch)
{
	struct weir_blk *blk = hctx->queue->queuedata;

	return weir_blk_targets_poll(&blk->volume);
}

static void map_queues(struct blk_mq_tag_set *tags)
{
	struct blk_mq_queue_map *map = &tags->map[HCTX_TYPE_DEFAULT];

	map->nr_queues = tags->nr_hw_queues - POLL_QUEUES;
	blk_mq_map_queues(map);
	tags->map[HCTX_TYPE_POLL].queue_offset = map->nr_queues;
	map = &tags->map[HCTX_TYPE_POLL];
	map->nr_queues = POLL_QUEUES;
	blk_mq_map_queues(map);
}

static const struct blk_mq_ops ops = {
	.queue_rq = queue_rq,
	.poll = poll,
	.map_queues = map_queues,
	.complete = complete_request,
	.init_request = init_request,
	.exit_request = exit_request,
	.timeout = timed_out,
};

/* An encrypted device has one set of tags for all queues: each tag has 128 KiB for ciphertext. */
int weir_blk_queue_tags(struct blk_mq_tag_set *tags, struct weir_blk *blk)
{
	tags->ops = &ops;
	tags->nr_hw_queues = min_t(unsigned int, num_online_cpus(), QUEUES_MAX) + POLL_QUEUES;
	tags->nr_maps = HCTX_MAX_TYPES;
	tags->queue_depth = DEPTH;
	tags->numa_node = NUMA_NO_NODE;
	tags->cmd_size = sizeof(struct weir_blk_request) +
			 blk->volume.core.slots * sizeof(struct weir_blk_subio);
	tags->flags = BLK_MQ_F_SHOULD_MERGE | BLK_MQ_F_NO_SCHED_BY_DEFAULT;
	if (blk->volume.cipher.aead)
		tags->flags |= BLK_MQ_F_TAG_HCTX_SHARED;
	tags->driver_data = blk;
	/* Ios end by their deadline; the block layer's timer is only a safety net. */
	tags->timeout = msecs_to_jiffies(2 * blk->volume.options.timeout_ms);
	return blk_mq_alloc_tag_set(tags);
}

void weir_blk_queue_limits(struct queue_limits *limits, const struct weir_blk *blk)
{
	unsigned int bytes_max = blk->volume.cipher.aead ? WEIR_BLK_SEAL_BYTES_MAX :
							   WEIR_BLK_REQUEST_BYTES_MAX;

	memset(limits, 0, sizeof(*limits));
	limits->logical_block_size = PAGE_SIZE;
	limits->physical_block_size = PAGE_SIZE;
	limits->io_opt = bytes_max;
	limits->max_hw_sectors = bytes_max >> SECTOR_SHIFT;
	limits->max_segments = KWEIR_IO_SEGMENTS;
	limits->max_segment_size = bytes_max;
	weir_limits_stable(limits);
	if (blk->volume.pool) { /* memory stays with the pool, and zeroes are written */
		limits->chunk_sectors = blk->volume.stripe.unit << (PAGE_SHIFT - SECTOR_SHIFT);
		return;
	}
	if (blk->volume.name[0])
		return; /* one piece: the donors know no command for zeroes */
	limits->chunk_sectors = min(1ull << blk->volume.shift >> SECTOR_SHIFT, 1ull << 31);
	limits->discard_granularity = PAGE_SIZE;
	limits->max_hw_discard_sectors = ZEROED_BYTES_MAX >> SECTOR_SHIFT;
	limits->max_write_zeroes_sectors = ZEROED_BYTES_MAX >> SECTOR_SHIFT;
}
