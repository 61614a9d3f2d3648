// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A peer that attached as it should, and then writes at random wherever it may: it may break
 * its own connection, and disturb when we look for completions, but nobody crashes and the
 * bytes of others stay right.
 */
#include <signal.h>
#include <stdio.h>

#include "softnic/qp.h"
#include "verbs_harness.h"

enum { ROUNDS = 300 };

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

/* We play the honest side's other end, so what we map of it is what a hostile one could. */
static void scribble(const struct end *e, uint64_t *random)
{
	const struct remote *r = &to_qp(e->qp)->remote;
	uint32_t *words = (uint32_t *)r->shared;
	uint32_t n = r->size / sizeof(*words), i;

	for (i = 0; i < n / 4; i++)
		store_relaxed(&words[next_random(random) % n], next_random(random) %
			      (next_random(random) % 2 ? 64 : UINT32_MAX));
}

/* Whatever is posted, nothing may be said to have gone where it did not. */
static void drain(struct end *e)
{
	struct ibv_wc wc[8];
	int i, n = ibv_poll_cq(e->cq, 8, wc);

	for (i = 0; i < n; i++)
		assert_true(wc[i].opcode != IBV_WC_RECV || wc[i].byte_len <= 64);
}

static void connect_both(struct end *a, struct end *b)
{
	struct name name = end_name(b);

	end_connect(a, &name, &plain);
	name = end_name(a);
	end_connect(b, &name, &plain);
}

static void be_victim(uint64_t seed)
{
	struct end victim, hostile;
	struct wr w;
	int i;

	end_open(&victim, ALL_ACCESS);
	end_open_sharing(&hostile, &victim);
	connect_both(&victim, &hostile);
	do_wr(&hostile, wr_make(&w, &hostile, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	do_wr(&victim, wr_make(&w, &victim, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	for (i = 0; i < ROUNDS; i++) {
		scribble(&hostile, &seed);
		post_recv(&victim, i, 64 * (i % 16), 64);
		post(&victim, wr_make(&w, &victim, i % 2 ? IBV_WR_SEND : IBV_WR_RDMA_READ, 4096,
				      64, 4096));
		post(&hostile, wr_make(&w, &hostile, IBV_WR_SEND, 8192, 64, 0));
		drain(&victim);
		drain(&hostile);
	}
	end_close(&hostile);
	end_close(&victim);
}

static void test_a_peer_that_scribbles_crashes_nobody(void **state)
{
	struct pair *honest = *state;
	uint64_t seed;
	struct wr w;

	for (seed = 1; seed <= 20; seed++) {
		be_victim(seed);
		memset(honest->e.buf, seed, 4096);
		do_wr(&honest->e, wr_make(&w, &honest->e, IBV_WR_RDMA_WRITE, 0, 4096, 0),
		      IBV_WC_SUCCESS);
		assert_int_equal(tell(&honest->p, ORDER_PEEK, 4088, 0, 0).value,
				 0x0101010101010101ull * seed);
	}
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test_setup_teardown(test_a_peer_that_scribbles_crashes_nobody,
						pair_up, pair_down),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
