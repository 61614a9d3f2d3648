/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_LIB_VOLUME_CHECKSUM_H
#define WEIR_LIB_VOLUME_CHECKSUM_H

#include <stdbool.h>
#include <stdint.h>

/* The checksum of a page, from its CRC32C: see core/volume/page_sum.h. */
uint32_t weir_volume_checksum(const void *page);

/*
 * Compares a page that was read with what is expected. A page of zeroes by definition is filled in.
 * Return: true if the page is right now.
 */
bool weir_volume_checksum_accept(void *page, uint32_t expected);

#endif
