/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A multicast group, and two ends; the first sends to the group. */
#ifndef WEIR_TESTS_SOFTNIC_VERBS_MCAST_FIXTURE_H
#define WEIR_TESTS_SOFTNIC_VERBS_MCAST_FIXTURE_H

#include "tests/support/datagram_pair.h"

enum { IN_B = 8192 };

/* No end is attached yet. */
struct mcast_ends {
	struct datagram_pair t;
	union ibv_gid gid;
};

/* A random group, used by no other test. */
void invent_group(union ibv_gid *gid, bool is_ipv4);
void crowd_up(struct mcast_ends *c, bool is_ipv4);

/* From a to the group; the caller may complete the WR. */
struct test_wr *to_group(struct test_wr *w, struct mcast_ends *c, uint32_t length);
/* Send a datagram. Each attached end must have a receive. */
void send_to_group(struct mcast_ends *c);

void attach(struct endpoint *e, struct mcast_ends *c);
void detach(struct endpoint *e, struct mcast_ends *c);
void assert_got(struct endpoint *e, uint64_t wr_id);

#endif
