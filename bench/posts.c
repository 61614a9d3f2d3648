// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * posts [ROUNDS [BYTES]]: time that a thread spends on posting small RDMA writes, on the queue
 * pair's own device or, under weir run --unload=always, unloaded. Measures ibv_post_send() of
 * unsignalled writes, back to back or with pauses of 20 us, and a signalled write until its
 * completion. The queue pair is connected to itself. Medians of rounds of 16, after a second of
 * warm-up.
 */
#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/common/number.h"
#include "lib/base/clock.h"
#include "loopback_qp.h"

enum { ROUND = 16, ROUNDS = 2001, BYTES = 16, INLINE_MAX = 64, REST_NS = 20000 };

static struct ibv_context *ctx;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t buffer[2 * 4096];

static void open_device(void)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { 64, 1, 1, 1, INLINE_MAX } };
	struct ibv_pd *pd;

	ctx = list && *list ? ibv_open_device(*list) : NULL;
	if (!ctx)
		errx(1, "there is no device");
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	if (!pd || !cq)
		errx(1, "no protection domain, or no completion queue");
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), access);
	if (!qp || !mr)
		errx(1, "no queue pair, or no region");
}

static void post(uint32_t bytes, unsigned int flags)
{
	struct ibv_sge sge = { (uintptr_t)buffer, bytes, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE | flags,
		.wr.rdma = { (uintptr_t)buffer + 4096, mr->rkey },
	};

	if (ibv_post_send(qp, &wr, &bad))
		errx(1, "no way to post");
}

static void complete(uint32_t bytes)
{
	struct ibv_wc wc;

	post(bytes, IBV_SEND_SIGNALED);
	while (!ibv_poll_cq(cq, 1, &wc))
		;
	if (wc.status)
		errx(1, "%s", ibv_wc_status_str(wc.status));
}

/* Nanoseconds a write, without the pause of @rest_ns after each. */
static uint64_t measure(uint32_t bytes, bool completes, uint64_t rest_ns)
{
	uint64_t sum_ns = 0, begin_ns, end_ns;
	int i;

	for (i = 0; i < ROUND; i++) {
		begin_ns = weir_now_ns();
		if (completes)
			complete(bytes);
		else
			post(bytes, 0);
		end_ns = weir_now_ns();
		sum_ns += end_ns - begin_ns;
		while (weir_now_ns() - end_ns < rest_ns)
			;
	}
	/* The completion frees the queue. */
	complete(bytes);
	return sum_ns / ROUND;
}

static void print_row(const char *what, uint32_t bytes, int rounds, bool completes,
		      uint64_t rest_ns)
{
	uint64_t *all = calloc(rounds, sizeof(*all));
	int i;

	if (!all)
		err(1, "calloc");
	for (i = 0; i < rounds; i++)
		all[i] = measure(bytes, completes, rest_ns);
	qsort(all, rounds, sizeof(*all), number_compare);
	printf("%-40s %8d ns (quartiles %d, %d)\n", what, (int)all[rounds / 2],
	       (int)all[rounds / 4], (int)all[rounds / 4 * 3]);
	free(all);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
	uint32_t bytes = argc > 2 ? (uint32_t)atoi(argv[2]) : BYTES;
	uint64_t begin_ns = weir_now_ns();

	if (rounds < 1 || bytes < 1 || bytes > INLINE_MAX)
		errx(2, "posts [ROUNDS [BYTES, 1 to %d]]", INLINE_MAX);
	open_device();
	loopback_qp_connect(qp);
	while (weir_now_ns() - begin_ns < 1000000000ull)
		complete(bytes);
	print_row("without a completion", bytes, rounds, false, 0);
	print_row("without a completion, now and then", bytes, rounds, false, REST_NS);
	print_row("until its completion", bytes, rounds, true, 0);
	return 0;
}
