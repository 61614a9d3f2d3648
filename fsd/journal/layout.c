/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fsd/journal/layout.h"

#include <errno.h>
#include <string.h>

#define LAYOUT_MAGIC 0x31736c6966726577u /* "werfils1" */
#define LAYOUT_VERSION 1
#define CHECKPOINT_PART 16 /* each checkpoint has this part of the volume */
#define LOG_PART 32
#define LOG_BYTES_MIN (1u << 20)
#define LOG_BYTES_MAX (64u << 20)

int fsd_layout_make(struct fsd_layout *layout, uint64_t bytes)
{
	uint64_t log = fsd_disk_within(bytes / LOG_PART);

	if (bytes < FSD_LAYOUT_BYTES_MIN)
		return -ENOSPC;
	if (log < LOG_BYTES_MIN)
		log = LOG_BYTES_MIN;
	if (log > LOG_BYTES_MAX)
		log = LOG_BYTES_MAX;
	*layout = (struct fsd_layout){
		.magic = LAYOUT_MAGIC,
		.version = LAYOUT_VERSION,
		.bytes = bytes,
		.log = FSD_DISK_PAGE,
		.log_bytes = log,
		.checkpoint_bytes = fsd_disk_within(bytes / CHECKPOINT_PART),
	};
	layout->checkpoint[0] = layout->log + log;
	layout->checkpoint[1] = layout->checkpoint[0] + layout->checkpoint_bytes;
	layout->data = layout->checkpoint[1] + layout->checkpoint_bytes;
	layout->data_bytes = fsd_disk_within(bytes - layout->data);
	return 0;
}

static uint32_t sum(struct fsd_layout layout)
{
	layout.crc = 0;
	return fsd_disk_sum(&layout, sizeof(layout), ~0u);
}

int fsd_layout_write(const struct fsd_disk *disk, struct fsd_layout *layout)
{
	uint8_t page[FSD_DISK_PAGE] = { 0 };

	layout->crc = sum(*layout);
	memcpy(page, layout, sizeof(*layout));
	return disk->write(disk->arg, 0, page, sizeof(page));
}

int fsd_layout_read(const struct fsd_disk *disk, struct fsd_layout *layout, bool *is_blank)
{
	uint8_t page[FSD_DISK_PAGE];
	struct fsd_layout expected;
	int rc = disk->read(disk->arg, 0, page, sizeof(page));

	if (rc)
		return rc;
	*is_blank = !page[0] && !memcmp(page, page + 1, sizeof(page) - 1);
	if (*is_blank)
		return 0;
	memcpy(layout, page, sizeof(*layout));
	if (fsd_layout_make(&expected, layout->bytes) || layout->bytes != disk->bytes)
		return -EPROTO;
	memcpy(expected.hash_key, layout->hash_key, sizeof(expected.hash_key));
	expected.uid = layout->uid;
	expected.gid = layout->gid;
	expected.crc = sum(expected);
	return memcmp(&expected, layout, sizeof(expected)) ? -EPROTO : 0;
}
