/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib volume erasure */
/* Any k fragments of a code k+r give all others, of each code that a pool allows. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/rng.h"
#include "lib/volume/coded/erasure.h"

#define LENGTH 64u
#define STRIPE (LENGTH * WEIR_EXTENTS_WIDTH_MAX)

static void fill(char *stripe, uint64_t seed)
{
	for (uint32_t i = 0; i < STRIPE; i++)
		stripe[i] = (char)weir_rng_next(&seed);
}

/* Loses all shards but those in @have, and computes the others. */
static void lose(const struct weir_volume_erasure *e, const char *whole, uint16_t have)
{
	uint16_t all = (uint16_t)((1u << e->width) - 1), lost = all & (uint16_t)~have;
	char stripe[STRIPE];

	memcpy(stripe, whole, STRIPE);
	for (uint8_t shard = 0; shard < e->width; shard++) {
		if (lost >> shard & 1)
			memset(stripe + shard * LENGTH, 0xee, LENGTH);
	}
	if (__builtin_popcount(have) < e->data) {
		assert_int_equal(weir_volume_erasure_recover(e, stripe, LENGTH, have, lost),
				 -EINVAL);
		return;
	}
	assert_int_equal(weir_volume_erasure_recover(e, stripe, LENGTH, have, lost), 0);
	assert_memory_equal(stripe, whole, (size_t)e->width * LENGTH);
}

static void any_k_fragments_give_all_others(void **state)
{
	(void)state;
	for (uint8_t data = 2; data < WEIR_EXTENTS_WIDTH_MAX; data++) {
		for (uint8_t spare = 1; data + spare <= (int)WEIR_EXTENTS_WIDTH_MAX; spare++) {
			struct weir_volume_erasure e;
			char whole[STRIPE], copy[STRIPE];

			weir_volume_erasure_init(&e, data, spare);
			fill(whole, data * 10u + spare);
			memcpy(copy, whole, STRIPE);
			weir_volume_erasure_encode(&e, whole, LENGTH);
			assert_memory_equal(whole, copy, (size_t)data * LENGTH);
			for (uint16_t have = 0; have < 1u << e.width; have++)
				lose(&e, whole, have);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_k_fragments_give_all_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
