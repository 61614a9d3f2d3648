/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parts of a volume of files: the superblock, a log, two checkpoints, and the bytes of
 * files.
 */
#ifndef WEIR_FSD_JOURNAL_LAYOUT_H
#define WEIR_FSD_JOURNAL_LAYOUT_H

#include <stdbool.h>

#include "fsd/journal/disk.h"

#define FSD_LAYOUT_BYTES_MIN (16u << 20)

/**
 * struct fsd_layout - the superblock
 * @magic, @version: of the format
 * @crc: CRC32C of all, with 0 here
 * @uid, @gid: owner of the root directory
 * @hash_key: of names
 */
struct fsd_layout {
	uint64_t magic;
	uint32_t version, crc;
	uint64_t bytes, log, log_bytes, checkpoint[2], checkpoint_bytes, data, data_bytes;
	uint32_t uid, gid;
	uint8_t hash_key[16];
};

/* Lays out a disk. Return: 0; -ENOSPC too small. */
int fsd_layout_make(struct fsd_layout *layout, uint64_t bytes);

/* Writes the superblock. Return: 0, or of the disk. */
int fsd_layout_write(const struct fsd_disk *disk, struct fsd_layout *layout);

/*
 * @is_blank: receives whether the superblock is all zeroes; then the rest is not set. Return: 0;
 * -EPROTO no file system, or one of another version or size; or of the disk.
 */
int fsd_layout_read(const struct fsd_disk *disk, struct fsd_layout *layout, bool *is_blank);

#endif
