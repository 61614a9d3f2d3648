/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two queue pairs of softnic's transport between hosts, both sending, and a network that drops,
 * repeats, reorders, delays, corrupts and forges packets.
 *
 * The model knows the bytes of each message from its number. So it needs no memory: an effect at
 * the target is right if it is the next one of the peer's messages, in order and once. UC may skip
 * messages; UD delivers them in any order, and again.
 */
#ifndef WEIR_SIM_HUNT_FUZZ_ROCE_H
#define WEIR_SIM_HUNT_FUZZ_ROCE_H

#include "sim/hunt/hunt.h"
#include "softnic/roce/icrc.h"
#include "softnic/roce/qp.h"

#define FUZZ_ROCE_WQES 16
#define FUZZ_ROCE_DEPTH_MAX 4
#define FUZZ_ROCE_MESSAGES 1024 /* of an end that have not ended, or whose packets may still come */
#define FUZZ_ROCE_FLYING 512
#define FUZZ_ROCE_COUNTERS 4
#define FUZZ_ROCE_MTU ROCE_MTU_MIN
#define FUZZ_ROCE_PACKETS 5 /* of the longest message */
#define FUZZ_ROCE_ROOM ((FUZZ_ROCE_PACKETS - 1) * FUZZ_ROCE_MTU) /* of a receive */
#define FUZZ_ROCE_PACKET_BYTES (ROCE_HEADERS_MAX + FUZZ_ROCE_MTU + ROCE_ICRC_BYTES)

/*
 * @wqe: as posted; its id is its number; with its PSNs
 * @is_bad: the peer must refuse the message, or this end cannot read its own memory
 * @bytes: of its effect so far, or of the data that a read got
 * @is_done: has taken effect in full
 * @original: of an atomic that was executed
 */
struct fuzz_roce_message {
	struct roce_wqe wqe;
	bool is_bad;
	bool is_done;
	uint32_t bytes;
	uint64_t original;
};

/**
 * struct fuzz_roce_end - a queue pair with its host
 * @messages: posted, by number; a ring
 * @to_come: messages still to post
 * @nr_posted, @nr_ended: messages
 * @effect: number of the peer's message whose effect comes next
 * @arriving: number of the peer's message whose packet arrives, for UC and UD
 * @receives: posted and not taken; @is_taken: one is taken
 * @hides_receives: no end-to-end credits
 * @is_revoked: the peer's rights have ended
 * @has_failed: a completion had an error
 * @last_nak: PSN of the last NAK for a gap
 * @post_ns: time of the next post
 */
struct fuzz_roce_end {
	struct fuzz_roce *world;
	struct fuzz_roce_end *peer;
	struct roce_qp qp;
	struct roce_wqe wqes[FUZZ_ROCE_WQES];
	struct roce_resource resources[FUZZ_ROCE_DEPTH_MAX];
	struct fuzz_roce_message messages[FUZZ_ROCE_MESSAGES];
	uint64_t to_come, nr_posted, nr_ended, effect, arriving;
	uint64_t counters[FUZZ_ROCE_COUNTERS];
	uint32_t receives;
	bool is_taken, hides_receives, is_revoked, has_failed;
	int64_t last_nak;
	uint64_t post_ns;
};

struct fuzz_roce_flight {
	uint64_t at_ns;
	struct fuzz_roce_end *to;
	size_t size;
	uint8_t bytes[FUZZ_ROCE_PACKET_BYTES];
};

/**
 * struct fuzz_roce - the world
 * @flying: packets in the network, in no order
 * @transport: of both queue pairs
 * @drop, @repeat, @late, @corrupt, @forge: packets in 1,000
 * @delay_ns: the same for all packets, so that they stay in order, or 0
 * @dead_ns: the network carries nothing from then on, or ROCE_NEVER
 * @bad: number of the bad message of the first end, or UINT64_MAX
 * @revoke_ns: when the second end revokes the first end's rights, or ROCE_NEVER
 * @packets: carried so far
 */
struct fuzz_roce {
	struct hunt *hunt;
	struct sim_rng rng;
	uint64_t now_ns;
	struct fuzz_roce_end ends[2];
	struct fuzz_roce_flight flying[FUZZ_ROCE_FLYING];
	uint32_t nr_flying;
	enum roce_transport transport;
	uint32_t drop, repeat, late, corrupt, forge, delay_ns;
	uint64_t dead_ns, revoke_ns, bad;
	uint64_t packets;
};

static inline uint32_t fuzz_roce_draw(struct fuzz_roce *f, uint32_t count)
{
	return (uint32_t)sim_rng_below(&f->rng, count);
}

/* fuzz_roce_model.c: the hosts' memory, which checks each access. */
extern const struct roce_ops fuzz_roce_ops;
/* A packet with @psn is about to arrive at @end. */
void fuzz_roce_announce(struct fuzz_roce_end *end, uint32_t psn);
/* Makes up the next message of an end and posts it. */
void fuzz_roce_post(struct fuzz_roce_end *end);
/* Takes and checks an end's completions. */
void fuzz_roce_complete(struct fuzz_roce_end *end);
/* At the end: all messages have ended, and those that could did. */
void fuzz_roce_over(struct fuzz_roce_end *end);

#endif
