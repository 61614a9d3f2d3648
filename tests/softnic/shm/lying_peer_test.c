// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic lying peer; devices: softnic; timeout: 120 */
/*
 * A peer lies about regions, files, queue pairs and receives. Other processes read this data
 * before a copy. Requests to the liar may fail, each once. No process crashes, no byte outside
 * the allowed memory changes, and other peers are served.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "core/base/rng.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp/qp.h"
#include "tests/support/verbs_puppet.h"

static uint32_t next_random(uint64_t *state)
{
	return weir_rng_next(state) >> 32;
}

/*
 * Enough lanes, so that some still work while others are broken. For the first few lanes the
 * liar also lies about state or owner. Those lanes fall silent, and are given up only after
 * seconds.
 */
enum {
	LANES = 32,
	SILENT_LANES = 2,
	LANE_BYTES = BUF_SIZE / LANES,
	READ_BYTES = LANE_BYTES / 2,
	LANE_ROUNDS = 40,
};

static const struct manners hasty = {
	.min_rnr_timer = 1,
	.rnr_retry = 1,
	.timeout = 10,
	.retry_cnt = 1,
};

static void lanes_open(struct endpoint *lanes)
{
	int i;

	end_open(&lanes[0], ALL_ACCESS);
	for (i = 1; i < LANES; i++)
		end_open_sharing(&lanes[i], &lanes[0]);
}

static void lanes_connect(struct endpoint *lanes, int fd)
{
	struct endpoint_name ours[LANES], theirs[LANES];
	int i;

	for (i = 0; i < LANES; i++)
		ours[i] = end_name(&lanes[i]);
	assert_int_equal(write(fd, ours, sizeof(ours)), sizeof(ours));
	assert_int_equal(read(fd, theirs, sizeof(theirs)), sizeof(theirs));
	for (i = 0; i < LANES; i++)
		end_connect(&lanes[i], &theirs[i], &hasty);
}

static void lie_at(uint32_t *word, uint64_t *random)
{
	static const uint32_t lies[] = { 0, 1, 64, BUF_SIZE, INT32_MAX, UINT32_MAX };
	uint32_t n = next_random(random) % 8;

	store_relaxed(word, n < 6 ? lies[n] : next_random(random));
}

/*
 * Any word of it. Mostly the address or the length, because changing another word tends to deny
 * access.
 */
static uint32_t *pick(struct shared_mr *mr, uint64_t *random)
{
	uint32_t *words = (uint32_t *)mr;
	uint32_t *const places[] = {
		(uint32_t *)&mr->addr,
		(uint32_t *)&mr->addr + 1,
		(uint32_t *)&mr->length,
		(uint32_t *)&mr->offset,
		(uint32_t *)&mr->offset,
		(uint32_t *)&mr->offset + 1,
		&mr->file,
	};

	if (next_random(random) % 8)
		return places[next_random(random) % (sizeof(places) / sizeof(places[0]))];
	return &words[next_random(random) % (sizeof(*mr) / sizeof(*words))];
}

/* Falsify a region, or its file, for a moment. */
static void lie_about_memory(const struct ibv_mr *mr, uint64_t *random)
{
	struct shared_mr *at = &nic.pub->mrs[mr->handle];
	const struct shared_mr truth = *at;
	uint32_t *file = &nic.pub->files[truth.file % SHARED_FILES], number = *file;
	uint32_t *words = (uint32_t *)at, i;

	lie_at(pick(at, random), random);
	if (!(next_random(random) % 32))
		lie_at(file, random);
	for (i = next_random(random) % 4; i; i--)
		sched_yield();
	for (i = 0; i < sizeof(*at) / sizeof(*words); i++)
		store_relaxed(&words[i], ((const uint32_t *)&truth)[i]);
	store_relaxed(file, number);
}

/* Falsify the receives of a queue pair and, with @of_itself, sometimes the QP's own fields. */
static void lie_about_queue(const struct qp *qp, bool of_itself, uint64_t *random)
{
	uint32_t *words = (uint32_t *)qp->segment.qp, n = qp->segment.size / sizeof(*words);
	bool only_receives = !of_itself || next_random(random) % 8;
	uint32_t first = only_receives ? sizeof(*qp->segment.qp) / sizeof(*words) : 0;

	lie_at(&words[first + next_random(random) % (n - first)], random);
}

static void lie_for_ever(struct endpoint *lanes, uint64_t random)
{
	struct ibv_wc wc;
	int i;

	for (;;) {
		lie_about_memory(lanes[0].mr, &random);
		i = next_random(&random) % LANES;
		if (!(next_random(&random) % 16))
			lie_about_queue(to_qp(lanes[i].qp), i < SILENT_LANES, &random);
		if (ibv_poll_cq(lanes[i].cq, 1, &wc) == 1)
			post_recv(&lanes[i], 0, i * LANE_BYTES, LANE_BYTES);
	}
}

/* The liar's program: proper connections, then lies about its own memory. */
static int be_liar(int fd)
{
	struct endpoint lanes[LANES];
	uint64_t random;
	char byte;
	int i, n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	assert_int_equal(read(fd, &random, sizeof(random)), sizeof(random));
	lanes_open(lanes);
	lanes_connect(lanes, fd);
	for (i = 0; i < LANES; i++)
		for (n = 0; n < QUEUE_DEPTH; n++)
			assert_int_equal(post_recv(&lanes[i], n, i * LANE_BYTES, LANE_BYTES), 0);
	assert_int_equal(write(fd, "", 1), 1);
	assert_int_equal(read(fd, &byte, 1), 1);
	lie_for_ever(lanes, random);
	return 1;
}

/* Return when all lanes to the liar are connected. */
static pid_t start_liar(struct endpoint *lanes, uint64_t seed)
{
	char byte;
	struct test_wr w;
	int fd, i;
	pid_t pid = start_again("--liar", &fd);

	assert_int_equal(write(fd, &seed, sizeof(seed)), sizeof(seed));
	lanes_connect(lanes, fd);
	assert_int_equal(read(fd, &byte, 1), 1);
	for (i = 0; i < LANES; i++)
		do_wr(&lanes[i], wr_make(&w, &lanes[i], IBV_WR_RDMA_WRITE, 0, 8, 0),
		      IBV_WC_SUCCESS);
	assert_int_equal(write(fd, "", 1), 1);
	close(fd);
	return pid;
}

/* Post work on a lane. Return: the number of completions to expect. */
static int post_along(struct endpoint *lane, uint32_t at, uint64_t *random)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,	       IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_SEND,	  IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	int posted = 1 + next_random(random) % 4, i;
	struct test_wr w;

	for (i = 0; i < posted; i++) {
		enum ibv_wr_opcode op = ops[next_random(random) % 5];
		uint32_t length = op == IBV_WR_ATOMIC_FETCH_AND_ADD ?
					  8 :
					  1 + next_random(random) % READ_BYTES;

		wr_make(&w, lane, op, at, length, at);
		if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			w.wr.wr.atomic.remote_addr = lane->remote.addr + at;
			w.wr.wr.atomic.rkey = lane->remote.rkey;
		}
		assert_int_equal(post(lane, &w), 0);
	}
	return posted;
}

/* Work on all working lanes at once: each request ends once, with any status. */
static void work_along(struct endpoint *lanes, bool *works, uint64_t *random)
{
	int posted[LANES] = { 0 }, i;

	for (i = 0; i < LANES; i++)
		if (works[i])
			posted[i] = post_along(&lanes[i], i * LANE_BYTES, random);
	for (i = 0; i < LANES; i++)
		for (; posted[i]; posted[i]--)
			works[i] &= wait_wc(&lanes[i]).status == IBV_WC_SUCCESS;
}

/* Memory outside the read targets is unchanged. */
static void assert_rest_is_untouched(const struct endpoint *e)
{
	uint32_t i, k;

	for (i = 0; i < LANES; i++)
		for (k = READ_BYTES; k < LANE_BYTES; k++)
			assert_int_equal(e->buf[i * LANE_BYTES + k], 0x5a);
}

static void work_with_a_liar(uint64_t seed)
{
	struct endpoint lanes[LANES];
	bool works[LANES];
	struct ibv_wc wc;
	int round, i;
	pid_t pid;

	lanes_open(lanes);
	memset(lanes[0].buf, 0x5a, BUF_SIZE);
	memset(works, true, sizeof(works));
	pid = start_liar(lanes, seed);
	for (round = 0; round < LANE_ROUNDS; round++)
		work_along(lanes, works, &seed);
	for (i = 0; i < LANES; i++)
		assert_int_equal(ibv_poll_cq(lanes[i].cq, 1, &wc), 0);
	assert_rest_is_untouched(&lanes[0]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (i = LANES - 1; i >= 0; i--)
		end_close(&lanes[i]);
}

static void test_a_lying_peer_harms_no_other_peer(void **state)
{
	struct puppet_pair *honest = *state;
	uint64_t seed;
	struct test_wr w;

	for (seed = 1; seed <= 6; seed++) {
		setenv("TEST_MEMORY", seed % 2 ? "shared" : "private", 1);
		work_with_a_liar(seed);
		memset(honest->e.buf, seed, 4096);
		do_wr(&honest->e, wr_make(&w, &honest->e, IBV_WR_RDMA_WRITE, 0, 4096, 0),
		      IBV_WC_SUCCESS);
		assert_int_equal(tell(&honest->p, ORDER_PEEK, 4088, 0, 0).value,
				 0x0101010101010101ull * seed);
	}
	unsetenv("TEST_MEMORY");
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test_setup_teardown(test_a_lying_peer_harms_no_other_peer, pair_up,
						pair_down),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--liar"))
		return be_liar(atoi(argv[2]));
	return test_main(argc, argv, tests);
}
