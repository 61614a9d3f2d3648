/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Verification of the donor's memory. Each place has fixed contents, the same for every write, so
 * data read must match regardless of the order of writes.
 */
#ifndef WEIR_APPS_PERF_VERIFY_H
#define WEIR_APPS_PERF_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/region.h>

struct verify {
	uint64_t seed;
	uint64_t block_bytes;
	uint64_t *written; /* a bit per block */
	uint64_t blocks;
};

/* Return: 0; -ENOMEM. */
int verify_init(struct verify *verify, uint64_t seed, uint64_t region_bytes, uint64_t block_bytes);
void verify_fini(struct verify *verify);

/* The contents for @offset of the region. */
void verify_fill(const struct verify *verify, void *to, uint64_t offset, uint64_t length);
bool verify_matches(const struct verify *verify, const void *at, uint64_t offset, uint64_t length);

/* Marks whole blocks as written. Context: any thread. */
void verify_note_written(struct verify *verify, uint64_t offset, uint64_t length);

/* Writes the whole region. Return: 0 or a negative errno. */
int verify_write_all(const struct verify *verify, struct weir_region *region);

/**
 * verify_read_back() - compare all written blocks
 * @wrong: receives the offset of the first wrong block, or UINT64_MAX
 *
 * Return: 0 or a negative errno.
 */
int verify_read_back(const struct verify *verify, struct weir_region *region, uint64_t *wrong);

#endif
