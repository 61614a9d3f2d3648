/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two queue pairs of this process, connected to each other, on whatever device the tests run on:
 * the first whose name begins with WEIR_TEST_DEVICE ("softnic" if unset).
 */
#ifndef WEIR_TESTS_SUPPORT_LOOPBACK_PAIR_H
#define WEIR_TESTS_SUPPORT_LOOPBACK_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#define PAIR_BYTES 65536u
#define PAIR_DEPTH 16u

struct loopback_pair {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq; /* of all four queues */
	struct ibv_qp *qp[2]; /* the first posts, the second is its target */
	struct ibv_mr *mr;
	char *bytes; /* PAIR_BYTES of each: what the first has, then what the second has */
};

/* How the queue pairs are made; the completion queue is made beforehand, unless it is there. */
typedef struct ibv_qp *pair_make_fn(struct loopback_pair *pair, struct ibv_qp_init_attr *init);

/* Opens the device only. */
void pair_open(struct loopback_pair *pair);
/* All the rest; @make may be NULL for ibv_create_qp(). False: @make made none, errno says why. */
bool pair_connect(struct loopback_pair *pair, pair_make_fn *make);
/* Both queue pairs are reset and connected again. */
void pair_begin_anew(struct loopback_pair *pair);
/* One of them is reset, and connected to another process's. */
void pair_lead_to(struct loopback_pair *pair, int which, uint32_t qpn);
void pair_close(struct loopback_pair *pair);

/* That the queue pair sends with first. */
uint32_t pair_psn(const struct ibv_qp *qp);

/* A piece of the first one's bytes. */
struct ibv_sge pair_sge(const struct loopback_pair *pair, uint32_t length);
/* Signaled work towards the second one's bytes; @sge must outlive it. */
struct ibv_send_wr pair_wr(const struct loopback_pair *pair, enum ibv_wr_opcode opcode,
			   struct ibv_sge *sge);
/* Posts one receive of @length to the second. */
void pair_post_recv(struct loopback_pair *pair, uint32_t length);

#endif
