/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/preload/unload/forger.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/conn/key.h"
#include "preload/unload/diag.h"

#define TRIES 600

void forger_qp(struct forger *f)
{
	struct ibv_qp_init_attr init = { .send_cq = f->cq,
					 .recv_cq = f->cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { 128, 1, 1, 1, 0 } };

	if (f->qp)
		assert_int_equal(ibv_destroy_qp(f->qp), 0);
	f->qp = ibv_create_qp(f->pair.pd, &init);
	assert_non_null(f->qp);
}

static void query(struct forger *f, struct ibv_qp_attr *attr, union ibv_gid *own)
{
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_query_qp(f->pair.qp[0], attr,
				      IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_PATH_MTU, &init),
			 0);
	assert_int_equal(ibv_query_gid(f->pair.context, 1, attr->ah_attr.grh.sgid_index, own), 0);
}

void forger_seal(const struct loopback_pair *pair, struct wire_discovery_offer *offer, uint32_t lie)
{
	const struct wire_discovery_secret secret = {
		.psn = (pair_psn(pair->qp[0]) ^ lie) & 0xffffff,
	};
	const struct iovec pieces[] = {
		{ offer, offsetof(struct wire_discovery_offer, mac) },
		{ (void *)&secret, sizeof(secret) },
	};

	weir_key_mac(NULL, pieces, 2, offer->mac);
}

struct wire_discovery_offer forger_offer(struct forger *f)
{
	struct wire_discovery_offer offer = {
		.magic = WIRE_DISCOVERY_MAGIC,
		.version = WIRE_DISCOVERY_VERSION,
		.type = WIRE_DISCOVERY_OFFER,
		.nonce = ++f->nonce,
		.addr = (uintptr_t)&f->own.last_return,
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
	forger_seal(&f->pair, &offer, 0);
	return offer;
}

socklen_t forger_name(int number, struct sockaddr_un *at)
{
	*at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(at->sun_path + 1, sizeof(at->sun_path) - 1,
					    WIRE_DISCOVERY_NAME, (unsigned int)getuid(),
					    (unsigned int)number));
}

void forger_send(int fd, const void *bytes, size_t size)
{
	struct sockaddr_un to;
	socklen_t length;
	int i;

	for (i = 0; i < WIRE_DISCOVERY_NAMES; i++) {
		length = forger_name(i, &to);
		sendto(fd, bytes, size, MSG_DONTWAIT, (struct sockaddr *)&to, length);
	}
}

void forger_ask(struct forger *f, const struct wire_discovery_offer *offer)
{
	struct pollfd fd = { .fd = f->fd, .events = POLLIN };
	int i;

	for (i = 0; i < TRIES; i++) {
		forger_send(f->fd, offer, sizeof(*offer));
		while (poll(&fd, 1, PATIENCE_MS / TRIES) == 1)
			if (recv(f->fd, &f->answer, sizeof(f->answer), 0) == sizeof(f->answer) &&
			    f->answer.nonce == offer->nonce)
				return;
	}
	fail_msg("nobody answers the offer");
}

void forger_connect(struct forger *f)
{
	struct ibv_qp_attr like, attr = { .qp_state = IBV_QPS_INIT,
					  .port_num = 1,
					  .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	union ibv_gid own;

	query(f, &like, &own);
	assert_int_equal(ibv_modify_qp(f->qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = like.path_mtu,
				     .dest_qp_num = f->answer.qpn,
				     .rq_psn = f->answer.psn,
				     .max_dest_rd_atomic = 1,
				     .min_rnr_timer = 12,
				     .ah_attr = like.ah_attr };
	assert_int_equal(ibv_modify_qp(f->qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC),
			 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .timeout = 18,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .max_rd_atomic = 1,
				     .sq_psn = 7 };
	assert_int_equal(ibv_modify_qp(f->qp, &attr,
				       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					       IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

void forger_write(struct forger *f, uint64_t addr, uint32_t length, uint32_t tag)
{
	struct ibv_sge sge = { (uintptr_t)&f->own.slot, length, f->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = length ? 1 : 0,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(tag),
		.wr.rdma = { f->answer.addr + f->sent++ % WIRE_UNLOAD_SLOTS *
						      sizeof(struct wire_unload_slot),
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

uint64_t forger_refusals(void)
{
	struct diag_counters diag_counters;

	weir_unload_read(&diag_counters);
	return diag_counters.refused;
}

struct wire_unload_return forger_returned(struct forger *f, uint16_t done)
{
	time_t until = time(NULL) + PATIENCE_MS / 1000;
	struct wire_unload_return r;

	for (;;) {
		uint64_t last_return = __atomic_load_n(&f->own.last_return, __ATOMIC_ACQUIRE);

		if (wire_unload_return_is_whole(last_return, &r) &&
		    (r.is_refused || r.done == done)) {
			forger_refusals(); /* acquires the copies made before the count */
			return r;
		}
		sched_yield();
		assert_true(time(NULL) <= until);
	}
}

/* The first message is empty. */
static void greet(struct forger *f)
{
	f->own.last_return = 0;
	forger_write(f, 0, 0, 0);
	assert_false(forger_returned(f, 0).is_refused);
	f->own.last_return = 0;
	f->sent = 0;
}

void forger_buffer(struct forger *f)
{
	forger_qp(f);
	f->offer = forger_offer(f);
	forger_ask(f, &f->offer);
	assert_int_equal(f->answer.type, WIRE_DISCOVERY_ACCEPTED);
	forger_connect(f);
	greet(f);
}

int forger_socket(void)
{
	struct sockaddr_un any = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any.sun_family)), 0);
	return fd;
}

struct ibv_qp *forger_make_hidden(struct loopback_pair *pair, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex plain = {
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.pd = pair->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};

	return ibv_create_qp_ex(pair->context, &plain);
}

/* The first QP sends no offers; the second may answer. */
static struct ibv_qp *make_for_forger(struct loopback_pair *pair, struct ibv_qp_init_attr *init)
{
	return pair->qp[0] ? ibv_create_qp(pair->pd, init) : forger_make_hidden(pair, init);
}

void forger_begin(struct forger *f, pair_make_fn *make, int rights)
{
	pair_open(&f->pair);
	assert_true(pair_connect(&f->pair, make));
	f->nonce = (uint64_t)time(NULL) << 20;
	f->cq = ibv_create_cq(f->pair.context, 256, NULL, NULL, 0);
	f->mr = ibv_reg_mr(f->pair.pd, &f->own, sizeof(f->own), RIGHTS);
	f->target = ibv_reg_mr(f->pair.pd, f->area + AREA, AREA, rights);
	assert_true(f->cq && f->mr && f->target);
}

void forger_open(struct forger *f, int rights)
{
	memset(f, 0, sizeof(*f));
	f->fd = forger_socket();
	forger_begin(f, make_for_forger, rights);
	forger_buffer(f);
}

void forger_close(struct forger *f)
{
	assert_int_equal(ibv_destroy_qp(f->qp), 0);
	assert_int_equal(ibv_destroy_cq(f->cq), 0);
	assert_int_equal(ibv_dereg_mr(f->mr), 0);
	if (f->target)
		assert_int_equal(ibv_dereg_mr(f->target), 0);
	close(f->fd);
	pair_close(&f->pair);
}
