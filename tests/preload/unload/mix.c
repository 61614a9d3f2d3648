/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/preload/unload/mix.h"

#include <stdlib.h>
#include <string.h>

#define AREAS 4u
#define AREA_BYTES 2048u
#define MEMORY (AREAS * AREA_BYTES)
#define PIECE 512u /* of the initiator's memory, one for each place in the queue */
#define ROUNDS 50

/* Data expected at the end of a request; nothing if @length is 0. */
struct mix_expected {
	uint32_t length;
	char bytes[PIECE];
};

/*
 * Each area is registered separately, and reregistered now and then. Requests in flight are kept in
 * the order of the queue, because completions come in that order.
 */
struct mix {
	struct loopback_pair pair;
	struct ibv_mr *area[AREAS];
	char model[MEMORY]; /* expected content of the target's memory */
	struct mix_expected found[PAIR_DEPTH];
	uint64_t next_id;
	uint64_t seen_id; /* all earlier requests are over */
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
		const struct mix_expected *f = &m->found[m->seen_id % PAIR_DEPTH];

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
	m->area[area] =
		ibv_reg_mr(m->pair.pd, memory_of(m) + area * AREA_BYTES, AREA_BYTES, RIGHTS);
	assert_non_null(m->area[area]);
}

/* A random target for @length bytes: the offset in the memory, and the key of the area. */
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
	struct mix_expected *f = &m->found[wr->wr_id % PAIR_DEPTH];
	uint32_t to;

	sge->length = f->length = 1 + (uint32_t)rand() % 100;
	to = somewhere(m, sge->length, 1, &wr->wr.rdma.rkey);
	wr->opcode = IBV_WR_RDMA_READ;
	wr->wr.rdma.remote_addr = (uintptr_t)memory_of(m) + to;
	memcpy(f->bytes, m->model + to, f->length);
}

static void mix_add(struct mix *m, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct mix_expected *f = &m->found[wr->wr_id % PAIR_DEPTH];
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

/* A write without a fence may overtake an earlier read or atomic. */
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

/* Posts lists of one to four requests, with a completion for the last; at most a full queue. */
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
		wrs[i] = (struct ibv_send_wr){ .wr_id = id,
					       .sg_list = &sges[i],
					       .num_sge = 1,
					       .next = i + 1 < n ? &wrs[i + 1] : NULL };
		mix_one(m, &wrs[i], &sges[i]);
	}
	wrs[n - 1].send_flags |= IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(m->pair.qp[0], wrs, &bad), 0);
	m->next_id += (uint64_t)n;
}

/* With nothing in flight, all writes are in place, and deregistered memory has not changed. */
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

static bool has_unloaded(const struct diag_counters *since)
{
	return said_now().unloaded > since->unloaded;
}

struct diag_counters mix(unsigned int seed)
{
	struct diag_counters before, now;
	static struct mix m;
	uint64_t until;
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
	until = now_ns() + PATIENCE_S * 1000000000ull;
	for (round = rounds(ROUNDS); round > 0 || !has_unloaded(&before); round--) {
		assert_true(round > 0 || now_ns() < until);
		mix_round(&m);
	}
	now = said_now();
	assert_int_equal(now.refused, before.refused);
	for (i = 0; i < AREAS; i++)
		assert_int_equal(ibv_dereg_mr(m.area[i]), 0);
	pair_close(&m.pair);
	now.small -= before.small;
	now.unloaded -= before.unloaded;
	return now;
}
