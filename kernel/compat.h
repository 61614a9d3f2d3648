/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between the supported kernels, 6.1 to 6.12; no other file tests the kernel version.
 */
#ifndef WEIR_KERNEL_COMPAT_H
#define WEIR_KERNEL_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define blk_mode_t fmode_t
#define weir_block_open(disk, mode) open(struct block_device *disk##_bdev, blk_mode_t mode)
#define weir_block_disk(disk) (disk##_bdev->bd_disk)
#else
#define weir_block_open(disk, mode) open(struct gendisk *disk##_of, blk_mode_t mode)
#define weir_block_disk(disk) (disk##_of)
#endif

/*
 * A block device opened exclusively: opened by @path for @holder. Return: 0, or a negative errno.
 */
struct weir_bdev {
	struct block_device *bdev;
	void *handle;
};

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
static inline int weir_bdev_open(struct weir_bdev *to, const char *path, void *holder)
{
	to->bdev = blkdev_get_by_path(path, FMODE_READ | FMODE_WRITE | FMODE_EXCL, holder);
	return PTR_ERR_OR_ZERO(to->bdev);
}

static inline void weir_bdev_close(struct weir_bdev *bdev)
{
	blkdev_put(bdev->bdev, FMODE_READ | FMODE_WRITE | FMODE_EXCL);
}
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
static inline int weir_bdev_open(struct weir_bdev *to, const char *path, void *holder)
{
	to->bdev = blkdev_get_by_path(path, BLK_OPEN_READ | BLK_OPEN_WRITE, holder, NULL);
	to->handle = holder;
	return PTR_ERR_OR_ZERO(to->bdev);
}

static inline void weir_bdev_close(struct weir_bdev *bdev)
{
	blkdev_put(bdev->bdev, bdev->handle);
}
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
static inline int weir_bdev_open(struct weir_bdev *to, const char *path, void *holder)
{
	struct bdev_handle *handle =
		bdev_open_by_path(path, BLK_OPEN_READ | BLK_OPEN_WRITE, holder, NULL);

	if (IS_ERR(handle))
		return PTR_ERR(handle);
	*to = (struct weir_bdev){ handle->bdev, handle };
	return 0;
}

static inline void weir_bdev_close(struct weir_bdev *bdev)
{
	bdev_release(bdev->handle);
}
#else
static inline int weir_bdev_open(struct weir_bdev *to, const char *path, void *holder)
{
	struct file *file =
		bdev_file_open_by_path(path, BLK_OPEN_READ | BLK_OPEN_WRITE, holder, NULL);

	if (IS_ERR(file))
		return PTR_ERR(file);
	*to = (struct weir_bdev){ file_bdev(file), file };
	return 0;
}

static inline void weir_bdev_close(struct weir_bdev *bdev)
{
	bdev_fput(bdev->handle);
}
#endif

/*
 * Pages must not change during a write, because weir takes checksums. From 6.11 on this is one of
 * the limits, before a flag of the queue.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
static inline void weir_limits_stable(struct queue_limits *limits)
{
}

static inline void weir_queue_flags(struct request_queue *queue)
{
	blk_queue_flag_set(QUEUE_FLAG_NONROT, queue);
	blk_queue_flag_set(QUEUE_FLAG_STABLE_WRITES, queue);
}
#else
static inline void weir_limits_stable(struct queue_limits *limits)
{
	limits->features |= BLK_FEAT_STABLE_WRITES;
}

static inline void weir_queue_flags(struct request_queue *queue)
{
}
#endif

/* From 6.9 on queue limits are given with the disk; before, one by one. */
static inline struct gendisk *weir_disk_alloc(struct blk_mq_tag_set *tags,
					      struct queue_limits *limits, void *data)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
	struct gendisk *disk = blk_mq_alloc_disk(tags, data);

	if (IS_ERR(disk))
		return disk;
	weir_queue_flags(disk->queue);
	blk_queue_logical_block_size(disk->queue, limits->logical_block_size);
	blk_queue_physical_block_size(disk->queue, limits->physical_block_size);
	blk_queue_io_opt(disk->queue, limits->io_opt);
	blk_queue_max_hw_sectors(disk->queue, limits->max_hw_sectors);
	blk_queue_max_segments(disk->queue, limits->max_segments);
	blk_queue_max_segment_size(disk->queue, limits->max_segment_size);
	if (limits->chunk_sectors)
		blk_queue_chunk_sectors(disk->queue, limits->chunk_sectors);
	disk->queue->limits.discard_granularity = limits->discard_granularity;
	blk_queue_max_discard_sectors(disk->queue, limits->max_hw_discard_sectors);
	blk_queue_max_write_zeroes_sectors(disk->queue, limits->max_write_zeroes_sectors);
	return disk;
#else
	struct gendisk *disk = blk_mq_alloc_disk(tags, limits, data);

	if (!IS_ERR(disk))
		weir_queue_flags(disk->queue);
	return disk;
#endif
}

#endif
