// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each tag has its ios and their scatterlists in it from the beginning, one for each replica: what
 * is written out needs no memory. No request crosses an extent: the block layer splits them there.
 */
#include <linux/blk-mq.h>

#include "kernel/blk/device.h"
#include "kernel/blk/queue.h"

#define DEPTH 128
#define QUEUES_MAX 8
#define REQUEST_BYTES_MAX SZ_1M

/* An io of a request, at one replica. */
struct leg {
	struct weir_io io;
	struct request *rq;
	u8 slot;
	struct scatterlist sgl[WEIR_IO_SEGMENTS];
};

/**
 * struct command - what a request is to us
 * @write: of a write
 * @tried: replicas that a read has failed at
 * @legs: under way
 * @failed: replicas of which it is not certain that they did it
 */
struct command {
	struct weir_volume_write write;
	u8 tried;
	atomic_t legs;
	atomic_t failed;
	struct leg leg[];
};

static struct weir_blk_volume *volume_of(const struct request *rq)
{
	struct weir_blk *blk = rq->q->queuedata;

	return &blk->volume;
}

static u64 offset_of(const struct request *rq)
{
	return (u64)blk_rq_pos(rq) << SECTOR_SHIFT;
}

static void done(struct weir_io *io)
{
	struct leg *leg = container_of(io, struct leg, io);
	struct command *command = blk_mq_rq_to_pdu(leg->rq);

	if (io->status)
		atomic_or(1 << leg->slot, &command->failed);
	if (atomic_dec_and_test(&command->legs))
		blk_mq_complete_request(leg->rq);
}

static int end_write(struct weir_blk_volume *volume, struct command *command)
{
	u8 failed = atomic_read(&command->failed);
	int rc;

	spin_lock_bh(&volume->lock);
	rc = weir_volume_write_end(&volume->core, &command->write, failed);
	spin_unlock_bh(&volume->lock);
	if (failed)
		weir_blk_volume_kick(volume);
	if (wq_has_sleeper(&volume->settled))
		wake_up(&volume->settled);
	return rc;
}

/* Return: 0; -EAGAIN: another replica is to be asked; or its errno. */
static int end_read(struct weir_blk_volume *volume, struct request *rq, struct command *command)
{
	u32 extent = weir_blk_volume_extent(volume, offset_of(rq));
	struct leg *leg = &command->leg[0];

	spin_lock_bh(&volume->lock);
	weir_volume_read_end(&volume->core, extent, leg->slot);
	spin_unlock_bh(&volume->lock);
	if (!leg->io.status)
		return 0;
	command->tried |= 1 << leg->slot;
	weir_blk_volume_kick(volume);
	if (volume->core.replicas == 1)
		return leg->io.status;
	atomic64_inc(&volume->failovers);
	return -EAGAIN;
}

static void complete_request(struct request *rq)
{
	struct weir_blk_volume *volume = volume_of(rq);
	struct command *command = blk_mq_rq_to_pdu(rq);
	int rc = req_op(rq) == REQ_OP_READ ? end_read(volume, rq, command) :
					     end_write(volume, command);

	if (rc == -EAGAIN)
		blk_mq_requeue_request(rq, true);
	else
		blk_mq_end_request(rq, errno_to_blk_status(rc));
}

static int prepare(struct weir_blk_volume *volume, struct request *rq, struct leg *leg, u8 slot,
		   enum weir_op op, unsigned int nents)
{
	u64 offset = offset_of(rq);
	u32 extent = weir_blk_volume_extent(volume, offset);

	leg->rq = rq;
	leg->slot = slot;
	leg->io.done = done;
	return weir_io_prepare(&leg->io, weir_blk_volume_region(volume, extent, slot),
			       weir_blk_volume_within(volume, offset), op, leg->sgl, nents);
}

static blk_status_t status_of(int rc)
{
	return rc == -ENOMEM ? BLK_STS_RESOURCE : errno_to_blk_status(rc);
}

static blk_status_t queue_read(struct weir_blk_volume *volume, struct request *rq,
			       struct command *command, unsigned int nents)
{
	u32 extent = weir_blk_volume_extent(volume, offset_of(rq));
	struct leg *leg = &command->leg[0];
	u8 slot;
	int rc;

	for (;;) {
		spin_lock_bh(&volume->lock);
		rc = weir_volume_read(&volume->core, extent, command->tried, &slot);
		spin_unlock_bh(&volume->lock);
		if (rc)
			return BLK_STS_IOERR;
		rc = prepare(volume, rq, leg, slot, WEIR_OP_READ, nents);
		if (!rc)
			break;
		spin_lock_bh(&volume->lock);
		weir_volume_read_end(&volume->core, extent, slot);
		spin_unlock_bh(&volume->lock);
		if (rc != -ENODEV)
			return status_of(rc);
		command->tried |= 1 << slot;
	}
	atomic_set(&command->legs, 1);
	atomic_set(&command->failed, 0);
	weir_io_submit(&leg->io);
	return BLK_STS_OK;
}

/* Each leg has a list of its own, since each may be mapped for a device of its own. */
static void copy_lists(struct command *command, u8 legs, unsigned int nents)
{
	const struct scatterlist *sgl = command->leg[0].sgl;
	u8 i;

	for (i = 1; i < legs; i++)
		memcpy(command->leg[i].sgl, sgl, nents * sizeof(*sgl));
}

/* Prepares those of @slots that there is a device for. Return: they, or -ENOMEM: none. */
static int prepare_legs(struct weir_blk_volume *volume, struct request *rq, struct command *command,
			u8 slots, unsigned int nents)
{
	u8 slot, ready = 0;

	for (slot = 0; slot < volume->core.replicas; slot++) {
		int rc;

		if (!(slots & 1 << slot))
			continue;
		rc = prepare(volume, rq, &command->leg[slot], slot, WEIR_OP_WRITE, nents);
		if (rc == -ENOMEM)
			break;
		if (!rc)
			ready |= 1 << slot;
	}
	if (slot == volume->core.replicas)
		return ready;
	for (slot = 0; slot < volume->core.replicas; slot++) {
		if (ready & 1 << slot)
			weir_io_forget(&command->leg[slot].io);
	}
	return -ENOMEM;
}

/* One order at all replicas, and for whoever fills one: decided and pushed under one lock. */
static int push_write(struct weir_blk_volume *volume, struct request *rq, struct command *command,
		      unsigned int nents)
{
	u64 offset = offset_of(rq);
	u32 extent = weir_blk_volume_extent(volume, offset);
	u8 slots = weir_volume_writable(&volume->core, extent), slot;
	int ready;

	if (!slots)
		return -EIO;
	ready = prepare_legs(volume, rq, command, slots, nents);
	if (ready < 0)
		return ready;
	weir_volume_write(&volume->core, &command->write, extent,
			  weir_blk_volume_within(volume, offset) >> PAGE_SHIFT,
			  blk_rq_bytes(rq) >> PAGE_SHIFT);
	atomic_set(&command->failed, slots & ~ready);
	/* One more, so that it does not end before all are pushed. */
	atomic_set(&command->legs, 1 + hweight8(ready));
	for (slot = 0; slot < volume->core.replicas; slot++) {
		if (ready & 1 << slot)
			weir_io_push(&command->leg[slot].io);
	}
	return ready;
}

static blk_status_t queue_write(struct weir_blk_volume *volume, struct request *rq,
				struct command *command, unsigned int nents)
{
	int ready;
	u8 slot;

	copy_lists(command, volume->core.replicas, nents);
	spin_lock_bh(&volume->lock);
	ready = push_write(volume, rq, command, nents);
	spin_unlock_bh(&volume->lock);
	if (ready < 0)
		return status_of(ready);
	for (slot = 0; slot < volume->core.replicas; slot++) {
		if (ready & 1 << slot)
			weir_session_serve(command->leg[slot].io.session);
	}
	if (atomic_dec_and_test(&command->legs))
		blk_mq_complete_request(rq);
	return BLK_STS_OK;
}

static blk_status_t queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *data)
{
	struct request *rq = data->rq;
	struct weir_blk_volume *volume = volume_of(rq);
	struct command *command = blk_mq_rq_to_pdu(rq);
	unsigned int nents;

	if (!(rq->rq_flags & RQF_DONTPREP)) {
		rq->rq_flags |= RQF_DONTPREP; /* a read comes again, to be tried elsewhere */
		command->tried = 0;
	}
	if (req_op(rq) != REQ_OP_READ && req_op(rq) != REQ_OP_WRITE)
		return BLK_STS_NOTSUPP;
	sg_init_table(command->leg[0].sgl, blk_rq_nr_phys_segments(rq));
	nents = blk_rq_map_sg(rq->q, rq, command->leg[0].sgl);
	blk_mq_start_request(rq);
	return req_op(rq) == REQ_OP_READ ? queue_read(volume, rq, command, nents) :
					   queue_write(volume, rq, command, nents);
}

/* Each io has a deadline, and ends by itself: only then is its memory the caller's again. */
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
	tags->cmd_size = sizeof(struct command) +
			 blk->volume.core.replicas * sizeof(struct leg);
	tags->flags = BLK_MQ_F_SHOULD_MERGE | BLK_MQ_F_NO_SCHED_BY_DEFAULT;
	/* Ours end by their deadline; the block layer's clock only looks after them. */
	tags->timeout = msecs_to_jiffies(2 * (blk->volume.options.timeout_ms ?: 10000));
	return blk_mq_alloc_tag_set(tags);
}

void weir_queue_limits(struct queue_limits *limits, const struct weir_blk *blk)
{
	memset(limits, 0, sizeof(*limits));
	limits->logical_block_size = PAGE_SIZE;
	limits->physical_block_size = PAGE_SIZE;
	limits->io_opt = REQUEST_BYTES_MAX;
	limits->max_hw_sectors = REQUEST_BYTES_MAX >> SECTOR_SHIFT;
	limits->max_segments = WEIR_IO_SEGMENTS;
	limits->max_segment_size = REQUEST_BYTES_MAX;
	if (blk->volume.core.nr_extents > 1)
		limits->chunk_sectors = min(1ull << blk->volume.shift >> SECTOR_SHIFT,
					    1ull << 31);
}
