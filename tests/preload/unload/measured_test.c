/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: unload measured; devices: softnic rxe; timeout: 300 */
/* A program with measured unloading. On these devices unloading is never faster. */
#include "tests/preload/unload/drive.h"

#include <stdlib.h>

#include "core/unload/path.h"

/* Cold writes of a trial, and the wait for another trial after a failed one. */
#define SETTLES_WITHIN (4 * (WEIR_PATH_REST_MIN + WEIR_PATH_PROBES))

/* These devices have no cache to miss. One page is hot, the others are cold. */
static void measured_unloading_settles_on_the_device(void **state)
{
	struct diag_counters before, last;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct loopback_pair pair;
	uint32_t i, since = 0;

	(void)state;
	pair_open(&pair);
	assert_true(pair_connect(&pair, NULL));
	wr = small_write(&pair, &sge);
	before = last = said_now();
	/* No trial starts before the peer is found, after any time. */
	while (said_now().unloaded == before.unloaded) {
		complete(&pair, &wr);
		wr.wr.rdma.remote_addr ^= 4096;
	}
	for (i = 0; since < WEIR_PATH_REST_MIN / 2; i++, since++) {
		assert_true(i <= SETTLES_WITHIN);
		wr.wr.rdma.remote_addr = (uintptr_t)pair.bytes + PAIR_BYTES + i % 8 * 4096;
		complete(&pair, &wr);
		if (said_now().unloaded != last.unloaded)
			since = 0;
		last = said_now();
	}
	print_message("settled after %u small writes, %u of them unloaded\n", i - since,
		      (unsigned int)(last.unloaded - before.unloaded));
	pair_close(&pair);
}

static uint64_t unloaded_since(const struct diag_counters *before)
{
	return said_now().unloaded - before->unloaded;
}

/* Alternates between two pages, so that both are cold. */
static void write_until_unloaded(struct loopback_pair *pair, struct ibv_send_wr *wr,
				 const struct diag_counters *before)
{
	uint64_t until = now_ns() + PATIENCE_S * 1000000000ull;

	for (; !unloaded_since(before); wr->wr.rdma.remote_addr ^= 4096) {
		complete(pair, wr);
		assert_true(now_ns() < until);
	}
}

/* A reset cancels the current measurement. */
static void a_trial_goes_on_after_a_reset(void **state)
{
	struct diag_counters before, anew;
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct loopback_pair pair;
	uint32_t i;

	(void)state;
	pair_open(&pair);
	assert_true(pair_connect(&pair, NULL));
	wr = small_write(&pair, &sge);
	before = said_now();
	write_until_unloaded(&pair, &wr, &before);
	wr.wr.rdma.remote_addr = (uintptr_t)pair.bytes + PAIR_BYTES + 7 * 4096; /* cold */
	assert_int_equal(ibv_post_send(pair.qp[0], &wr, &bad), 0);
	pair_begin_anew(&pair);
	anew = said_now();
	write_until_unloaded(&pair, &wr, &anew);
	for (i = 0; unloaded_since(&before) <= WEIR_PATH_PROBES / 2; i++) {
		assert_true(i <= SETTLES_WITHIN); /* the second trial comes */
		wr.wr.rdma.remote_addr = (uintptr_t)pair.bytes + PAIR_BYTES + i % 8 * 4096;
		complete(&pair, &wr);
	}
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measured_unloading_settles_on_the_device),
		cmocka_unit_test(a_trial_goes_on_after_a_reset),
	};

	setenv("WEIR_UNLOAD", "measured", 1);
	setenv("WEIR_UNLOAD_HOT_PAGES", "1", 1);
	return cmocka_run_group_tests_name("unload measured", tests, NULL, NULL);
}
