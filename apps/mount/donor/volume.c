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

static int attach_chunk(struct mount *m, const struct wire_fs_chunk *chunk)
{
	struct volume *volume = &m->volume;
	struct weir_region_token token = {
		.addr = chunk->addr,
		.length = chunk->length,
		.rkey = chunk->rkey,
	};
	struct weir_region **bigger;
	int rc;

	if (volume->nr == VOLUME_CHUNKS_MAX || !chunk->length ||
	    chunk->length > volume->chunk_bytes)
		return -EIO;
	bigger = realloc(volume->chunk, (volume->nr + 1) * sizeof(struct weir_region *));
	if (!bigger)
		return -ENOMEM;
	volume->chunk = bigger;
	rc = weir_region_attach(m->session, &token, &volume->chunk[volume->nr]);
	if (!rc)
		volume->nr++;
	return rc;
}

int volume_learn(struct mount *m, uint32_t first, const void *chunks, size_t length)
{
	struct volume *volume = &m->volume;
	uint32_t nr = (uint32_t)(length / sizeof(struct wire_fs_chunk));
	int rc = 0;

	pthread_mutex_lock(&volume->lock);
	if (first > volume->nr || first + nr <= first)
		rc = -EIO;
	/* Another thread may have fetched the same chunks first. */
	for (uint32_t i = volume->nr - first; i < nr && !rc; i++) {
		struct wire_fs_chunk chunk;

		memcpy(&chunk, (const char *)chunks + i * sizeof(chunk), sizeof(chunk));
		rc = attach_chunk(m, &chunk);
	}
	pthread_mutex_unlock(&volume->lock);
	return rc;
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
