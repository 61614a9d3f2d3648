/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pieces double as long as they take little time, so that a slow path is measured soon and a fast
 * one well.
 */
#include "apps/doctor/transfer.h"
#include "core/base/rng.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/region.h>
#include <weir/request.h>

#define PIECE_BYTES_MIN (64u << 10)
#define PIECE_BYTES_MAX (16u << 20)
#define ROUNDS_AT_MAX 4
#define SMALL_BYTES 4096
#define SMALL_ROUNDS 1000

struct buffers {
	uint64_t *out, *in;
};

static double now_s(void)
{
	return (double)weir_now_ns() / 1e9;
}

static void fill_words(uint64_t *words, size_t count, uint64_t seed)
{
	for (size_t i = 0; i < count; i++)
		words[i] = weir_rng_next(&seed);
}

/* Return: 0; -EBADMSG the data differs. */
static int move_piece(struct data_proof *t, struct weir_region *region, const struct buffers *b,
		      size_t size)
{
	double start, middle;
	int rc;

	fill_words(b->out, size / sizeof(*b->out), t->bytes);
	start = now_s();
	rc = weir_write(region, 0, b->out, size);
	middle = now_s();
	rc = rc ? rc : weir_read(region, 0, b->in, size);
	if (rc)
		return rc;
	t->write_mbps = (double)size / (middle - start) / 1e6;
	t->read_mbps = (double)size / (now_s() - middle) / 1e6;
	t->bytes += size;
	return memcmp(b->out, b->in, size) ? -EBADMSG : 0;
}

/* The rates are those of the last piece: the first ones also fault in the memory. */
static int move_pieces(struct data_proof *t, struct weir_region *region, const struct buffers *b)
{
	double end = now_s() + t->seconds;
	size_t size = PIECE_BYTES_MIN;
	int at_max = 0, rc;

	do {
		rc = move_piece(t, region, b, size);
		at_max += size == PIECE_BYTES_MAX;
		size = size < PIECE_BYTES_MAX ? 2 * size : size;
	} while (!rc && at_max < ROUNDS_AT_MAX && now_s() < end);
	return rc;
}

static int time_small(struct data_proof *t, struct weir_region *region, const struct buffers *b,
		      bool writes, double *each_us)
{
	double start = now_s(), end = start + t->seconds / 4;
	int rounds = 0, rc;

	do
		rc = writes ? weir_write(region, 0, b->out, SMALL_BYTES) :
			      weir_read(region, 0, b->in, SMALL_BYTES);
	while (!rc && ++rounds < SMALL_ROUNDS && now_s() < end);
	*each_us = (now_s() - start) * 1e6 / (rounds ? rounds : 1);
	return rc;
}

static int measure(struct data_proof *t, struct weir_session *session, const struct buffers *b,
		   struct weir_error *error)
{
	struct weir_region *region;
	int rc = weir_region_create(session, NULL, PIECE_BYTES_MAX, 0, &region, error);

	if (rc)
		return rc;
	rc = move_pieces(t, region, b);
	rc = rc ? rc : time_small(t, region, b, true, &t->write_us);
	rc = rc ? rc : time_small(t, region, b, false, &t->read_us);
	if (rc)
		snprintf(error->text, sizeof(error->text), "%s",
			 rc == -EBADMSG ? "the data read differs from the data written" :
					  weir_strerror(rc));
	weir_session_info(session, &t->info, sizeof(t->info));
	weir_region_close(region);
	return rc;
}

int transfer_prove(struct data_proof *t, struct weir_error *error)
{
	struct weir_session_options options = { .size = sizeof(options),
						.key = t->key,
						.device = t->device,
						.encryption = t->encryption };
	struct buffers b = { malloc(PIECE_BYTES_MAX), malloc(PIECE_BYTES_MAX) };
	struct weir_session *session;
	int rc;

	snprintf(error->text, sizeof(error->text), "out of memory");
	rc = b.out && b.in ? weir_session_open(t->address, &options, &session, error) : -ENOMEM;
	if (!rc) {
		rc = measure(t, session, &b, error);
		weir_session_close(session);
	}
	free(b.out);
	free(b.in);
	return rc;
}
