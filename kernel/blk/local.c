// SPDX-License-Identifier: GPL-2.0-only
/*
 * One work item does everything. First the work serves reads that wait for the disk; then the work
 * copies missing chunks until the disk is complete. So a read decided earlier never finds later
 * content. All memory is allocated at open.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "kernel/blk/request.h"
#include "kernel/blk/resync.h"
#include "kernel/blk/local.h"
#include "kernel/blk/trace.h"
#include "kernel/compat.h"

#define COPY_MS 100 /* collects writes before a copy */

/**
 * struct weir_blk_local - the disk of a volume
 * @disk_mutex: guards @bio and @vecs; held during disk I/O
 * @resync: the chunk being copied
 * @lock: guards @waiting
 * @waiting: reads for the disk
 */
struct weir_blk_local {
	struct weir_blk_volume *volume;
	struct weir_bdev disk;
	struct mutex disk_mutex;
	struct bio bio;
	struct bio_vec vecs[KWEIR_IO_SEGMENTS];
	struct weir_blk_resync *resync;
	struct workqueue_struct *wq;
	struct delayed_work work;
	spinlock_t lock;
	struct list_head waiting;
	atomic64_t bytes_written, bytes_read;
};

static int disk_io(struct weir_blk_local *local, blk_opf_t op, u64 offset, struct scatterlist *sgl,
		   unsigned int nents)
{
	struct scatterlist *sg;
	u64 bytes = 0;
	unsigned int i;
	int rc;

	mutex_lock(&local->disk_mutex);
	bio_init(&local->bio, local->disk.bdev, local->vecs, ARRAY_SIZE(local->vecs), op);
	local->bio.bi_iter.bi_sector = offset >> SECTOR_SHIFT;
	for_each_sg(sgl, sg, nents, i)
	{
		__bio_add_page(&local->bio, sg_page(sg), sg->length, sg->offset);
		bytes += sg->length;
	}
	rc = submit_bio_wait(&local->bio);
	bio_uninit(&local->bio);
	mutex_unlock(&local->disk_mutex);
	if (!rc)
		atomic64_add(bytes, op == REQ_OP_READ ? &local->bytes_read : &local->bytes_written);
	return rc;
}

int weir_blk_local_read(struct weir_blk_local *local, u64 offset, struct scatterlist *sgl,
			unsigned int nents)
{
	return disk_io(local, REQ_OP_READ, offset, sgl, nents);
}

/* Decides again whether the disk has current data: later changes go to the donors first. */
static int read_command(struct weir_blk_local *local, struct weir_blk_request *command)
{
	struct weir_blk_volume *volume = local->volume;
	bool has_it;
	int rc;

	spin_lock_bh(&volume->lock);
	has_it = weir_extents_local_has(&volume->core, command->extent, command->page,
					command->pages);
	weir_blk_volume_expect(volume, command->extent, command->page, command->pages,
			       command->sums, command->seal);
	spin_unlock_bh(&volume->lock);
	if (!has_it)
		return -EIO;
	rc = weir_blk_local_read(local,
				 weir_blk_volume_offset(volume, command->extent, command->page),
				 command->subio[0].sgl, command->nents);
	if (!rc)
		rc = weir_blk_read_check(volume, command);
	if (rc != -EBADMSG)
		return rc;
	atomic64_inc(&volume->mismatches);
	pr_warn_ratelimited("weir: the local disk returned other data than was written\n");
	return -EIO;
}

static struct weir_blk_request *take_waiting(struct weir_blk_local *local)
{
	struct weir_blk_request *command;

	spin_lock_bh(&local->lock);
	command = list_first_entry_or_null(&local->waiting, struct weir_blk_request, waiting);
	if (command)
		list_del(&command->waiting);
	spin_unlock_bh(&local->lock);
	return command;
}

static void read_all(struct weir_blk_local *local)
{
	struct weir_blk_request *command;

	while ((command = take_waiting(local))) {
		struct request *rq = blk_mq_rq_from_pdu(command);
		int rc = read_command(local, command);

		trace_weir_blk_complete(rq, 0, rc);
		blk_mq_end_request(rq, errno_to_blk_status(rc));
	}
}

/* Return: true if another chunk may be ready to copy. */
static bool copy_chunk(struct weir_blk_local *local)
{
	struct weir_blk_volume *volume = local->volume;
	struct weir_blk_resync *resync = local->resync;
	struct weir_extents_copy_step step;
	int rc = 0;

	spin_lock_bh(&volume->lock);
	weir_extents_local_next(&volume->core, &step);
	if (step.what == WEIR_EXTENTS_COPY_READ)
		rc = weir_blk_resync_start_step(volume, resync, &step);
	spin_unlock_bh(&volume->lock);
	if (step.what != WEIR_EXTENTS_COPY_READ)
		return step.what == WEIR_EXTENTS_COPY_WAIT;
	if (!rc)
		rc = weir_blk_resync_wait_step(resync);
	if (!rc && !weir_blk_resync_is_right(volume, resync, &step))
		rc = -EIO; /* a reader of the chunk handles the error */
	spin_lock_bh(&volume->lock);
	weir_extents_read_end(&volume->core, step.extent, step.slot);
	spin_unlock_bh(&volume->lock);
	if (!rc)
		rc = disk_io(local, REQ_OP_WRITE,
			     weir_blk_volume_offset(volume, step.extent, step.page), resync->sgl,
			     step.pages);
	spin_lock_bh(&volume->lock);
	weir_extents_local_done(&volume->core, !rc);
	spin_unlock_bh(&volume->lock);
	return true;
}

static void work(struct work_struct *work)
{
	struct weir_blk_local *local =
		container_of(to_delayed_work(work), struct weir_blk_local, work);
	unsigned int flags = memalloc_noio_save();

	do {
		read_all(local);
		cond_resched();
	} while (!READ_ONCE(local->volume->closing) && copy_chunk(local));
	memalloc_noio_restore(flags);
}

static int open_disk(struct weir_blk_local *local, const char *path, u64 bytes,
		     struct kweir_error *error)
{
	int rc = weir_bdev_open(&local->disk, path, local);

	if (rc) {
		local->disk.bdev = NULL;
		return kweir_fail(error, rc, "%s is no block device that can be used (%d)", path,
				  rc);
	}
	if (bdev_logical_block_size(local->disk.bdev) > PAGE_SIZE)
		return kweir_fail(error, -EINVAL, "%s has blocks larger than %lu", path, PAGE_SIZE);
	if (weir_blk_local_is_too_small(local, bytes))
		return kweir_fail(error, -ENOSPC, "%s is smaller than %llu bytes", path, bytes);
	return 0;
}

int weir_blk_local_open(struct weir_blk_volume *volume, const char *path, struct kweir_error *error)
{
	struct weir_blk_local *local = kzalloc(sizeof(*local), GFP_KERNEL);
	int rc = -ENOMEM;

	volume->local = local;
	if (!local)
		return kweir_fail(error, rc, "out of memory");
	local->volume = volume;
	mutex_init(&local->disk_mutex);
	spin_lock_init(&local->lock);
	INIT_LIST_HEAD(&local->waiting);
	INIT_DELAYED_WORK(&local->work, work);
	local->wq = alloc_workqueue("weir_blk_local", WQ_MEM_RECLAIM | WQ_UNBOUND, 1);
	if (!local->wq)
		return kweir_fail(error, rc, "out of memory");
	rc = weir_blk_resync_alloc(&volume->cipher, &local->resync, error);
	return rc ?: open_disk(local, path, volume->bytes, error);
}

void weir_blk_local_stop(struct weir_blk_local *local)
{
	if (local)
		cancel_delayed_work_sync(&local->work);
}

void weir_blk_local_close(struct weir_blk_local *local)
{
	if (!local)
		return;
	if (local->wq)
		destroy_workqueue(local->wq);
	if (local->disk.bdev)
		weir_bdev_close(&local->disk);
	weir_blk_resync_free(local->resync);
	kfree(local);
}

void weir_blk_local_kick(struct weir_blk_local *local)
{
	if (local)
		queue_delayed_work(local->wq, &local->work, msecs_to_jiffies(COPY_MS));
}

void weir_blk_local_queue(struct weir_blk_local *local, struct request *rq, unsigned int nents)
{
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);

	command->nents = nents;
	trace_weir_blk_submit(rq, 0);
	spin_lock_bh(&local->lock);
	list_add_tail(&command->waiting, &local->waiting);
	spin_unlock_bh(&local->lock);
	mod_delayed_work(local->wq, &local->work, 0);
}

bool weir_blk_local_is_too_small(const struct weir_blk_local *local, u64 bytes)
{
	return local && bdev_nr_bytes(local->disk.bdev) < bytes;
}

void weir_blk_local_facts(const struct weir_blk_local *local, struct weir_blk_facts *facts)
{
	if (!local)
		return;
	facts->local_bytes_written = atomic64_read(&local->bytes_written);
	facts->local_bytes_read = atomic64_read(&local->bytes_read);
}
