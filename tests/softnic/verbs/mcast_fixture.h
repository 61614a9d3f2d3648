/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A multicast group, and two ends of which one sends to it.
 */
#ifndef WEIR_TESTS_SOFTNIC_VERBS_MCAST_FIXTURE_H
#define WEIR_TESTS_SOFTNIC_VERBS_MCAST_FIXTURE_H

#include "tests/support/datagram_pair.h"

enum { IN_B = 8192 };

/* Nobody is attached yet. */
struct mcast_ends {
	struct datagram_pair t;
	union ibv_gid gid;
};

/* One that nobody else has. */
void invent_group(union ibv_gid *gid, bool is_ipv4);
void crowd_up(struct mcast_ends *c, bool is_ipv4);

/* From a to the group, to fill in further. */
struct test_wr *to_group(struct test_wr *w, struct mcast_ends *c, uint32_t length);
/* One datagram, which each end that is attached is to have room for. */
void send_to_group(struct mcast_ends *c);

void attach(struct endpoint *e, struct mcast_ends *c);
void detach(struct endpoint *e, struct mcast_ends *c);
void assert_got(struct endpoint *e, uint64_t wr_id);

#endif
