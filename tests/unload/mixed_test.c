/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Both paths at once: whatever a program does, what it finds is what a naive memory has; and who
 * unloads is told when not to. The CPU that copies has little time here, so peers change paths often.
 */
#include "tests/unload/drive.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define AREAS 4u
#define AREA_BYTES 2048u
#define MEMORY (AREAS * AREA_BYTES)
#define PIECE 512u /* of the initiator's memory, one for each place in the queue */
#define SEEDS 8u
#define ROUNDS 50 /* of each */
#define LIST 64 /* writes of one post, as many as there are slots */
#define CPU_PERCENT "1"

/* What a place in the queue must find when it is over: nothing, if @length is 0. */
struct found {
	uint32_t length;
	char bytes[PIECE];
};

/*
 * Each area is registered by itself, anew now and then. What is under way is in the order of the
 * queue: the completions come in that order.
 */
struct mix {
	struct pair pair;
	struct ibv_mr *area[AREAS];
	char model[MEMORY]; /* what the target's memory must hold */
	struct found found[PAIR_DEPTH];
	uint64_t next_id;
	uint64_t seen_id; /* all before it are over */
};

static char *piece_of(struct mix *m, uint64_t id)
{
	return m->pair.bytes + id % PAIR_DEPTH * PIECE;
}

static void take_one(struct mix *m)
{
	struct ibv_wc wc = next_wc(&m->pair);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_in_range(wc.wr_id, m->seen_id, m->next_id - 1);
	for (; m->seen_id <= wc.wr_id; m->seen_id++) {
		const struct found *f = &m->found[m->seen_id % PAIR_DEPTH];

		assert_memory_equal(piece_of(m, m->seen_id), f->bytes, f->length);
	}
}

static void take_all(struct mix *m)
{
	while (m->seen_id < m->next_id)
		take_one(m);
	assert_no_completion(&m->pair);
}

static char *memory_of(struct mix *m)
{
	return m->pair.bytes + PAIR_BYTES;
}

static void area_register(struct mix *m, uint32_t area)
{
	m->area[area] = ibv_reg_mr(m->pair.pd, memory_of(m) + area * AREA_BYTES, AREA_BYTES, RIGHTS);
	assert_non_null(m->area[area]);
}

/* Where a request of @length goes: the offset in the memory; its key is that of the area. */
static uint32_t somewhere(struct mix *m, uint32_t length, uint32_t aligned, uint32_t *rkey)
{
	uint32_t area = (uint32_t)rand() % AREAS;
	uint32_t at = (uint32_t)rand() % (AREA_BYTES - length + 1) / aligned * aligned;

	*rkey = m->area[area]->rkey;
	return area * AREA_BYTES + at;
}

static void mix_write(struct mix *m, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	char *data = piece_of(m, wr->wr_id);
	uint32_t i, to;

	sge->length = 1 + (uint32_t)rand() % (rand() % 2 ? 300 : 16);
	to = somewhere(m, sge->length, 1, &wr->wr.rdma.rkey);
	for (i = 0; i < sge->length; i++)
		data[i] = (char)rand();
	wr->opcode = IBV_WR_RDMA_WRITE;
	wr->wr.rdma.remote_addr = (uintptr_t)memory_of(m) + to;
	memcpy(m->model + to, data, sge->length);
}

static void mix_read(struct mix *m, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct found *f = &m->found[wr->wr_id % PAIR_DEPTH];
	uint32_t to;

	sge->length = f->length = 1 + (uint32_t)rand() % 100;
	to = somewhere(m, sge->length, 1, &wr->wr.rdma.rkey);
	wr->opcode = IBV_WR_RDMA_READ;
	wr->wr.rdma.remote_addr = (uintptr_t)memory_of(m) + to;
	memcpy(f->bytes, m->model + to, f->length);
}

static void mix_add(struct mix *m, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct found *f = &m->found[wr->wr_id % PAIR_DEPTH];
	uint32_t to = somewhere(m, 8, 8, &wr->wr.atomic.rkey);
	uint64_t sum;

	sge->length = f->length = 8;
	wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr->wr.atomic.remote_addr = (uintptr_t)memory_of(m) + to;
	wr->wr.atomic.compare_add = (uint64_t)rand();
	memcpy(f->bytes, m->model + to, 8);
	memcpy(&sum, m->model + to, 8);
	sum += wr->wr.atomic.compare_add;
	memcpy(m->model + to, &sum, 8);
}

/* A write behind a read or an atomic may pass it, where it has no fence. */
static void mix_one(struct mix *m, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	int what = rand() % 8;

	m->found[wr->wr_id % PAIR_DEPTH].length = 0;
	if (what == 0)
		mix_read(m, wr, sge);
	else if (what == 1)
		mix_add(m, wr, sge);
	else
		mix_write(m, wr, sge);
	wr->send_flags = IBV_SEND_FENCE | (rand() % 2 ? IBV_SEND_SIGNALED : 0);
}

/* Lists of one to four, the last of which has a completion; at most one queue of them. */
static void mix_post(struct mix *m)
{
	struct ibv_send_wr wrs[4], *bad;
	struct ibv_sge sges[4];
	int i, n = 1 + rand() % 4;

	if (m->next_id - m->seen_id + (uint64_t)n > PAIR_DEPTH)
		take_all(m);
	for (i = 0; i < n; i++) {
		uint64_t id = m->next_id + (uint64_t)i;

		sges[i] = (struct ibv_sge){ (uintptr_t)piece_of(m, id), 0, m->pair.mr->lkey };
		wrs[i] = (struct ibv_send_wr){ .wr_id = id, .sg_list = &sges[i], .num_sge = 1,
					       .next = i + 1 < n ? &wrs[i + 1] : NULL };
		mix_one(m, &wrs[i], &sges[i]);
	}
	wrs[n - 1].send_flags |= IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(m->pair.qp[0], wrs, &bad), 0);
	m->next_id += (uint64_t)n;
}

/* What is written is there when nothing is under way; what was deregistered has not changed. */
static void mix_round(struct mix *m)
{
	uint32_t area = (uint32_t)rand() % AREAS;
	int i;

	for (i = rand() % 8; i >= 0; i--)
		mix_post(m);
	take_all(m);
	assert_memory_equal(m->model, memory_of(m), MEMORY);
	if (rand() % 2)
		return;
	assert_int_equal(ibv_dereg_mr(m->area[area]), 0);
	area_register(m, area);
}

static void mix(unsigned int seed)
{
	static struct mix m;
	struct said before;
	uint32_t i;
	int round;

	print_message("seed %u\n", seed);
	srand(seed);
	memset(&m, 0, sizeof(m));
	open_unloading(&m.pair);
	memset(memory_of(&m), 0, MEMORY);
	for (i = 0; i < AREAS; i++)
		area_register(&m, i);
	before = said_now();
	for (round = rounds(ROUNDS); round > 0 || said_now().unloaded == before.unloaded; round--)
		mix_round(&m);
	assert_int_equal(said_now().refused, before.refused);
	for (i = 0; i < AREAS; i++)
		assert_int_equal(ibv_dereg_mr(m.area[i]), 0);
	pair_close(&m.pair);
}

static void both_paths_mixed_equal_a_naive_memory(void **state)
{
	unsigned int seed;

	(void)state;
	for (seed = 1; seed <= SEEDS; seed++)
		mix(seed);
}

/* Writes without end to an area, until one fails. */
struct writer {
	struct pair pair;
	struct ibv_mr *area;
	uint32_t rkey; /* of that, and still when it has gone */
	char bytes[AREA_BYTES];
	uint64_t written; /* atomic */
};

static void writer_register(struct writer *w)
{
	w->area = ibv_reg_mr(w->pair.pd, w->bytes, AREA_BYTES, RIGHTS);
	assert_non_null(w->area);
	w->rkey = w->area->rkey;
}

static struct ibv_qp *make_deep(struct pair *pair, struct ibv_qp_init_attr *init)
{
	init->cap.max_send_wr = LIST;
	return ibv_create_qp(pair->pd, init);
}

/* A list of which the last completes. Returns whether it has, and all is well. */
static bool write_list(struct writer *w, uint64_t number)
{
	struct ibv_send_wr wrs[LIST], *bad;
	struct ibv_sge sges[LIST];
	struct ibv_wc wc;
	int i, n;

	for (i = 0; i < LIST; i++) {
		sges[i] = pair_sge(&w->pair, SMALL);
		wrs[i] = pair_wr(&w->pair, IBV_WR_RDMA_WRITE, &sges[i]);
		wrs[i].wr.rdma.remote_addr = (uintptr_t)w->bytes + i % 32 * SMALL;
		wrs[i].wr.rdma.rkey = w->rkey;
		wrs[i].send_flags = IBV_SEND_INLINE | (i == LIST - 1 ? IBV_SEND_SIGNALED : 0);
		wrs[i].next = i < LIST - 1 ? &wrs[i + 1] : NULL;
	}
	memset(w->pair.bytes, (int)number, SMALL);
	if (ibv_post_send(w->pair.qp[0], wrs, &bad))
		return false;
	while (!(n = ibv_poll_cq(w->pair.cq, 1, &wc)))
		sched_yield();
	return n == 1 && wc.status == IBV_WC_SUCCESS;
}

static void *write_on(void *arg)
{
	struct writer *w = arg;
	uint64_t number;

	for (number = 0; write_list(w, number); number++)
		__atomic_store_n(&w->written, number, __ATOMIC_RELEASE);
	return NULL;
}

static void while_others_write_deregistration_is_the_end(void **state)
{
	static struct writer w;
	char then[AREA_BYTES];
	pthread_t thread;
	int round;

	(void)state;
	for (round = rounds(5); round > 0; round--) {
		open_unloading_made(&w.pair, make_deep);
		writer_register(&w);
		w.written = 0;
		assert_int_equal(pthread_create(&thread, NULL, write_on, &w), 0);
		while (__atomic_load_n(&w.written, __ATOMIC_ACQUIRE) < 20)
			sched_yield();
		assert_int_equal(ibv_dereg_mr(w.area), 0);
		memcpy(then, w.bytes, AREA_BYTES);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_memory_equal(then, w.bytes, AREA_BYTES);
		pair_close(&w.pair);
	}
}

/* 100 us of each 10 ms. */
static void who_has_copied_enough_has_peers_write_by_the_device(void **state)
{
	uint64_t until = now_ns() + PATIENCE_S * 1000000000ull;
	struct said before, now;
	struct writer w = { 0 };

	(void)state;
	open_unloading_made(&w.pair, make_deep);
	writer_register(&w);
	before = said_now();
	do {
		assert_true(now_ns() < until);
		assert_true(write_list(&w, 0));
		now = said_now();
	} while (now.pauses == before.pauses ||
		 now.small - now.unloaded == before.small - before.unloaded);
	assert_int_equal(ibv_dereg_mr(w.area), 0);
	pair_close(&w.pair);
}

/* Its completion is polled as others are, and says nothing of what was posted after it. */
static void a_window_that_is_bound_is_one_of_what_is_under_way(void **state)
{
	struct ibv_mw_bind bind = { .wr_id = 77, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_sge small_sge, large_sge;
	struct ibv_send_wr small, large;
	struct ibv_mw *window;
	struct ibv_mr *mr;
	struct pair pair;
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
	assert_int_equal(unloaded(), before); /* the large one has not been seen to end */
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
		cmocka_unit_test(a_window_that_is_bound_is_one_of_what_is_under_way),
		cmocka_unit_test(who_has_copied_enough_has_peers_write_by_the_device),
	};

	setenv("WEIR_UNLOAD_CPU", CPU_PERCENT, 1);
	return cmocka_run_group_tests_name("unload mixed", tests, NULL, NULL);
}
