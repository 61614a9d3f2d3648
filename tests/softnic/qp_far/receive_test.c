// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic far receive; devices: softnic; timeout: 60 */
/*
 * The engine copies what comes from other hosts into the buffers that the program posted, also if a
 * peer of this host writes into the receive queue. Both ends are in this process, and their packets
 * take the way to other hosts.
 */
#include "tests/support/redirect.h"
#include "tests/support/verbs_puppet.h"
#include "softnic/qp_far/far.h"

enum { FAR = 1 << 20, LONG = 64 << 10, OWN = 4096 };

static void connect_both(struct endpoint *a, struct endpoint *b)
{
	struct endpoint_name name = end_name(b);

	end_connect(a, &name, &plain);
	name = end_name(a);
	end_connect(b, &name, &plain);
}

static void redirected_receives_get_their_messages(void **state)
{
	static const uint32_t lengths[] = { 1, 100, OWN, LONG };
	static uint8_t own[OWN];
	struct endpoint a, b;
	struct test_wr w;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	size_t i, at;

	(void)state;
	end_open(&a, ALL_ACCESS);
	end_open_sharing(&b, &a);
	connect_both(&a, &b);
	assert_true(far_is_connected(to_qp(b.qp)));
	pd = ibv_alloc_pd(b.ctx);
	assert_non_null(pd);
	mr = ibv_reg_mr(pd, own, sizeof(own), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(a.buf, 2 + i, lengths[i]);
		assert_int_equal(post_recv(&b, i, FAR, lengths[i]), 0);
		assert_int_equal(redirect(&b, FAR, mr), 1);
		do_wr(&a, wr_make(&w, &a, IBV_WR_SEND, 0, lengths[i], 0), IBV_WC_SUCCESS);
		wc = wait_wc(&b);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, lengths[i]);
		assert_memory_equal(b.buf + FAR, a.buf, lengths[i]);
	}
	for (at = 0; at < sizeof(own); at++)
		assert_int_equal(own[at], 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	end_close(&b);
	end_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(redirected_receives_get_their_messages),
	};

	setenv("WEIR_SOFTNIC", "near=0", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
