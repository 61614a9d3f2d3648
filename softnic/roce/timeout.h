/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * When a packet without an answer counts as lost. The program's timeout suits the slowest path: the
 * connection manager's is a second. So round trips are measured, and a packet is sent again after a
 * time that follows from them, as TCP does (RFC 6298). The time doubles, up to the program's
 * timeout, with each time in vain. The program's tries are counted by its own timeout: sending
 * again early never shortens the time until the peer counts as dead.
 *
 * Context of all: serialised by the queue pair.
 */
#ifndef WEIR_SOFTNIC_ROCE_TIMEOUT_H
#define WEIR_SOFTNIC_ROCE_TIMEOUT_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct roce_timeout - the time that a requester waits
 * @min_ns: the shortest; 0: always @max_ns
 * @max_ns: the program's timeout; 0: none
 * @mean_ns, @deviation_ns: smoothed, of round trips; @mean_ns is 0 before the first
 * @timed_psn: a packet before it was sent at @timed_ns, and once only; @timed_ns is 0 if none is
 *	timed
 * @began_ns: when the present try began; 0: nothing waits
 * @doublings: times in vain since the last progress
 */
struct roce_timeout {
	uint64_t min_ns, max_ns;
	uint64_t mean_ns, deviation_ns;
	uint64_t timed_psn, timed_ns;
	uint64_t began_ns;
	uint32_t doublings;
};

/** roce_timeout_ns() - how long to wait for the next answer; not if @max_ns is 0 */
uint64_t roce_timeout_ns(const struct roce_timeout *t);

/** roce_timeout_sent() - the packet before @psn leaves for the first time, and will be answered */
void roce_timeout_sent(struct roce_timeout *t, uint64_t psn, uint64_t now_ns);

/** roce_timeout_began() - an answer is waited for */
void roce_timeout_began(struct roce_timeout *t, uint64_t now_ns);

/** roce_timeout_answered() - all before @psn is answered; @waits: but not all that was sent */
void roce_timeout_answered(struct roce_timeout *t, uint64_t psn, bool waits, uint64_t now_ns);

/** roce_timeout_rewound() - packets are sent again: their answers measure nothing */
void roce_timeout_rewound(struct roce_timeout *t);

/** roce_timeout_heard() - the peer has answered, but nothing is done: a new try begins */
void roce_timeout_heard(struct roce_timeout *t);

/** roce_timeout_expired() - no answer came; true if one of the program's tries is over */
bool roce_timeout_expired(struct roce_timeout *t, uint64_t now_ns);

#endif
