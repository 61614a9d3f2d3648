// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * pollcost [ROUNDS]: cost of ibv_poll_cq() with 1, 10, 100 and 1,000 queue pairs on one completion
 * queue, with none or one busy. Each queue pair is connected to itself. The busy queue pair sends
 * itself 8 bytes, so that a poll finds two completions. Medians.
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/common/number.h"
#include "lib/base/clock.h"
#include "loopback_qp.h"

enum { QPS_MAX = 1000, ROUNDS = 2001, ROOM = 16 };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t buffer[64];

/* Nanoseconds of one poll, or, without a queue, of the measurement itself. */
static uint64_t measure(struct ibv_cq *polled, int expected)
{
	struct ibv_wc wc[ROOM];
	uint64_t begin_ns = weir_now_ns(), ns;
	int n = polled ? ibv_poll_cq(polled, ROOM, wc) : 0;

	ns = weir_now_ns() - begin_ns;
	if (n != expected)
		errx(1, "%d completions, expected %d", n, expected);
	return ns;
}

static struct ibv_qp *create_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { 8, 8, 1, 1, 0 },
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp)
		err(1, "ibv_create_qp");
	loopback_qp_connect(qp);
	return qp;
}

static void send_to_itself(struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)buffer, 8, mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	if (ibv_post_recv(qp, &recv, &bad_recv) || ibv_post_send(qp, &send, &bad))
		errx(1, "no way to post");
}

static void drain(int completions)
{
	struct ibv_wc wc;
	int n;

	while (completions) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n && wc.status)
			errx(1, "%s", ibv_wc_status_str(wc.status));
		completions -= n;
	}
}

static uint64_t median(int rounds, struct ibv_cq *polled, struct ibv_qp *busy)
{
	uint64_t *all = calloc(rounds, sizeof(*all)), middle;
	int i;

	if (!all)
		err(1, "calloc");
	for (i = 0; i < rounds; i++) {
		if (busy)
			send_to_itself(busy);
		all[i] = measure(polled, busy ? 2 : 0);
	}
	qsort(all, rounds, sizeof(*all), number_compare);
	middle = all[rounds / 2];
	free(all);
	return middle;
}

static void print_row(int qps, int rounds, struct ibv_qp *busy)
{
	int64_t none = median(rounds, NULL, NULL);

	printf("%11d %10d %14d\n", qps, (int)(median(rounds, cq, NULL) - none),
	       (int)(median(rounds, cq, busy) - none));
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS, i;
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_qp *busy = NULL;

	ctx = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	if (!ctx || rounds < 1)
		errx(2, "usage: pollcost [ROUNDS], where there is a device: weir run -- pollcost");
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 4 * QPS_MAX, NULL, NULL, 0);
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	if (!pd || !cq || !mr)
		err(1, "making what a queue pair needs");
	printf("queue pairs  empty, ns  one busy, ns\n");
	for (i = 1; i <= QPS_MAX; i++) {
		struct ibv_qp *qp = create_qp();

		send_to_itself(qp);
		drain(2);
		busy = busy ? busy : qp;
		if (i == 1 || i == 10 || i == 100 || i == 1000)
			print_row(i, rounds, busy);
	}
	ibv_free_device_list(devices);
	return 0;
}
