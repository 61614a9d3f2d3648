/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The arithmetic of a code k+r, by ISA-L: a systematic Cauchy code over GF(2^8). Any k of the k + r
 * fragments of a stripe give all others.
 *
 * Context of all: any thread; never sleeps.
 */
#ifndef WEIR_LIB_VOLUME_CODED_ERASURE_H
#define WEIR_LIB_VOLUME_CODED_ERASURE_H

#include <stdint.h>

#include "core/volume/extents.h"

#define WEIR_VOLUME_ERASURE_TABLE_BYTES 32u /* of ISA-L, for each coefficient */

/**
 * struct weir_volume_erasure - a code
 * @data: k; @width: k + r
 * @matrix: a row of k coefficients for each shard; @tables: of the parity rows, for ISA-L
 */
struct weir_volume_erasure {
	uint8_t data, width;
	uint8_t matrix[WEIR_EXTENTS_WIDTH_MAX * WEIR_EXTENTS_WIDTH_MAX];
	uint8_t tables[WEIR_VOLUME_ERASURE_TABLE_BYTES * WEIR_EXTENTS_WIDTH_MAX *
		       WEIR_EXTENTS_WIDTH_MAX];
};

/* Prepares a code of @data and @spare shards, at least 1 each, WEIR_EXTENTS_WIDTH_MAX together. */
void weir_volume_erasure_init(struct weir_volume_erasure *e, uint8_t data, uint8_t spare);

/* Computes the parity of @stripe: the fragments of all shards, @length bytes each, in a row. */
void weir_volume_erasure_encode(const struct weir_volume_erasure *e, char *stripe, uint32_t length);

/**
 * weir_volume_erasure_recover() - compute fragments from others
 * @e: the code
 * @stripe: as for weir_volume_erasure_encode()
 * @length: bytes of a fragment
 * @have: a bit for each shard that is there, at least k
 * @wanted: a bit for each shard to compute
 *
 * Return: 0; -EINVAL @have has fewer than k bits.
 */
int weir_volume_erasure_recover(const struct weir_volume_erasure *e, char *stripe, uint32_t length,
				uint16_t have, uint16_t wanted);

#endif
