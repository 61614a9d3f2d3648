/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sizes of a sealed file. The donor stores each block of FS_BLOCK bytes as a slot: a trailer, and
 * then the text. The last slot ends with its text. So the stored size tells the size, and the other
 * way round, and no byte is stored behind the end.
 */
#ifndef WEIR_APPS_MOUNT_SEALED_SIZE_H
#define WEIR_APPS_MOUNT_SEALED_SIZE_H

#include <stdint.h>

#include "lib/sealed/slot.h"
#include "wire/fs.h"

#define SEALED_HEAD sizeof(struct weir_slot_trailer)
/* The greatest size whose stored size is one that the donor allows. */
#define SEALED_FILE_MAX ((uint64_t)INT64_MAX / WEIR_SEALED_SLOT * FS_BLOCK - FS_BLOCK)

_Static_assert(WEIR_SEALED_BLOCK == FS_BLOCK, "a block of a file is one of a slot");

/* The stored bytes of a file of @size bytes, at most SEALED_FILE_MAX. */
static inline uint64_t sealed_stored_size(uint64_t size)
{
	uint64_t rest = size % FS_BLOCK;

	return size / FS_BLOCK * WEIR_SEALED_SLOT + (rest ? SEALED_HEAD + rest : 0);
}

/* The size of a file of @stored bytes; of any number, as the donor may say any. */
static inline uint64_t sealed_size(uint64_t stored)
{
	uint64_t rest = stored % WEIR_SEALED_SLOT;

	return stored / WEIR_SEALED_SLOT * FS_BLOCK + (rest > SEALED_HEAD ? rest - SEALED_HEAD : 0);
}

#endif
