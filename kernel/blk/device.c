// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>
#include <linux/slab.h>

#include "kernel/blk/device.h"
#include "kernel/blk/pool/pool.h"
#include "kernel/blk/queue.h"
#include "kernel/blk/stat.h"
#include "kernel/compat.h"

static DEFINE_MUTEX(devices_mutex);
static LIST_HEAD(devices);
static int major;

static int weir_block_open(disk, mode)
{
	struct weir_blk *blk = weir_block_disk(disk)->private_data;

	return blk->detaching ? -ENXIO : 0;
}

static const struct block_device_operations fops = {
	.owner = THIS_MODULE,
	.open = open,
};

/* The list entry before which the lowest free number belongs. */
static struct list_head *find_number(u32 *number)
{
	struct weir_blk *blk;

	*number = 0;
	list_for_each_entry(blk, &devices, entry)
	{
		if (blk->number != *number)
			return &blk->entry;
		++*number;
	}
	return &devices;
}

static struct weir_blk *find_device(u32 number)
{
	struct weir_blk *blk;

	list_for_each_entry(blk, &devices, entry)
	{
		if (blk->number == number)
			return blk;
	}
	return NULL;
}

static int add_disk_of(struct weir_blk *blk, struct gendisk *disk)
{
	disk->major = major;
	disk->first_minor = blk->number;
	disk->minors = 1;
	disk->flags |= GENHD_FL_NO_PART;
	disk->fops = &fops;
	disk->private_data = blk;
	snprintf(disk->disk_name, sizeof(disk->disk_name), "weir%u", blk->number);
	set_capacity(disk, blk->volume.bytes >> SECTOR_SHIFT);
	return device_add_disk(NULL, disk, weir_blk_groups);
}

static int create_disk(struct weir_blk *blk, struct kweir_error *error)
{
	struct queue_limits limits;
	struct gendisk *disk;
	int rc = weir_blk_queue_tags(&blk->tags, blk);

	if (rc)
		return kweir_fail(error, rc, "no memory for the queues (%d)", rc);
	weir_blk_queue_limits(&limits, blk);
	disk = weir_disk_alloc(&blk->tags, &limits, blk);
	rc = PTR_ERR_OR_ZERO(disk);
	if (!rc) {
		rc = add_disk_of(blk, disk);
		if (!rc) {
			blk->disk = disk;
			return 0;
		}
		put_disk(disk);
	}
	blk_mq_free_tag_set(&blk->tags);
	return kweir_fail(error, rc, "no block device (%d)", rc);
}

static int blk_open(struct weir_blk *blk, const struct weir_blk_setup *setup,
		    struct kweir_error *error)
{
	int rc = weir_blk_volume_open(&blk->volume, setup, error);

	if (rc || setup->pool)
		return rc;
	rc = create_disk(blk, error);
	if (rc)
		weir_blk_volume_close(&blk->volume);
	return rc;
}

/* A device with a number, not attached yet. */
static struct weir_blk *new_device(struct kweir_error *error)
{
	struct weir_blk *blk = kvzalloc(sizeof(*blk), GFP_KERNEL);
	struct list_head *before;

	if (!blk) {
		kweir_fail(error, -ENOMEM, "out of memory");
		return ERR_PTR(-ENOMEM);
	}
	mutex_lock(&devices_mutex);
	before = find_number(&blk->number);
	if (blk->number <= WEIR_BLK_NUMBER_MAX)
		list_add_tail(&blk->entry, before);
	mutex_unlock(&devices_mutex);
	if (blk->number <= WEIR_BLK_NUMBER_MAX)
		return blk;
	kweir_fail(error, -ENOSPC, "there are %u devices already", blk->number);
	kvfree(blk);
	return ERR_PTR(-ENOSPC);
}

/* Connecting may take long: without the mutex, others can attach, detach and query meanwhile. */
static int attach(const struct weir_blk_setup *setup, u32 *number, struct kweir_error *error)
{
	struct weir_blk *blk = new_device(error);
	int rc = PTR_ERR_OR_ZERO(blk);

	if (rc)
		return rc;
	*number = blk->number;
	rc = blk_open(blk, setup, error);
	mutex_lock(&devices_mutex);
	if (rc)
		list_del(&blk->entry);
	else
		blk->is_there = true;
	mutex_unlock(&devices_mutex);
	if (rc)
		kvfree(blk);
	return rc;
}

/* Each device holds a reference on the module. */
int weir_blk_attach(const struct weir_blk_setup *setup, u32 *number, struct kweir_error *error)
{
	int rc;

	if (!try_module_get(THIS_MODULE))
		return kweir_fail(error, -ENODEV, "the module is being unloaded");
	rc = attach(setup, number, error);
	if (rc)
		module_put(THIS_MODULE);
	return rc;
}

static bool make_unopenable(struct weir_blk *blk)
{
	if (!blk->disk)
		return true;
	mutex_lock(&blk->disk->open_mutex);
	blk->detaching = !disk_openers(blk->disk);
	mutex_unlock(&blk->disk->open_mutex);
	return blk->detaching;
}

/* The number stays taken until the device is gone completely. */
static void detach(struct weir_blk *blk)
{
	if (blk->disk) {
		del_gendisk(blk->disk);
		put_disk(blk->disk);
		blk_mq_free_tag_set(&blk->tags);
	}
	weir_blk_volume_close(&blk->volume);
	mutex_lock(&devices_mutex);
	list_del(&blk->entry);
	mutex_unlock(&devices_mutex);
	kvfree(blk);
	module_put(THIS_MODULE);
}

/* With devices_mutex held. */
static int check_idle(const struct weir_blk *blk, u32 number, struct kweir_error *error)
{
	if (!blk)
		return kweir_fail(error, -ENODEV,
				  "there is no weir%u: 'weir blk list' shows what there is",
				  number);
	if (!blk->is_there || blk->resizing)
		return kweir_fail(error, -EBUSY, "weir%u is being attached, detached or resized",
				  number);
	return 0;
}

/* With devices_mutex held. */
static int begin_detaching(struct weir_blk *blk, u32 number, struct kweir_error *error)
{
	int rc = check_idle(blk, number, error);

	if (rc)
		return rc;
	if (!make_unopenable(blk))
		return kweir_fail(error, -EBUSY,
				  "weir%u is in use: unmount it, or swapoff, and try again",
				  number);
	blk->is_there = false;
	return 0;
}

int weir_blk_detach(u32 number, struct kweir_error *error)
{
	struct weir_blk *blk;
	int rc;

	mutex_lock(&devices_mutex);
	blk = find_device(number);
	rc = begin_detaching(blk, number, error);
	mutex_unlock(&devices_mutex);
	if (!rc)
		detach(blk);
	return rc;
}

/* Takes the space beyond the new end from the disk before the memory goes. */
static int shrink_device(struct weir_blk *blk, u64 bytes, struct kweir_error *error)
{
	bool is_open;

	mutex_lock(&blk->disk->open_mutex);
	is_open = disk_openers(blk->disk);
	if (!is_open)
		set_capacity(blk->disk, bytes >> SECTOR_SHIFT);
	mutex_unlock(&blk->disk->open_mutex);
	if (is_open)
		return kweir_fail(error, -EBUSY,
				  "weir%u is in use: only an unused device can shrink",
				  blk->number);
	return weir_blk_volume_resize(&blk->volume, bytes, error);
}

static int resize_device(struct weir_blk *blk, u64 bytes, struct kweir_error *error)
{
	int rc;

	if (blk->volume.name[0])
		return kweir_fail(error, -EINVAL, "a region with a name keeps its size");
	if (blk->volume.pool)
		return kweir_fail(error, -EINVAL, "a pool's volume keeps its size");
	if (!bytes || !IS_ALIGNED(bytes, PAGE_SIZE) || bytes > WEIR_BLK_VOLUME_BYTES_MAX)
		return kweir_fail(error, -EINVAL, "%llu bytes: a multiple of %lu, at most %llu",
				  bytes, PAGE_SIZE, WEIR_BLK_VOLUME_BYTES_MAX);
	if (bytes < blk->volume.bytes)
		return shrink_device(blk, bytes, error);
	rc = weir_blk_volume_resize(&blk->volume, bytes, error);
	if (!rc)
		set_capacity_and_notify(blk->disk, bytes >> SECTOR_SHIFT);
	return rc;
}

/* A change that takes long: without the mutex, others can attach, detach and query meanwhile. */
static int begin_change(u32 number, struct weir_blk **blk, struct kweir_error *error)
{
	int rc;

	mutex_lock(&devices_mutex);
	*blk = find_device(number);
	rc = check_idle(*blk, number, error);
	if (!rc)
		(*blk)->resizing = true;
	mutex_unlock(&devices_mutex);
	return rc;
}

static void end_change(struct weir_blk *blk)
{
	mutex_lock(&devices_mutex);
	blk->resizing = false;
	mutex_unlock(&devices_mutex);
}

int weir_blk_resize(u32 number, u64 bytes, struct kweir_error *error)
{
	struct weir_blk *blk;
	int rc = begin_change(number, &blk, error);

	if (rc)
		return rc;
	rc = resize_device(blk, bytes, error);
	end_change(blk);
	return rc;
}

static int no_pool(u32 number, struct kweir_error *error)
{
	return kweir_fail(error, -ENODEV, "there is no weir%u with this volume of a pool", number);
}

static bool has_layout(const struct weir_blk *blk, const struct weir_blk_layout *layout)
{
	return blk->volume.pool && !memcmp(layout, &blk->volume.pool->layout, sizeof(*layout));
}

static int start_device(struct weir_blk *blk, const struct weir_blk_layout *layout,
			struct kweir_error *error)
{
	if (!has_layout(blk, layout))
		return no_pool(blk->number, error);
	if (blk->disk)
		return kweir_fail(error, -EINVAL, "weir%u has started", blk->number);
	if (!weir_blk_pool_is_equal(&blk->volume))
		return kweir_fail(error, -EAGAIN, "weir%u: its copies are not equal yet",
				  blk->number);
	return create_disk(blk, error);
}

int weir_blk_start(u32 number, const struct weir_blk_layout *layout, struct kweir_error *error)
{
	struct weir_blk *blk;
	int rc = begin_change(number, &blk, error);

	if (rc)
		return rc;
	rc = start_device(blk, layout, error);
	end_change(blk);
	return rc;
}

int weir_blk_visit_pool(u32 number, const struct weir_blk_layout *layout,
			int (*visit)(struct weir_blk *blk, void *arg), void *arg,
			struct kweir_error *error)
{
	struct weir_blk *blk;
	int rc;

	mutex_lock(&devices_mutex);
	blk = find_device(number);
	if (blk && blk->is_there && has_layout(blk, layout))
		rc = visit(blk, arg);
	else
		rc = no_pool(number, error);
	mutex_unlock(&devices_mutex);
	return rc;
}

int weir_blk_for_each(u32 first, int (*visit)(struct weir_blk *blk, void *arg), void *arg)
{
	struct weir_blk *blk;
	int rc = 0;

	mutex_lock(&devices_mutex);
	list_for_each_entry(blk, &devices, entry)
	{
		if (blk->is_there && blk->number >= first)
			rc = visit(blk, arg);
		if (rc)
			break;
	}
	mutex_unlock(&devices_mutex);
	return rc;
}

int weir_blk_init(void)
{
	int rc = weir_blk_volumes_init();

	if (rc)
		return rc;
	weir_blk_stat_init();
	major = register_blkdev(0, "weir");
	if (major > 0)
		return 0;
	weir_blk_volumes_exit();
	return major;
}

void weir_blk_exit(void)
{
	unregister_blkdev(major, "weir");
	weir_blk_volumes_exit();
}
