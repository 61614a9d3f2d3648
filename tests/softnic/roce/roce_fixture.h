/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two queue pairs, A and B, and their hosts. A test carries the packets itself. */
#ifndef WEIR_TESTS_SOFTNIC_ROCE_ROCE_FIXTURE_H
#define WEIR_TESTS_SOFTNIC_ROCE_ROCE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "softnic/roce/icrc.h"
#include "softnic/roce/psn.h"
#include "softnic/roce/qp.h"

enum {
	FIXTURE_WQES = 16,
	FIXTURE_DEPTH = 2,
	FIXTURE_READ_PACKETS = 4,
	FIXTURE_MTU = 256,
	FIXTURE_BYTES = 4096,
	FIXTURE_ARRIVALS = 16,
	FIXTURE_RKEY = 77,
	FIXTURE_TIMEOUT = 4, /* 65.536 us */
	FIXTURE_TIMEOUT_NS = 4096 << FIXTURE_TIMEOUT,
	FIXTURE_RNR_TIMER = 3, /* 30 us */
	FIXTURE_RNR_NS = 30000,
	FIXTURE_PSN = 0xfffffe, /* A's first */
};

/*
 * @memory: that the peer may access, from address 0 on; @local: that WQEs read and responses fill
 * @receive: bytes of the receive taken; @room: of each receive; @receives: posted
 * @rights: of the peer, a bit for each enum roce_right; @revoked: none are left
 * @unmapped: the receives' memory is gone
 */
struct roce_host {
	struct roce_qp qp;
	struct roce_wqe wqes[FIXTURE_WQES];
	struct roce_resource resources[FIXTURE_DEPTH];
	uint8_t memory[FIXTURE_BYTES], local[FIXTURE_BYTES], receive[FIXTURE_BYTES];
	struct roce_arrival arrivals[FIXTURE_ARRIVALS];
	uint32_t num_arrivals, receives, room, writes, given_back;
	bool is_taken, revoked, hides_receives, unmapped;
	uint32_t rights;
	uint64_t now_ns;
	uint32_t invalidated;
};

/* A packet that a queue pair sent. */
struct roce_sent {
	struct roce_packet p;
	uint8_t bytes[ROCE_PACKET_MAX];
};

extern struct roce_host a, b;

/* Both queue pairs of a kind, new. */
void roce_setup(enum roce_transport transport);
/* Posts @op of @length bytes at remote address 0. */
void roce_post(struct roce_host *host, enum roce_op op, uint32_t length);
/* The next packet of @host; false if none. */
bool roce_sent(struct roce_host *host, struct roce_sent *sent);
/* The next packet of @host, of @opcode; the test fails otherwise. */
void roce_expect(struct roce_host *host, uint8_t opcode, struct roce_sent *sent);
void roce_expect_silence(struct roce_host *host);
void roce_deliver(struct roce_host *to, const struct roce_sent *sent);
/* Carries packets both ways until both ends are silent. */
void roce_settle(void);
/* Time passes for @host. */
void roce_wait(struct roce_host *host, uint64_t ns);
void roce_expect_completion(struct roce_host *host, enum roce_status status);
void roce_expect_no_completion(struct roce_host *host);

#endif
