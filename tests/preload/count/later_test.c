/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: verbs count later; suites: verbs */
/*
 * Counts operations that neither softnic nor Soft-RoCE supports, on a mock device that accepts all
 * operations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/count/wrap.h"

struct verbs_counters verbs_counters;
static int begun;

static void start(struct ibv_qp_ex *qp)
{
	(void)qp;
}

static int complete(struct ibv_qp_ex *qp)
{
	(void)qp;
	return 0;
}

static void set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	(void)qp;
	(void)lkey;
	(void)addr;
	(void)length;
}

static void send_tso(struct ibv_qp_ex *qp, void *header, uint16_t header_length, uint16_t mss)
{
	(void)qp;
	(void)header;
	(void)header_length;
	(void)mss;
	begun++;
}

static void atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, const void *word)
{
	(void)qp;
	(void)rkey;
	(void)addr;
	(void)word;
	begun++;
}

#ifdef HAVE_WR_FLUSH
static void flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t length, uint8_t type,
		  uint8_t level)
{
	(void)qp;
	(void)rkey;
	(void)addr;
	(void)length;
	(void)type;
	(void)level;
	begun++;
}
#endif

static struct ibv_qp_ex device = {
	.wr_start = start,
	.wr_complete = complete,
	.wr_set_sge = set_sge,
	.wr_send_tso = send_tso,
	.wr_atomic_write = atomic_write,
#ifdef HAVE_WR_FLUSH
	.wr_flush = flush,
#endif
};

static void they_are_counted(void **state)
{
	uint64_t word = 0;
	int posted = 2;

	(void)state;
	wrap_qp(&device);
	ibv_wr_start(&device);
	ibv_wr_send_tso(&device, &word, sizeof(word), 1024);
	ibv_wr_set_sge(&device, 1, 0, 5000);
	ibv_wr_atomic_write(&device, 1, 0, &word);
#ifdef HAVE_WR_FLUSH
	ibv_wr_flush(&device, 1, 0, 4096, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	posted++;
#endif
	assert_int_equal(ibv_wr_complete(&device), 0);
	assert_int_equal(begun, posted);
	assert_int_equal(verbs_counters.doorbells, 1);
	assert_int_equal(verbs_counters.send_wrs, posted);
	assert_int_equal(verbs_counters.posted_sends, 1);
	assert_int_equal(verbs_counters.posted_send_bytes, 5000);
	assert_int_equal(verbs_counters.posted_atomics, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(they_are_counted) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
