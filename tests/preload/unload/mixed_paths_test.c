/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: unload mixed paths; devices: softnic rxe; timeout: 300 */
/* Both paths at once: a program's reads match a model of the memory. */
#include "tests/preload/unload/mix.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define SEEDS 8u
#define AREA_BYTES 2048u

/*
 * Writes after a read go by the device, like the read, until all has been polled. So the seed alone
 * decides which writes are unloaded, and timing does not.
 */
static void both_paths_mixed_equal_a_naive_memory(void **state)
{
	uint64_t by_device = 0;
	unsigned int seed;
	struct diag_counters came;

	(void)state;
	for (seed = 1; seed <= SEEDS; seed++) {
		came = mix(seed);
		assert_true(came.unloaded >= came.small / 4);
		by_device += came.small - came.unloaded;
	}
	assert_true(by_device > 0);
}

/* Writes to an area until a write fails. */
struct mixed_writer {
	struct loopback_pair pair;
	struct ibv_mr *area;
	uint32_t rkey; /* of @area, kept after its end */
	char bytes[AREA_BYTES];
	uint64_t written; /* atomic */
};

static void writer_register(struct mixed_writer *w)
{
	w->area = ibv_reg_mr(w->pair.pd, w->bytes, AREA_BYTES, RIGHTS);
	assert_non_null(w->area);
	w->rkey = w->area->rkey;
}

/* Unloads lists. The last write is refused first by the target's table, then by the device. */
static void *write_on(void *arg)
{
	struct mixed_writer *w = arg;
	uint64_t number;

	for (number = 0; write_list(&w->pair, w->bytes, w->rkey, (int)number); number++)
		__atomic_store_n(&w->written, number, __ATOMIC_RELEASE);
	return NULL;
}

static void while_others_write_deregistration_is_the_end(void **state)
{
	static struct mixed_writer w;
	char then[AREA_BYTES];
	pthread_t thread;
	uint64_t refused;
	int round;

	(void)state;
	for (round = rounds(5); round > 0; round--) {
		open_unloading_made(&w.pair, make_deep);
		writer_register(&w);
		w.written = 0;
		refused = said_now().refused;
		assert_int_equal(pthread_create(&thread, NULL, write_on, &w), 0);
		while (__atomic_load_n(&w.written, __ATOMIC_ACQUIRE) < 20)
			sched_yield();
		assert_int_equal(ibv_dereg_mr(w.area), 0);
		memcpy(then, w.bytes, AREA_BYTES);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_memory_equal(then, w.bytes, AREA_BYTES);
		assert_int_equal(said_now().refused, refused + 1);
		pair_close(&w.pair);
	}
}

/* The window's completion is polled like others, and says nothing about later WRs. */
static void binding_a_window_counts_as_work_in_flight(void **state)
{
	struct ibv_mw_bind bind = { .wr_id = 77, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_sge small_sge, large_sge;
	struct ibv_send_wr small, large;
	struct ibv_mw *window;
	struct ibv_mr *mr;
	struct loopback_pair pair;
	uint64_t before;

	(void)state;
	open_unloading(&pair);
	window = ibv_alloc_mw(pair.pd, IBV_MW_TYPE_1);
	mr = ibv_reg_mr(pair.pd, pair.bytes, 4096, RIGHTS | IBV_ACCESS_MW_BIND);
	assert_non_null(window);
	assert_non_null(mr);
	bind.bind_info = (struct ibv_mw_bind_info){ mr, (uintptr_t)pair.bytes, 4096,
						    IBV_ACCESS_REMOTE_READ };
	large_sge = pair_sge(&pair, 4096);
	large = pair_wr(&pair, IBV_WR_RDMA_WRITE, &large_sge);
	small = small_write(&pair, &small_sge);
	assert_int_equal(ibv_bind_mw(pair.qp[0], window, &bind), 0);
	post(&pair, &large);
	assert_int_equal(next_wc(&pair).wr_id, 77);
	before = unloaded();
	post(&pair, &small);
	assert_int_equal(unloaded(), before); /* the large write has not completed yet */
	assert_int_equal(next_wc(&pair).status, IBV_WC_SUCCESS);
	assert_int_equal(next_wc(&pair).status, IBV_WC_SUCCESS);
	assert_no_completion(&pair);
	assert_int_equal(ibv_dealloc_mw(window), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_paths_mixed_equal_a_naive_memory),
		cmocka_unit_test(while_others_write_deregistration_is_the_end),
		cmocka_unit_test(binding_a_window_counts_as_work_in_flight),
	};

	return cmocka_run_group_tests_name("unload mixed paths", tests, NULL, NULL);
}
