/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/volume/coded/erasure.h"

#include <errno.h>
#include <isa-l/erasure_code.h>

#define WIDTH_MAX WEIR_EXTENTS_WIDTH_MAX

void weir_volume_erasure_init(struct weir_volume_erasure *e, uint8_t data, uint8_t spare)
{
	e->data = data;
	e->width = data + spare;
	gf_gen_cauchy1_matrix(e->matrix, e->width, data);
	ec_init_tables(data, spare, e->matrix + data * data, e->tables);
}

static unsigned char *fragment(char *stripe, uint32_t length, uint8_t shard)
{
	return (unsigned char *)stripe + (size_t)shard * length;
}

void weir_volume_erasure_encode(const struct weir_volume_erasure *e, char *stripe, uint32_t length)
{
	unsigned char *shards[WIDTH_MAX];

	for (uint8_t i = 0; i < e->width; i++)
		shards[i] = fragment(stripe, length, i);
	ec_encode_data((int)length, e->data, e->width - e->data, (unsigned char *)e->tables, shards,
		       shards + e->data);
}

/* The rows of the first k shards of @have; lists these shards in @from. Return: how many. */
static uint8_t take_rows(const struct weir_volume_erasure *e, uint16_t have, uint8_t *rows,
			 uint8_t *from)
{
	uint8_t count = 0;

	for (uint8_t i = 0; i < e->width && count < e->data; i++) {
		if (!(have >> i & 1))
			continue;
		memcpy(rows + count * e->data, e->matrix + i * e->data, e->data);
		from[count++] = i;
	}
	return count;
}

/* The coefficients that give shard @shard of the shards that @inverse belongs to. */
static void row_of(const struct weir_volume_erasure *e, const uint8_t *inverse, uint8_t shard,
		   uint8_t *row)
{
	for (uint8_t i = 0; i < e->data; i++) {
		row[i] = 0;
		for (uint8_t j = 0; j < e->data; j++)
			row[i] ^= gf_mul(e->matrix[shard * e->data + j], inverse[j * e->data + i]);
	}
}

int weir_volume_erasure_recover(const struct weir_volume_erasure *e, char *stripe, uint32_t length,
				uint16_t have, uint16_t wanted)
{
	uint8_t rows[WIDTH_MAX * WIDTH_MAX], inverse[WIDTH_MAX * WIDTH_MAX], from[WIDTH_MAX];
	uint8_t tables[WEIR_VOLUME_ERASURE_TABLE_BYTES * WIDTH_MAX * WIDTH_MAX];
	unsigned char *in[WIDTH_MAX], *out[WIDTH_MAX];
	int count = 0;

	if (take_rows(e, have, rows, from) < e->data || gf_invert_matrix(rows, inverse, e->data))
		return -EINVAL;
	for (uint8_t i = 0; i < e->data; i++)
		in[i] = fragment(stripe, length, from[i]);
	for (uint8_t i = 0; i < e->width; i++) {
		if (!(wanted >> i & 1))
			continue;
		row_of(e, inverse, i, rows + count * e->data);
		out[count++] = fragment(stripe, length, i);
	}
	if (!count)
		return 0;
	ec_init_tables(e->data, count, rows, tables);
	ec_encode_data((int)length, e->data, count, tables, in, out);
	return 0;
}
