/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two ends in one process that send by UC or UD. */
#ifndef WEIR_TESTS_SUPPORT_DATAGRAM_PAIR_H
#define WEIR_TESTS_SUPPORT_DATAGRAM_PAIR_H

#include "verbs_puppet.h"

enum { QKEY = 0x11111111, GRH = 40, MTU = 4096 };

/* Two ends of the same type over one context and region; a sends to b. */
struct datagram_pair {
	struct endpoint base, a, b;
	struct ibv_ah *ah;
};

void two_up(struct datagram_pair *t, enum ibv_qp_type type);
void two_down(struct datagram_pair *t);

/* Open another end over the context and region of @base, with create flags. In the reset state. */
void endpoint_open_unreliable(struct endpoint *e, const struct endpoint *base,
			      enum ibv_qp_type type, uint32_t flags);
void to_init(struct endpoint *e);
void to_init_at(struct endpoint *e, uint8_t port);
void to_ready(struct endpoint *e, uint32_t dest_qpn);

/* For own_address(). NULL on failure. */
struct ibv_ah *make_ah(struct endpoint *e, const char *address);

/* A datagram from a to b; the caller may complete the WR. */
struct test_wr *datagram(struct test_wr *w, struct datagram_pair *t, uint32_t length);

/*
 * Wait until what a has sent is received or dropped. Soft-RoCE completes an unreliable send before
 * that, but handles packets in the order of their sending.
 */
void wait_handled(struct datagram_pair *t);

void assert_nothing(struct endpoint *e);

#endif
