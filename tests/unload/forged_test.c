/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer that forges what it unloads: whatever it writes into its buffer, nothing is written that
 * its QP could not have written by the device, and it is told. The peer is played by this test,
 * which makes offers of its own; what it forges for is the second QP of the pair.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/verbs/pair.h"
#include "unload/say.h"
#include "wire/offer.h"

#define PATIENCE_MS 60000
#define TRIES 600
#define AREA 4096u
#define HEAD 8u
#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/**
 * struct forger - the other end of a buffer
 * @qp: posts to it; @told: where returns arrive; @slot: what is posted from
 */
struct forger {
	struct pair pair;
	int fd;
	uint64_t nonce;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct {
		struct wire_slot slot;
		uint64_t told;
	} __attribute__((aligned(64))) own;
	struct wire_offer offer;
	struct wire_offer answer;
	uint16_t sent;
	char area[3 * AREA]; /* the middle is registered */
	struct ibv_mr *target;
};

static struct ibv_qp *qp_make(struct forger *f)
{
	struct ibv_qp_init_attr init = { .send_cq = f->cq, .recv_cq = f->cq,
					 .qp_type = IBV_QPT_RC, .cap = { 128, 1, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(f->pair.pd, &init);

	assert_non_null(qp);
	return qp;
}

static void query(struct forger *f, struct ibv_qp_attr *attr, union ibv_gid *own)
{
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_query_qp(f->pair.qp[0], attr, IBV_QP_AV | IBV_QP_DEST_QPN |
					      IBV_QP_PATH_MTU, &init), 0);
	assert_int_equal(ibv_query_gid(f->pair.context, 1, attr->ah_attr.grh.sgid_index, own), 0);
}

static struct wire_offer offer_of(struct forger *f)
{
	struct wire_offer offer = {
		.magic = WIRE_OFFER_MAGIC,
		.version = WIRE_OFFER_VERSION,
		.type = WIRE_OFFER,
		.nonce = ++f->nonce,
		.addr = (uintptr_t)&f->own.told,
		.from_qpn = f->pair.qp[0]->qp_num,
		.to_qpn = f->pair.qp[1]->qp_num,
		.qpn = f->qp->qp_num,
		.psn = 7,
		.rkey = f->mr->rkey,
	};
	struct ibv_qp_attr attr;
	union ibv_gid own;

	query(f, &attr, &own);
	memcpy(offer.from_gid, own.raw, sizeof(own.raw));
	return offer;
}

static void offer_send(struct forger *f, const void *bytes, size_t size)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int i;

	for (i = 0; i < WIRE_OFFER_PORTS; i++) {
		to.sin_port = htons((uint16_t)(WIRE_OFFER_PORT + i));
		sendto(f->fd, bytes, size, 0, (struct sockaddr *)&to, sizeof(to));
	}
}

/* Repeated until it comes. */
static void take_answer(struct forger *f, const struct wire_offer *offer)
{
	struct pollfd fd = { .fd = f->fd, .events = POLLIN };
	int i;

	for (i = 0; i < TRIES; i++) {
		offer_send(f, offer, sizeof(*offer));
		while (poll(&fd, 1, PATIENCE_MS / TRIES) == 1)
			if (recv(f->fd, &f->answer, sizeof(f->answer), 0) == sizeof(f->answer) &&
			    f->answer.nonce == offer->nonce)
				return;
	}
	fail_msg("nobody answers the offer");
}

static void connect_up(struct forger *f)
{
	struct ibv_qp_attr like, attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
					  .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	union ibv_gid own;

	query(f, &like, &own);
	assert_int_equal(ibv_modify_qp(f->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = like.path_mtu,
				     .dest_qp_num = f->answer.qpn, .rq_psn = f->answer.psn,
				     .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
				     .ah_attr = like.ah_attr };
	assert_int_equal(ibv_modify_qp(f->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC), 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7,
				     .rnr_retry = 7, .max_rd_atomic = 1, .sq_psn = 7 };
	assert_int_equal(ibv_modify_qp(f->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
					       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

/* A buffer to forge in; one before, in which a write was refused, is gone then. */
static void buffer_open(struct forger *f)
{
	if (f->qp)
		assert_int_equal(ibv_destroy_qp(f->qp), 0);
	f->qp = qp_make(f);
	f->own.told = 0;
	f->sent = 0;
	f->offer = offer_of(f);
	take_answer(f, &f->offer);
	assert_int_equal(f->answer.type, WIRE_OFFER_TAKEN);
	connect_up(f);
}

/* The first asks for nothing itself, for weir leaves it alone; the second may be asked for. */
static struct ibv_qp *make_for_forger(struct pair *pair, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex plain = {
		.send_cq = init->send_cq, .recv_cq = init->recv_cq, .cap = init->cap,
		.qp_type = init->qp_type, .pd = pair->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};

	return pair->qp[0] ? ibv_create_qp(pair->pd, init) :
			     ibv_create_qp_ex(pair->context, &plain);
}

static void forger_open(struct forger *f, int rights)
{
	memset(f, 0, sizeof(*f));
	pair_open(&f->pair);
	assert_true(pair_connect(&f->pair, make_for_forger));
	f->fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_true(f->fd >= 0);
	f->nonce = (uint64_t)time(NULL) << 20;
	f->cq = ibv_create_cq(f->pair.context, 256, NULL, NULL, 0);
	f->mr = ibv_reg_mr(f->pair.pd, &f->own, sizeof(f->own), RIGHTS);
	f->target = ibv_reg_mr(f->pair.pd, f->area + AREA, AREA, rights);
	assert_true(f->cq && f->mr && f->target);
	buffer_open(f);
}

static void forger_close(struct forger *f)
{
	assert_int_equal(ibv_destroy_qp(f->qp), 0);
	assert_int_equal(ibv_destroy_cq(f->cq), 0);
	assert_int_equal(ibv_dereg_mr(f->mr), 0);
	if (f->target)
		assert_int_equal(ibv_dereg_mr(f->target), 0);
	close(f->fd);
	pair_close(&f->pair);
}

/* @length: of the whole write, head included. */
static void forge(struct forger *f, uint64_t addr, uint32_t length, uint32_t tag)
{
	struct ibv_sge sge = { (uintptr_t)&f->own.slot, length, f->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = length ? 1 : 0,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(tag),
		.wr.rdma = { f->answer.addr + f->sent++ % WIRE_SLOTS * sizeof(struct wire_slot),
			     f->answer.rkey },
	};
	time_t until = time(NULL) + PATIENCE_MS / 1000;
	struct ibv_wc wc;

	f->own.slot.addr = addr;
	memset(f->own.slot.data, 0x66, sizeof(f->own.slot.data));
	assert_int_equal(ibv_post_send(f->qp, &wr, &bad), 0);
	while (!ibv_poll_cq(f->cq, 1, &wc)) {
		sched_yield();
		assert_true(time(NULL) <= until);
	}
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static uint64_t refusals(void)
{
	struct said said;

	weir_unload_read(&said);
	return said.refused;
}

/* The next return that says something new. */
static struct wire_return returned(struct forger *f, uint16_t done)
{
	time_t until = time(NULL) + PATIENCE_MS / 1000;
	struct wire_return r;

	for (;;) {
		uint64_t told = __atomic_load_n(&f->own.told, __ATOMIC_ACQUIRE);

		if (wire_return_whole(told, &r) && (r.is_refused || r.done == done)) {
			refusals(); /* who counts has seen what was copied */
			return r;
		}
		sched_yield();
		assert_true(time(NULL) <= until);
	}
}

static bool is_untouched(const struct forger *f)
{
	size_t i;

	for (i = 0; i < sizeof(f->area); i++)
		if (f->area[i])
			return false;
	return true;
}

static void expect_refused(struct forger *f, uint64_t addr, uint32_t length, uint32_t tag)
{
	uint64_t before = refusals();
	struct wire_return r;

	forge(f, addr, length, tag);
	r = returned(f, 1);
	assert_true(r.is_refused);
	assert_int_equal(r.done, 0);
	assert_true(is_untouched(f));
	assert_int_equal(refusals(), before + 1);
	buffer_open(f);
}

static uint64_t area_of(struct forger *f)
{
	return (uintptr_t)f->area + AREA;
}

static void forged_tags_are_refused(void **state)
{
	static struct forger f;
	uint32_t tag, bit;

	(void)state;
	forger_open(&f, RIGHTS);
	tag = f.target->rkey;
	for (bit = 0; bit < 32; bit += 5)
		expect_refused(&f, area_of(&f), HEAD + 16, tag ^ 1u << bit);
	expect_refused(&f, area_of(&f), HEAD + 16, 0);
	assert_int_equal(ibv_dereg_mr(f.target), 0);
	f.target = NULL;
	expect_refused(&f, area_of(&f), HEAD + 16, tag);
	forger_close(&f);
}

static void bounds_are_kept_to_the_byte(void **state)
{
	static struct forger f;

	(void)state;
	forger_open(&f, RIGHTS);
	expect_refused(&f, area_of(&f) - 1, HEAD + 16, f.target->rkey);
	expect_refused(&f, area_of(&f) + AREA - 15, HEAD + 16, f.target->rkey);
	expect_refused(&f, area_of(&f) + AREA, HEAD + 1, f.target->rkey);
	expect_refused(&f, UINT64_MAX - 7, HEAD + 16, f.target->rkey);
	expect_refused(&f, 0, HEAD + 16, f.target->rkey);
	forge(&f, area_of(&f) + AREA - 16, HEAD + 16, f.target->rkey);
	assert_false(returned(&f, 1).is_refused);
	assert_int_equal(f.area[2 * AREA - 1], 0x66);
	assert_int_equal(f.area[2 * AREA - 17], 0);
	assert_int_equal(f.area[2 * AREA], 0);
	forger_close(&f);
}

static void what_may_only_be_read_is_not_written(void **state)
{
	static struct forger f;

	(void)state;
	forger_open(&f, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	expect_refused(&f, area_of(&f), HEAD + 16, f.target->rkey);
	forger_close(&f);
}

static void another_protection_domain_is_another_tenant(void **state)
{
	static struct forger f;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	(void)state;
	forger_open(&f, RIGHTS);
	pd = ibv_alloc_pd(f.pair.context);
	assert_non_null(pd);
	mr = ibv_reg_mr(pd, f.area + AREA, AREA, RIGHTS);
	assert_non_null(mr);
	expect_refused(&f, area_of(&f), HEAD + 16, mr->rkey);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	forger_close(&f);
}

static void only_lengths_of_a_slot_with_data_are_copied(void **state)
{
	static struct forger f;
	uint16_t done = 0;
	uint32_t length;

	(void)state;
	forger_open(&f, RIGHTS);
	for (length = 0; length <= HEAD; length += 4)
		expect_refused(&f, area_of(&f), length, f.target->rkey);
	for (length = HEAD + 1; length <= sizeof(struct wire_slot); length += 13) {
		memset(f.area, 0, sizeof(f.area));
		forge(&f, area_of(&f), length, f.target->rkey);
		assert_false(returned(&f, ++done).is_refused);
		assert_int_equal(f.area[AREA + length - HEAD - 1], 0x66);
		assert_int_equal(f.area[AREA + length - HEAD], 0);
	}
	forger_close(&f);
}

static void behind_a_refusal_nothing_is_copied(void **state)
{
	static struct forger f;

	(void)state;
	forger_open(&f, RIGHTS);
	forge(&f, area_of(&f), HEAD + 16, f.target->rkey ^ 1);
	assert_true(returned(&f, 1).is_refused);
	forge(&f, area_of(&f), HEAD + 16, f.target->rkey);
	/* The next buffer comes after all of the last one. */
	buffer_open(&f);
	assert_true(is_untouched(&f));
	forge(&f, area_of(&f), HEAD + 16, f.target->rkey);
	assert_false(returned(&f, 1).is_refused);
	assert_int_equal(f.area[AREA], 0x66);
	forger_close(&f);
}

/* How the kernel has mapped what lies at @at: the line of /proc/self/smaps that begins with @what. */
static bool mapping_says(uint64_t at, const char *what, char *line, int size)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	uint64_t from = 0, to = 0, a, b;
	bool found = false;

	assert_non_null(smaps);
	while (!found && fgets(line, size, smaps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &a, &b) == 2) {
			from = a;
			to = b;
		}
		found = at >= from && at < to && !strncmp(line, what, strlen(what));
	}
	fclose(smaps);
	return found;
}

/* Of reserved huge pages where there are; where not, the kernel is asked to make one of it. */
static void a_buffer_is_in_huge_pages_when_there_are_any(void **state)
{
	static struct forger f;
	char line[256];

	(void)state;
	forger_open(&f, RIGHTS);
	if (!mapping_says(f.answer.addr, "VmFlags:", line, sizeof(line)))
		skip();
	assert_true(strstr(line, " hg") || strstr(line, " ht") ||
		    access("/sys/kernel/mm/transparent_hugepage", F_OK));
	assert_int_equal(f.answer.addr % (WIRE_SLOTS * sizeof(struct wire_slot)), 0);
	forger_close(&f);
}

static int socket_at(uint32_t address)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* Whether what is sent from @address has an answer. */
static bool is_answered(struct forger *f, uint32_t address, const void *bytes, size_t size)
{
	struct pollfd fd = { .fd = socket_at(address), .events = POLLIN };
	int was = f->fd, n;

	f->fd = fd.fd;
	offer_send(f, bytes, size);
	close(was);
	/* Who answers this one has seen the other one before: nobody has answered here yet. */
	f->fd = socket_at(INADDR_LOOPBACK);
	take_answer(f, &f->offer);
	n = poll(&fd, 1, 0);
	close(fd.fd);
	return n == 1;
}

static void offers_of_strangers_are_not_answered(void **state)
{
	static struct forger f;
	struct wire_offer offer;
	int which;

	(void)state;
	forger_open(&f, RIGHTS);
	assert_true(is_answered(&f, INADDR_LOOPBACK, &f.offer, sizeof(offer)));
	assert_false(is_answered(&f, INADDR_LOOPBACK + 1, &f.offer, sizeof(offer)));
	for (which = 0; which < 7; which++) {
		offer = f.offer;
		offer.magic ^= which == 0;
		offer.version += which == 1;
		offer.type = which == 2 ? 77 : offer.type;
		offer.from_qpn ^= which == 3;
		offer.from_gid[15] ^= which == 4;
		offer.to_qpn = which == 5 ? f.qp->qp_num : offer.to_qpn;
		assert_false(is_answered(&f, INADDR_LOOPBACK, &offer,
					 sizeof(offer) - (which == 6)));
	}
	forger_close(&f);
}

static void a_buffer_that_works_keeps_its_place(void **state)
{
	static struct forger f;
	struct wire_offer offer;

	(void)state;
	forger_open(&f, RIGHTS);
	offer = offer_of(&f);
	assert_false(is_answered(&f, INADDR_LOOPBACK, &offer, sizeof(offer)));
	forge(&f, area_of(&f), HEAD + 16, f.target->rkey);
	assert_false(returned(&f, 1).is_refused);
	assert_int_equal(f.area[AREA], 0x66);
	forger_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forged_tags_are_refused),
		cmocka_unit_test(bounds_are_kept_to_the_byte),
		cmocka_unit_test(what_may_only_be_read_is_not_written),
		cmocka_unit_test(another_protection_domain_is_another_tenant),
		cmocka_unit_test(only_lengths_of_a_slot_with_data_are_copied),
		cmocka_unit_test(behind_a_refusal_nothing_is_copied),
		cmocka_unit_test(a_buffer_is_in_huge_pages_when_there_are_any),
		cmocka_unit_test(offers_of_strangers_are_not_answered),
		cmocka_unit_test(a_buffer_that_works_keeps_its_place),
	};

	return cmocka_run_group_tests_name("unload forged", tests, NULL, NULL);
}
