// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic roce rate */
/* The congestion window alone, and two connections that share a slow link with a short queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/rng.h"
#include "softnic/roce/qp.h"

enum {
	MTU = 1024,
	FLOWS = 2,
	WQES = 16,
	MESSAGE = 16 * MTU,
	PACKET_NS = 10000, /* of the link: 100 MB/s */
	DELAY_NS = 100000, /* each way */
	JITTER_NS = 3000,
	QUEUE = 24, /* packets */
	RUN_NS = 300000000,
	FLYING = 4096,
};

struct link_packet {
	uint64_t at_ns;
	struct roce_qp *to;
	size_t size;
	uint8_t bytes[ROCE_PACKET_MAX];
};

static struct roce_qp ends[FLOWS][2];
static struct roce_wqe wqes[FLOWS][2][WQES];
static struct roce_resource resources[FLOWS][2];
static struct link_packet flying[FLYING];
static uint32_t num_flying;
static uint64_t now_ns, link_free_ns, rng, done[FLOWS];

static enum roce_status gather(void *host, const struct roce_wqe *wqe, uint32_t offset,
			       uint32_t bytes, uint8_t *to)
{
	(void)host, (void)wqe, (void)offset;
	memset(to, 0, bytes);
	return ROCE_SUCCESS;
}

static enum roce_status check(void *host, uint32_t rkey, enum roce_right right, uint64_t addr,
			      uint32_t bytes)
{
	(void)host, (void)rkey, (void)right, (void)addr, (void)bytes;
	return ROCE_SUCCESS;
}

static enum roce_status write_memory(void *host, uint32_t rkey, uint64_t addr, const uint8_t *from,
				     uint32_t bytes)
{
	(void)host, (void)rkey, (void)addr, (void)from, (void)bytes;
	return ROCE_SUCCESS;
}

static int64_t receives(void *host)
{
	(void)host;
	return ROCE_RECEIVES_UNKNOWN;
}

static const struct roce_ops ops = {
	.gather = gather,
	.check = check,
	.write = write_memory,
	.receives = receives,
};

static void start(void)
{
	uint32_t flow, side;

	for (flow = 0; flow < FLOWS; flow++)
		for (side = 0; side < 2; side++) {
			const struct roce_config config = {
				.ops = &ops,
				.wqes = wqes[flow][side],
				.resources = &resources[flow][side],
				.send_size = WQES,
				.qpn = 2 * flow + side,
				.dest_qpn = 2 * flow + 1 - side,
				.mtu = MTU,
				.window = 256,
				.read_packets = 32,
				.max_rd_atomic = 1,
				.max_dest_rd_atomic = 1,
				.timeout = 9, /* 2 ms */
				.retries = 7,
				.rnr_retries = 7,
			};

			roce_qp_init(&ends[flow][side], &config);
		}
}

/* The link carries data one packet after the other, and drops what its queue has no room for. */
static void launch(struct roce_qp *to, bool is_data, const uint8_t *bytes, size_t size)
{
	uint64_t at_ns = now_ns;
	struct link_packet *f = &flying[num_flying];

	if (is_data) {
		at_ns = link_free_ns > now_ns ? link_free_ns : now_ns;
		if (at_ns - now_ns >= QUEUE * PACKET_NS)
			return;
		at_ns += PACKET_NS;
		link_free_ns = at_ns;
	} else {
		at_ns += weir_rng_scale(weir_rng_next(&rng), JITTER_NS);
	}
	assert_true(num_flying++ < FLYING);
	f->at_ns = at_ns + DELAY_NS;
	f->to = to;
	f->size = size;
	memcpy(f->bytes, bytes, size);
}

static void pump(uint32_t flow)
{
	static const struct roce_wqe write = { .op = ROCE_OP_WRITE, .length = MESSAGE };
	uint8_t bytes[ROCE_PACKET_MAX];
	struct roce_completion c;
	uint64_t path;
	uint32_t side;
	size_t size;

	while (!roce_qp_post(&ends[flow][0], &write))
		;
	for (side = 0; side < 2; side++) {
		roce_qp_expired(&ends[flow][side], now_ns);
		while ((size = roce_qp_output(&ends[flow][side], bytes, &path, now_ns)))
			launch(&ends[flow][1 - side], !side, bytes, size + ROCE_ICRC_BYTES);
	}
	while (roce_qp_completion(&ends[flow][0], &c)) {
		assert_int_equal(c.status, ROCE_SUCCESS);
		done[flow] += MESSAGE;
	}
}

static void arrive(uint32_t i)
{
	struct roce_packet p;

	assert_int_equal(roce_packet_decode(&p, flying[i].bytes, flying[i].size), ROCE_ACCEPTED);
	roce_qp_input(flying[i].to, &p, NULL, now_ns);
	memmove(&flying[i], &flying[i + 1], (--num_flying - i) * sizeof(flying[i]));
}

/* Runs @flows from now on until @until_ns. */
static void run(uint32_t flows, uint64_t until_ns)
{
	uint64_t next_ns = 0;
	uint32_t i, first;

	while (now_ns < until_ns) {
		for (i = 0; i < flows; i++)
			pump(i);
		next_ns = roce_qp_deadline_ns(&ends[0][0]);
		if (flows > 1 && roce_qp_deadline_ns(&ends[1][0]) < next_ns)
			next_ns = roce_qp_deadline_ns(&ends[1][0]);
		for (i = 0, first = num_flying; i < num_flying; i++)
			if (flying[i].at_ns < next_ns) {
				next_ns = flying[i].at_ns;
				first = i;
			}
		now_ns = next_ns;
		if (first < num_flying)
			arrive(first);
	}
}

static void test_two_connections_share_a_link(void **state)
{
	uint64_t alone, fair, capacity = (uint64_t)RUN_NS / PACKET_NS * MTU;

	(void)state;
	start();
	run(1, RUN_NS); /* the second begins late, at an established first */
	alone = done[0];
	done[0] = 0;
	run(2, 3ull * RUN_NS);
	fair = (done[0] + done[1]) / 2;
	print_message("# alone %.2f, together %.2f + %.2f of the link; sent again %llu + %llu\n",
		      (double)alone / capacity, done[0] / 2.0 / capacity, done[1] / 2.0 / capacity,
		      (unsigned long long)ends[0][0].counters.retransmitted,
		      (unsigned long long)ends[1][0].counters.retransmitted);
	assert_true(alone > capacity * 6 / 10);
	assert_true(done[0] + done[1] > 2 * capacity * 6 / 10);
	assert_true(done[0] > fair * 7 / 10 && done[1] > fair * 7 / 10);
}

static void test_the_window_grows_and_halves(void **state)
{
	struct roce_rate rate;

	(void)state;
	roce_rate_init(&rate, 100);
	assert_int_equal(rate.window, 16);
	roce_rate_acked(&rate, 16);
	assert_int_equal(rate.window, 32);
	roce_rate_lost(&rate, 1000, 1032, false);
	assert_int_equal(rate.window, 16);
	roce_rate_lost(&rate, 1010, 1032, false); /* of the same window */
	assert_int_equal(rate.window, 16);
	roce_rate_acked(&rate, 15);
	assert_int_equal(rate.window, 16);
	roce_rate_acked(&rate, 1);
	assert_int_equal(rate.window, 17);
	roce_rate_lost(&rate, 1032, 1040, true);
	assert_int_equal(rate.window, 1);
	roce_rate_acked(&rate, 1);
	assert_int_equal(rate.window, 2);
	roce_rate_acked(&rate, 1000000);
	assert_int_equal(rate.window, 100);
	roce_rate_init(&rate, 1);
	roce_rate_lost(&rate, 1, 2, false);
	assert_int_equal(rate.window, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_window_grows_and_halves),
		cmocka_unit_test(test_two_connections_share_a_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
