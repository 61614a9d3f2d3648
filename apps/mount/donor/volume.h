/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The volume that contains the donor's files: chunks, each a region. It grows while mounted. */
#ifndef WEIR_APPS_MOUNT_DONOR_VOLUME_H
#define WEIR_APPS_MOUNT_DONOR_VOLUME_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/region.h>

#define VOLUME_CHUNKS_MAX 65536u

struct mount;

struct volume {
	pthread_mutex_t lock; /* guards the fields below */
	uint64_t chunk_bytes;
	struct weir_region **chunk;
	uint32_t nr;
};

void volume_init(struct volume *volume, uint64_t chunk_bytes);
void volume_fini(struct volume *volume);

/* Number of attached chunks: where the next FS_VOLUME begins. */
uint32_t volume_chunks(struct volume *volume);

/**
 * volume_learn() - attach chunks
 * @first: number of the first chunk
 * @chunks: wire_fs_chunk[]; chunks already attached are skipped
 * @length: bytes of @chunks
 *
 * Return: 0; -EIO an invalid reply, or nothing new; -ENOMEM.
 */
int volume_learn(struct mount *m, uint32_t first, const void *chunks, size_t length);

/**
 * volume_find() - find the region that contains @place
 * @offset: receives the offset in the region
 * @length: is reduced to what the region contains
 *
 * Return: the region, or NULL if the chunk is not attached yet.
 */
struct weir_region *volume_find(struct volume *volume, uint64_t place, uint64_t *offset,
				uint64_t *length);

#endif
