/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/perf/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <weir/request.h>

#define CHUNK_BYTES (1u << 20)

int verify_init(struct verify *v, uint64_t seed, uint64_t region_bytes, uint64_t block_bytes)
{
	*v = (struct verify){
		.seed = seed,
		.block_bytes = block_bytes,
		.blocks = region_bytes / block_bytes,
	};
	v->written = calloc((v->blocks + 63) / 64, sizeof(*v->written));
	return v->written ? 0 : -ENOMEM;
}

void verify_fini(struct verify *v)
{
	free(v->written);
	v->written = NULL;
}

/* Never 0, the contents of unwritten memory. */
static uint64_t word_at(const struct verify *v, uint64_t offset)
{
	uint64_t x = (offset / 8 + v->seed) * 0x9e3779b97f4a7c15u;

	return (x ^ (x >> 29)) | 1;
}

static uint8_t byte_at(const struct verify *v, uint64_t offset)
{
	return (uint8_t)(word_at(v, offset) >> (8 * (offset % 8)));
}

void verify_fill(const struct verify *v, void *to, uint64_t offset, uint64_t length)
{
	uint8_t *bytes = to;
	uint64_t i = 0;

	for (; offset % 8 == 0 && i + 8 <= length; i += 8) {
		uint64_t word = word_at(v, offset + i);

		memcpy(bytes + i, &word, 8);
	}
	for (; i < length; i++)
		bytes[i] = byte_at(v, offset + i);
}

bool verify_matches(const struct verify *v, const void *at, uint64_t offset, uint64_t length)
{
	const uint8_t *bytes = at;
	uint64_t i = 0, word;

	for (; offset % 8 == 0 && i + 8 <= length; i += 8) {
		memcpy(&word, bytes + i, 8);
		if (word != word_at(v, offset + i))
			return false;
	}
	for (; i < length; i++) {
		if (bytes[i] != byte_at(v, offset + i))
			return false;
	}
	return true;
}

void verify_note_written(struct verify *v, uint64_t offset, uint64_t length)
{
	uint64_t block = offset / v->block_bytes, end = (offset + length) / v->block_bytes;

	for (; block < end; block++)
		__atomic_fetch_or(&v->written[block / 64], 1ull << (block % 64), __ATOMIC_RELAXED);
}

/* Number of blocks to move at once: 1 MiB, or a single block. */
static uint64_t blocks_at(const struct verify *v, uint64_t block)
{
	uint64_t count = v->block_bytes < CHUNK_BYTES ? CHUNK_BYTES / v->block_bytes : 1;

	return count < v->blocks - block ? count : v->blocks - block;
}

int verify_write_all(const struct verify *v, struct weir_region *region)
{
	void *chunk = malloc(blocks_at(v, 0) * v->block_bytes);
	int rc = chunk ? 0 : -ENOMEM;
	uint64_t count;

	for (uint64_t i = 0; !rc && i < v->blocks; i += count) {
		count = blocks_at(v, i);
		verify_fill(v, chunk, i * v->block_bytes, count * v->block_bytes);
		rc = weir_write(region, i * v->block_bytes, chunk, count * v->block_bytes);
	}
	free(chunk);
	return rc;
}

static bool is_written(const struct verify *v, uint64_t block)
{
	return v->written[block / 64] >> (block % 64) & 1;
}

/* Finds the first wrong block of @count blocks from @first on, in @chunk. */
static uint64_t find_wrong(const struct verify *v, const uint8_t *chunk, uint64_t first,
			   uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t offset = (first + i) * v->block_bytes;

		if (is_written(v, first + i) &&
		    !verify_matches(v, chunk + i * v->block_bytes, offset, v->block_bytes))
			return offset;
	}
	return UINT64_MAX;
}

int verify_read_back(const struct verify *v, struct weir_region *region, uint64_t *wrong)
{
	void *chunk = malloc(blocks_at(v, 0) * v->block_bytes);
	int rc = chunk ? 0 : -ENOMEM;
	uint64_t count;

	*wrong = UINT64_MAX;
	for (uint64_t i = 0; !rc && i < v->blocks && *wrong == UINT64_MAX; i += count) {
		count = blocks_at(v, i);
		rc = weir_read(region, i * v->block_bytes, chunk, count * v->block_bytes);
		if (!rc)
			*wrong = find_wrong(v, chunk, i, count);
	}
	free(chunk);
	return rc;
}
