/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two connected queue pairs in this process, on the test device: the first device whose name
 * begins with WEIR_TEST_DEVICE ("softnic" if unset).
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
	char *bytes; /* PAIR_BYTES each: the first half belongs to the first QP */
};

/* Creates the queue pairs. The completion queue is created before, unless it exists. */
typedef struct ibv_qp *pair_make_fn(struct loopback_pair *pair, struct ibv_qp_init_attr *init);

/* Open only the device. */
void pair_open(struct loopback_pair *pair);
/* Do the rest; @make NULL: ibv_create_qp(). Return: false if @make failed, with errno set. */
bool pair_connect(struct loopback_pair *pair, pair_make_fn *make);
/* Reset both queue pairs and connect them again. */
void pair_begin_anew(struct loopback_pair *pair);
/* Reset a queue pair and connect it to another process's. */
void pair_lead_to(struct loopback_pair *pair, int which, uint32_t qpn);
void pair_close(struct loopback_pair *pair);

/* The first PSN that the queue pair sends. */
uint32_t pair_psn(const struct ibv_qp *qp);

/* A piece of the first QP's bytes. */
struct ibv_sge pair_sge(const struct loopback_pair *pair, uint32_t length);
/* A signaled WR towards the second QP's bytes; @sge must outlive the WR. */
struct ibv_send_wr pair_wr(const struct loopback_pair *pair, enum ibv_wr_opcode opcode,
			   struct ibv_sge *sge);
/* Post a receive of @length on the second QP. */
void pair_post_recv(struct loopback_pair *pair, uint32_t length);

#endif
