// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>
#include <linux/slab.h>

#include "kernel/blk/device.h"
#include "kernel/blk/queue.h"
#include "kernel/compat.h"
#include "kernel/weir/weir.h"

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

/* The entry before which the lowest free number belongs. */
static struct list_head *find_number(u32 *number)
{
	struct weir_blk *blk;

	*number = 0;
	list_for_each_entry(blk, &devices, entry) {
		if (blk->number != *number)
			return &blk->entry;
		++*number;
	}
	return &devices;
}

static struct weir_blk *find(u32 number)
{
	struct weir_blk *blk;

	list_for_each_entry(blk, &devices, entry) {
		if (blk->number == number)
			return blk;
	}
	return NULL;
}

/* The region of that name, made if it is not there. */
static int borrow_named(struct weir_blk *blk, u64 bytes, struct weir_error *error)
{
	int rc = weir_region_open(blk->session, blk->name, &blk->region, error);

	if (rc == -ENOENT && bytes)
		return weir_region_create(blk->session, blk->name, bytes, &blk->region, error);
	if (!rc && bytes && bytes != blk->region.length)
		return weir_fail(error, -EINVAL,
				 "region %s has %llu bytes, not %llu: leave the size away, or choose another name",
				 blk->name, blk->region.length, bytes);
	return rc;
}

static int borrow(struct weir_blk *blk, u64 bytes, struct weir_error *error)
{
	int rc;

	if (blk->name[0])
		rc = borrow_named(blk, bytes, error);
	else
		rc = weir_region_create(blk->session, NULL, bytes, &blk->region, error);
	if (rc || IS_ALIGNED(blk->region.length, PAGE_SIZE))
		return rc;
	return weir_fail(error, -EINVAL, "region %s has %llu bytes, which is no multiple of %lu",
			 blk->name, blk->region.length, PAGE_SIZE);
}

static int add_disk_of(struct weir_blk *blk)
{
	struct gendisk *disk = blk->disk;

	disk->major = major;
	disk->first_minor = blk->number;
	disk->minors = 1;
	disk->flags |= GENHD_FL_NO_PART;
	disk->fops = &fops;
	disk->private_data = blk;
	snprintf(disk->disk_name, sizeof(disk->disk_name), "weir%u", blk->number);
	set_capacity(disk, blk->region.length >> SECTOR_SHIFT);
	return add_disk(disk);
}

static int show(struct weir_blk *blk, struct weir_error *error)
{
	struct queue_limits limits;
	int rc = weir_queue_tags(&blk->tags, blk);

	if (rc)
		return weir_fail(error, rc, "no memory for the queues (%d)", rc);
	weir_queue_limits(&limits);
	blk->disk = weir_disk_alloc(&blk->tags, &limits, blk);
	rc = PTR_ERR_OR_ZERO(blk->disk);
	if (!rc) {
		rc = add_disk_of(blk);
		if (!rc)
			return 0;
		put_disk(blk->disk);
	}
	blk_mq_free_tag_set(&blk->tags);
	return weir_fail(error, rc, "no block device (%d)", rc);
}

static int blk_open(struct weir_blk *blk, const struct weir_blk_setup *setup,
		    struct weir_error *error)
{
	int rc;

	rc = weir_session_open(&blk->donor, &blk->options, setup->key, &blk->session, error);
	if (rc)
		return rc;
	rc = borrow(blk, setup->bytes, error);
	if (!rc)
		rc = show(blk, error);
	if (rc)
		weir_session_close(blk->session);
	return rc;
}

static int check(const struct weir_blk_setup *setup, struct weir_error *error)
{
	if (!setup->bytes && !setup->name[0])
		return weir_fail(error, -EINVAL, "how large? Give a size, or a region's name");
	if (!IS_ALIGNED(setup->bytes, PAGE_SIZE))
		return weir_fail(error, -EINVAL, "%llu bytes are no multiple of %lu", setup->bytes,
				 PAGE_SIZE);
	return 0;
}

/* With devices_mutex held. */
static int attach(const struct weir_blk_setup *setup, u32 *number, struct weir_error *error)
{
	struct list_head *before = find_number(number);
	struct weir_blk *blk;
	int rc;

	if (*number > WEIR_BLK_NUMBER_MAX)
		return weir_fail(error, -ENOSPC, "there are %u devices already", *number);
	blk = kzalloc(sizeof(*blk), GFP_KERNEL);
	if (!blk)
		return weir_fail(error, -ENOMEM, "out of memory");
	blk->number = *number;
	blk->donor = setup->donor;
	blk->options = setup->options;
	strscpy(blk->name, setup->name, sizeof(blk->name));
	rc = blk_open(blk, setup, error);
	if (rc)
		kfree(blk);
	else
		list_add_tail(&blk->entry, before);
	return rc;
}

/* The module stays as long as there is a device. */
int weir_blk_attach(const struct weir_blk_setup *setup, u32 *number, struct weir_error *error)
{
	int rc = check(setup, error);

	if (rc)
		return rc;
	if (!try_module_get(THIS_MODULE))
		return weir_fail(error, -ENODEV, "the module is being unloaded");
	rc = mutex_lock_interruptible(&devices_mutex);
	if (!rc) {
		rc = attach(setup, number, error);
		mutex_unlock(&devices_mutex);
	}
	if (rc)
		module_put(THIS_MODULE);
	return rc;
}

static bool make_unopenable(struct weir_blk *blk)
{
	mutex_lock(&blk->disk->open_mutex);
	blk->detaching = !disk_openers(blk->disk);
	mutex_unlock(&blk->disk->open_mutex);
	return blk->detaching;
}

static void detach(struct weir_blk *blk)
{
	list_del(&blk->entry);
	del_gendisk(blk->disk);
	put_disk(blk->disk);
	blk_mq_free_tag_set(&blk->tags);
	weir_session_close(blk->session);
	kfree(blk);
	module_put(THIS_MODULE);
}

int weir_blk_detach(u32 number, struct weir_error *error)
{
	struct weir_blk *blk;
	int rc = 0;

	mutex_lock(&devices_mutex);
	blk = find(number);
	if (!blk)
		rc = weir_fail(error, -ENODEV, "there is no weir%u: 'weir blk list' shows what there is",
			       number);
	else if (!make_unopenable(blk))
		rc = weir_fail(error, -EBUSY,
			       "weir%u is in use: unmount it, or swapoff, and try again", number);
	else
		detach(blk);
	mutex_unlock(&devices_mutex);
	return rc;
}

int weir_blk_for_each(u32 first, int (*visit)(struct weir_blk *blk, void *arg), void *arg)
{
	struct weir_blk *blk;
	int rc = 0;

	mutex_lock(&devices_mutex);
	list_for_each_entry(blk, &devices, entry) {
		if (blk->number >= first)
			rc = visit(blk, arg);
		if (rc)
			break;
	}
	mutex_unlock(&devices_mutex);
	return rc;
}

int weir_blk_init(void)
{
	int rc = weir_queue_init();

	if (rc)
		return rc;
	major = register_blkdev(0, "weir");
	if (major > 0)
		return 0;
	weir_queue_exit();
	return major;
}

void weir_blk_exit(void)
{
	unregister_blkdev(major, "weir");
	weir_queue_exit();
}
