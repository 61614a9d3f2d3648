// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic srq redirect; devices: softnic; timeout: 120 */
/*
 * A hostile process is the peer of a queue pair of an SRQ. Messages of another peer go into the
 * buffers of receives still out, whatever the hostile process writes.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "softnic/qp/resp.h"
#include "softnic/qp/sq.h"
#include "softnic/verbs/nic.h"
#include "tests/support/verbs_puppet.h"

enum { LENGTH = 4096, AT = 1 << 20, RECEIVES = 8, STEPS = 2 * RESP_BYTES_MAX };

/* The hostile process redirects receives, or offers a receive again. */
struct misdeed {
	uint64_t from;
	struct ibv_sge to;
	bool offers;
};

struct srq_world {
	struct endpoint base, owners[2], sender;
	struct ibv_srq *srq;
	uint8_t *prize; /* registered memory beside the receives */
	struct ibv_mr *mr;
	pid_t hostile;
	int fd;
};

static void open_on_srq(struct endpoint *e, struct srq_world *w)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .srq = w->srq, .cap = { 1, 0, 1 } };

	end_open_sharing(e, &w->base);
	assert_int_equal(ibv_destroy_qp(e->qp), 0);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	assert_non_null(e->qp);
}

static void world_open(struct srq_world *w)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = RECEIVES, .max_sge = 1 } };
	struct endpoint_name ours, theirs;

	end_open(&w->base, ALL_ACCESS);
	w->srq = ibv_create_srq(w->base.pd, &init);
	assert_non_null(w->srq);
	w->prize = mmap(NULL, STEPS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	w->mr = ibv_reg_mr(w->base.pd, w->prize, STEPS, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(w->mr);
	open_on_srq(&w->owners[0], w);
	open_on_srq(&w->owners[1], w);
	end_open_sharing(&w->sender, &w->base);
	ours = end_name(&w->owners[1]);
	end_connect(&w->sender, &ours, &plain);
	theirs = end_name(&w->sender);
	end_connect(&w->owners[1], &theirs, &plain);
}

static void start_hostile(struct srq_world *w)
{
	struct endpoint_name ours = end_name(&w->owners[0]), theirs;
	char byte;

	w->hostile = start_again("--hostile", &w->fd);
	assert_int_equal(read(w->fd, &theirs, sizeof(theirs)), sizeof(theirs));
	end_connect(&w->owners[0], &theirs, &plain);
	assert_int_equal(write(w->fd, &ours, sizeof(ours)), sizeof(ours));
	assert_int_equal(read(w->fd, &byte, 1), 1);
}

static void world_close(struct srq_world *w)
{
	if (w->hostile)
		kill(w->hostile, SIGKILL);
	end_close(&w->sender);
	end_close(&w->owners[0]);
	end_close(&w->owners[1]);
	assert_int_equal(ibv_destroy_srq(w->srq), 0);
	assert_int_equal(ibv_dereg_mr(w->mr), 0);
	end_close(&w->base);
}

static void post_srq(struct srq_world *w, uint64_t id, void *at, uint32_t length, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)at, length, lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_srq_recv(w->srq, &wr, &bad), 0);
}

static uint32_t have_hostile(struct srq_world *w, const struct misdeed *deed)
{
	uint32_t done;

	assert_int_equal(write(w->fd, deed, sizeof(*deed)), sizeof(*deed));
	assert_int_equal(read(w->fd, &done, sizeof(done)), sizeof(done));
	return done;
}

static void send_one(struct srq_world *w, uint8_t byte)
{
	struct test_wr wr;

	memset(w->base.buf, byte, LENGTH);
	post(&w->sender, wr_make(&wr, &w->sender, IBV_WR_SEND, 0, LENGTH, 0));
}

static void expect(const uint8_t *at, uint8_t byte, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		assert_int_equal(at[i], byte);
}

static void test_a_peer_does_not_change_the_buffers(void **state)
{
	struct srq_world w = { 0 };
	struct misdeed deed;
	struct ibv_wc wc;

	(void)state;
	world_open(&w);
	start_hostile(&w);
	memset(w.prize, 1, LENGTH);
	post_srq(&w, 7, w.base.buf + AT, LENGTH, w.base.mr->lkey);
	deed = (struct misdeed){ (uintptr_t)w.base.buf + AT,
				{ (uintptr_t)w.prize, LENGTH, w.mr->lkey }, false };
	have_hostile(&w, &deed);
	send_one(&w, 9);
	wc = wait_wc(&w.owners[1]);
	expect(w.prize, 1, LENGTH);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	expect(w.base.buf + AT, 9, LENGTH);
	assert_int_equal(wait_wc(&w.sender).status, IBV_WC_SUCCESS);
	world_close(&w);
}

/* The program has the first receive back, and uses the buffer. */
static void test_a_peer_does_not_offer_a_receive_again(void **state)
{
	const struct misdeed again = { .offers = true };
	struct srq_world w = { 0 };
	uint64_t id;

	(void)state;
	world_open(&w);
	start_hostile(&w);
	post_srq(&w, 5, w.prize, LENGTH, w.mr->lkey);
	post_srq(&w, 6, w.base.buf + AT, LENGTH, w.base.mr->lkey);
	post_srq(&w, 7, w.base.buf + AT, LENGTH, w.base.mr->lkey);
	for (id = 5; id <= 7; id++) {
		send_one(&w, 9);
		assert_int_equal(wait_wc(&w.owners[1]).wr_id, id);
		assert_int_equal(wait_wc(&w.sender).status, IBV_WC_SUCCESS);
	}
	memset(w.prize, 1, LENGTH);
	post_srq(&w, 8, w.base.buf + AT, LENGTH, w.base.mr->lkey);
	assert_int_equal(have_hostile(&w, &again), 1);
	post_srq(&w, 9, w.base.buf + AT, LENGTH, w.base.mr->lkey);
	send_one(&w, 5);
	assert_int_equal(wait_wc(&w.sender).status, IBV_WC_SUCCESS);
	expect(w.prize, 1, LENGTH);
	assert_int_equal(wait_wc(&w.owners[1]).wr_id, 9);
	expect(w.base.buf + AT, 5, LENGTH);
	world_close(&w);
}

/* Steps of a long message: the receive ends after the first. */
static void test_a_message_leaves_a_receive_that_ended(void **state)
{
	struct send_wqe wqe = { .opcode = IBV_WR_SEND, .length = STEPS, .num_sge = 1 };
	struct srq_world w = { 0 };
	struct ibv_sge sge;
	struct qp *qp;

	(void)state;
	world_open(&w);
	post_srq(&w, 7, w.base.buf, LENGTH, w.base.mr->lkey);
	send_one(&w, 9); /* finds the way */
	assert_int_equal(wait_wc(&w.sender).status, IBV_WC_SUCCESS);
	post_srq(&w, 8, w.prize, STEPS, w.mr->lkey);
	qp = to_qp(w.sender.qp);
	sge = (struct ibv_sge){ (uintptr_t)w.base.buf, STEPS, w.base.mr->lkey };
	memset(w.base.buf, 3, STEPS);
	pthread_mutex_lock(&qp->lock);
	assert_int_equal(resp_step(qp, &wqe, &sge, NULL), RESP_MORE);
	expect(w.prize, 3, RESP_BYTES_MAX);
	expect(w.prize + RESP_BYTES_MAX, 0, RESP_BYTES_MAX);
	rq_end(&to_qp(w.owners[1].qp)->rq->ring, qp->sq.receive.index);
	assert_int_equal(resp_step(qp, &wqe, &sge, NULL), IBV_WC_RETRY_EXC_ERR);
	expect(w.prize + RESP_BYTES_MAX, 0, RESP_BYTES_MAX);
	sq_forget_attempt(&qp->sq);
	pthread_mutex_unlock(&qp->lock);
	world_close(&w);
}

/* Return: how many pieces in [at, end) named the buffer. */
static uint32_t redirect_in(uint8_t *at, const uint8_t *end, const struct misdeed *deed)
{
	uint32_t done = 0;

	for (; at + sizeof(struct ibv_sge) <= end; at += sizeof(uint64_t)) {
		struct ibv_sge *sge = (struct ibv_sge *)at;

		if (load_relaxed(&sge->addr) != deed->from)
			continue;
		store_relaxed(&sge->length, deed->to.length);
		store_relaxed(&sge->lkey, deed->to.lkey);
		store_relaxed(&sge->addr, deed->to.addr);
		done++;
	}
	return done;
}

/* In all memory of the SRQ within reach for writing. */
static uint32_t redirect_all(const struct misdeed *deed)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long begin, end;
	uint32_t done = 0;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "softnic-srq") && sscanf(line, "%lx-%lx", &begin, &end) == 2 &&
		    !mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE))
			done += redirect_in((void *)begin, (void *)end, deed);
	if (maps)
		fclose(maps);
	return done;
}

/* Offer the SRQ's first receive in place of the newest. */
static uint32_t offer_again(const struct rq *rq)
{
	struct shared_rq *s = rq->shared;
	struct shared_recv *recv = (struct shared_recv *)(s->posted + rq->size);
	uint64_t e = load_relaxed(&s->posted[rq_first_position(rq) & (rq->size - 1)]);
	uint32_t index = (uint32_t)e, position = load_relaxed(&s->tail) - 1;

	store_relaxed(&recv[index].turn, (uint64_t)position << 32);
	store_relaxed(&s->posted[position & (rq->size - 1)], (uint64_t)position << 32 | index);
	return 1;
}

static int be_hostile(int fd)
{
	struct endpoint_name name;
	struct endpoint e;
	struct misdeed deed;
	struct test_wr w;
	uint32_t done;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	end_open(&e, ALL_ACCESS);
	name = end_name(&e);
	assert_int_equal(write(fd, &name, sizeof(name)), sizeof(name));
	assert_int_equal(read(fd, &name, sizeof(name)), sizeof(name));
	end_connect(&e, &name, &plain);
	do_wr(&e, wr_make(&w, &e, IBV_WR_RDMA_WRITE, 0, 8, BUF_SIZE - 8), IBV_WC_SUCCESS);
	assert_int_equal(write(fd, "", 1), 1);
	while (read(fd, &deed, sizeof(deed)) == sizeof(deed)) {
		done = deed.offers ? offer_again(&to_qp(e.qp)->remote.rq) : redirect_all(&deed);
		assert_int_equal(write(fd, &done, sizeof(done)), sizeof(done));
	}
	return 0;
}

static int tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_peer_does_not_change_the_buffers),
		cmocka_unit_test(test_a_peer_does_not_offer_a_receive_again),
		cmocka_unit_test(test_a_message_leaves_a_receive_that_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--hostile"))
		return be_hostile(atoi(argv[2]));
	return test_main(argc, argv, tests);
}
