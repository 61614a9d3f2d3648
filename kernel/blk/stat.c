// SPDX-License-Identifier: GPL-2.0-only
#include <linux/device.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "kernel/blk/device.h"
#include "kernel/blk/stat.h"

void weir_blk_counters(const struct weir_blk_facts *facts, u64 *counters)
{
	const struct weir_extents_census *census = &facts->census;
	const struct kweir_stat *stat = &facts->stat;
	const u64 all[WEIR_BLK_COUNTERS_NR] = {
		[WEIR_BLK_COUNTER_ios] = stat->ios,
		[WEIR_BLK_COUNTER_requests] = stat->requests,
		[WEIR_BLK_COUNTER_work_requests] = stat->work_requests,
		[WEIR_BLK_COUNTER_doorbells] = stat->doorbells,
		[WEIR_BLK_COUNTER_merged] = stat->merged,
		[WEIR_BLK_COUNTER_completions] = stat->completions,
		[WEIR_BLK_COUNTER_events] = stat->events,
		[WEIR_BLK_COUNTER_empty_polls] = stat->empty_polls,
		[WEIR_BLK_COUNTER_window_waits] = stat->window_waits,
		[WEIR_BLK_COUNTER_retries] = stat->retries,
		[WEIR_BLK_COUNTER_reconnects] = stat->reconnects,
		[WEIR_BLK_COUNTER_errors] = stat->errors,
		[WEIR_BLK_COUNTER_bytes_read] = stat->bytes_read,
		[WEIR_BLK_COUNTER_bytes_written] = stat->bytes_written,
		[WEIR_BLK_COUNTER_failovers] = facts->failovers,
		[WEIR_BLK_COUNTER_pieces] =
			census->whole + census->lean + census->bare + census->thin + census->local,
		[WEIR_BLK_COUNTER_degraded] = census->lean + census->local,
		[WEIR_BLK_COUNTER_lost] = census->bare,
		[WEIR_BLK_COUNTER_bytes_copied] = facts->bytes_copied,
		[WEIR_BLK_COUNTER_mismatches] = facts->mismatches,
		[WEIR_BLK_COUNTER_given_back] = census->thin,
		[WEIR_BLK_COUNTER_leaving] = census->leaving,
		[WEIR_BLK_COUNTER_local_bytes_written] = facts->local_bytes_written,
		[WEIR_BLK_COUNTER_local_bytes_read] = facts->local_bytes_read,
		[WEIR_BLK_COUNTER_local_behind] = census->behind << PAGE_SHIFT,
		[WEIR_BLK_COUNTER_polled] = stat->polled,
		[WEIR_BLK_COUNTER_bytes_repaired] = facts->bytes_repaired,
	};

	memcpy(counters, all, sizeof(all));
}

struct counter_attribute {
	struct device_attribute attr;
	enum weir_blk_counter counter;
};

static ssize_t show(struct device *dev, struct device_attribute *attr, char *text)
{
	struct weir_blk *blk = dev_to_disk(dev)->private_data;
	struct weir_blk_facts *facts = kmalloc(sizeof(*facts), GFP_KERNEL);
	u64 counters[WEIR_BLK_COUNTERS_NR];

	if (!facts)
		return -ENOMEM;
	weir_blk_volume_facts(&blk->volume, facts);
	weir_blk_counters(facts, counters);
	kfree(facts);
	return sysfs_emit(text, "%llu\n",
			  counters[container_of(attr, struct counter_attribute, attr)->counter]);
}

#define ATTRIBUTE(counter_name, help)                   \
	[WEIR_BLK_COUNTER_##counter_name] = {           \
		__ATTR(counter_name, 0444, show, NULL), \
		WEIR_BLK_COUNTER_##counter_name,        \
	},
static struct counter_attribute counters_shown[] = { WEIR_BLK_COUNTER_LIST(ATTRIBUTE) };

static struct attribute *attributes[WEIR_BLK_COUNTERS_NR + 1];

static const struct attribute_group group = {
	.name = "weir",
	.attrs = attributes,
};

const struct attribute_group *weir_blk_groups[] = { &group, NULL };

void weir_blk_stat_init(void)
{
	unsigned int i;

	for (i = 0; i < WEIR_BLK_COUNTERS_NR; i++)
		attributes[i] = &counters_shown[i].attr.attr;
}
