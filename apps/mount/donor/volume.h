/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The volume that the donor's files lie in: chunks, each a region. It grows while mounted. */
#ifndef WEIR_APPS_MOUNT_DONOR_VOLUME_H
#define WEIR_APPS_MOUNT_DONOR_VOLUME_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/region.h>

#define VOLUME_CHUNKS_MAX 65536u

struct mount;

struct volume {
	pthread_mutex_t lock; /* guards the rest */
	uint64_t chunk_bytes;
	struct weir_region **chunk;
	uint32_t nr;
};

void volume_init(struct volume *volume, uint64_t chunk_bytes);
void volume_fini(struct volume *volume);

/* How many chunks are attached: where the next FS_VOLUME begins. */
uint32_t volume_chunks(struct volume *volume);

/**
 * volume_learn() - attach chunks
 * @first: the number of the first of them
 * @chunks, @length: wire_fs_chunk[]; those attached already are passed over
 *
 * Return: 0; -EIO nonsense, or nothing new; -ENOMEM.
 */
int volume_learn(struct mount *m, uint32_t first, const void *chunks, size_t length);

/**
 * volume_find() - the region that @place lies in
 * @offset: receives where in it
 * @length: is cut to what lies in it
 *
 * Return: NULL: the volume is not known so far.
 */
struct weir_region *volume_find(struct volume *volume, uint64_t place, uint64_t *offset,
				uint64_t *length);

#endif
