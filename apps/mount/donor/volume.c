/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/donor/volume.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/mount/mount.h"
#include "wire/fs.h"

void volume_init(struct volume *volume, uint64_t chunk_bytes)
{
	pthread_mutex_init(&volume->lock, NULL);
	volume->chunk_bytes = chunk_bytes;
}

void volume_fini(struct volume *volume)
{
	while (volume->nr)
		weir_region_close(volume->chunk[--volume->nr]);
	free(volume->chunk);
	volume->chunk = NULL;
}

uint32_t volume_chunks(struct volume *volume)
{
	uint32_t nr;

	pthread_mutex_lock(&volume->lock);
	nr = volume->nr;
	pthread_mutex_unlock(&volume->lock);
	return nr;
}

static int attach(struct mount *m, const struct fs_chunk *chunk)
{
	struct volume *volume = &m->volume;
	struct weir_region_token token = {
		.addr = chunk->addr,
		.length = chunk->length,
		.rkey = chunk->rkey,
	};
	struct weir_region **bigger;
	int err;

	if (volume->nr == VOLUME_CHUNKS_MAX || !chunk->length ||
	    chunk->length > volume->chunk_bytes)
		return -EIO;
	bigger = realloc(volume->chunk, (volume->nr + 1) * sizeof(struct weir_region *));
	if (!bigger)
		return -ENOMEM;
	volume->chunk = bigger;
	err = weir_region_attach(m->session, &token, &volume->chunk[volume->nr]);
	if (!err)
		volume->nr++;
	return err;
}

int volume_learn(struct mount *m, uint32_t first, const void *chunks, size_t length)
{
	struct volume *volume = &m->volume;
	uint32_t nr = (uint32_t)(length / sizeof(struct fs_chunk));
	int err = 0;

	pthread_mutex_lock(&volume->lock);
	if (first > volume->nr || first + nr <= first)
		err = -EIO;
	/* Another thread may have asked the same and been answered first. */
	for (uint32_t i = volume->nr - first; i < nr && !err; i++) {
		struct fs_chunk chunk;

		memcpy(&chunk, (const char *)chunks + i * sizeof(chunk), sizeof(chunk));
		err = attach(m, &chunk);
	}
	pthread_mutex_unlock(&volume->lock);
	return err;
}

struct weir_region *volume_find(struct volume *volume, uint64_t place, uint64_t *offset,
				uint64_t *length)
{
	struct weir_region *region = NULL;
	uint64_t chunk = place / volume->chunk_bytes;

	pthread_mutex_lock(&volume->lock);
	if (chunk < volume->nr)
		region = volume->chunk[chunk];
	pthread_mutex_unlock(&volume->lock);
	if (!region)
		return NULL;
	*offset = place % volume->chunk_bytes;
	if (*offset >= weir_region_length(region))
		return NULL;
	if (*length > weir_region_length(region) - *offset)
		*length = weir_region_length(region) - *offset;
	return region;
}
