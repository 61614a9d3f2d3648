/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/preload/unload/drive.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int rounds(int count)
{
	const char *size = getenv("WEIR_TEST_SIZE");
	int scaled = size ? (int)(count * strtod(size, NULL)) : count;

	return scaled > 2 ? scaled : 2;
}

struct ibv_wc next_wc(struct loopback_pair *pair)
{
	uint64_t until = now_ns() + PATIENCE_S * 1000000000ull;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(pair->cq, 1, &wc))) {
		sched_yield();
		if (now_ns() > until)
			fail_msg("no completion in %d s", PATIENCE_S);
	}
	assert_int_equal(n, 1);
	return wc;
}

void post(struct loopback_pair *pair, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(pair->qp[0], wr, &bad), 0);
}

void complete(struct loopback_pair *pair, struct ibv_send_wr *wr)
{
	struct ibv_wc wc;

	post(pair, wr);
	wc = next_wc(pair);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr->wr_id);
}

struct diag_counters said_now(void)
{
	struct diag_counters diag_counters;

	weir_unload_read(&diag_counters);
	return diag_counters;
}

uint64_t unloaded(void)
{
	return said_now().unloaded;
}

void assert_no_completion(struct loopback_pair *pair)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(pair->cq, 1, &wc), 0);
}

struct ibv_send_wr small_write(struct loopback_pair *pair, struct ibv_sge *sge)
{
	*sge = pair_sge(pair, SMALL);
	return pair_wr(pair, IBV_WR_RDMA_WRITE, sge);
}

/* Writes until the QPs have found each other. */
void open_unloading_made(struct loopback_pair *pair, pair_make_fn *make)
{
	uint64_t before, until = now_ns() + PATIENCE_S * 1000000000ull;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	memset(pair, 0, sizeof(*pair));
	pair_open(pair);
	assert_true(pair_connect(pair, make));
	wr = small_write(pair, &sge);
	before = unloaded();
	while (unloaded() == before) {
		assert_true(now_ns() < until);
		complete(pair, &wr);
	}
}

void open_unloading(struct loopback_pair *pair)
{
	open_unloading_made(pair, NULL);
}

struct ibv_qp *make_deep(struct loopback_pair *pair, struct ibv_qp_init_attr *init)
{
	init->cap.max_send_wr = LIST;
	return ibv_create_qp(pair->pd, init);
}

bool write_list(struct loopback_pair *pair, char *to, uint32_t rkey, int value)
{
	struct ibv_send_wr wrs[LIST], *bad;
	struct ibv_sge sges[LIST];
	int i;

	for (i = 0; i < LIST; i++) {
		sges[i] = pair_sge(pair, SMALL);
		wrs[i] = pair_wr(pair, IBV_WR_RDMA_WRITE, &sges[i]);
		wrs[i].wr.rdma.remote_addr = (uintptr_t)to + i % (LIST_BYTES / SMALL) * SMALL;
		wrs[i].wr.rdma.rkey = rkey;
		wrs[i].send_flags = IBV_SEND_INLINE | (i == LIST - 1 ? IBV_SEND_SIGNALED : 0);
		wrs[i].next = i < LIST - 1 ? &wrs[i + 1] : NULL;
	}
	memset(pair->bytes, value, SMALL);
	if (ibv_post_send(pair->qp[0], wrs, &bad))
		return false;
	return next_wc(pair).status == IBV_WC_SUCCESS;
}
