/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Keyed checksums of pages: see core/volume/page_digest.h. */
#ifndef WEIR_LIB_VOLUME_CHECKSUM_H
#define WEIR_LIB_VOLUME_CHECKSUM_H

#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>

#define WEIR_VOLUME_PAGE_BYTES 4096u

/* Drawn when the volume is opened. It never leaves this process, and ends with the volume. */
struct weir_volume_checksum_key {
	uint64_t digest[WEIR_VOLUME_PAGE_BYTES / sizeof(uint64_t)];
	unsigned char hash[crypto_shorthash_KEYBYTES];
};

/* Return: 0; -EIO without random numbers. */
int weir_volume_checksum_new_key(struct weir_volume_checksum_key *key);

/* The checksum of a page. @number: of the page in the volume, counted by extents. */
uint32_t weir_volume_checksum(const struct weir_volume_checksum_key *key, uint64_t number,
			      const void *page);

/*
 * Compares a page that was read with what is expected. A page of zeroes by definition is filled in.
 * Return: true if the page is right now.
 */
bool weir_volume_checksum_accept(const struct weir_volume_checksum_key *key, uint64_t number,
				 void *page, uint32_t expected);

#endif
