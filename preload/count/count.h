/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counting at the verbs boundary: the same on every device.
 *
 * libweir-count.so stands before libibverbs, preloaded (before softnic, if that is too) or
 * linked (before -libverbs), and counts what a program posts and takes, on all devices that
 * it opens. It changes nothing that a program sees. What bears a name of softnic/control/stat.h
 * means the same; softnic counts work when it is done, this what was posted, because work
 * without a completion passes the boundary once.
 *
 * With WEIR_COUNT=FILE in the environment, each process that opened a device appends a line of
 * JSON to FILE when it exits: {"pid": 7, "program": "x", "doorbells": 3, ...}.
 */
#ifndef WEIR_PRELOAD_COUNT_COUNT_H
#define WEIR_PRELOAD_COUNT_COUNT_H

#include <stdint.h>

/* X(name, what it counts) */
#define VERBS_COUNTERS(X)                                                             \
	X(doorbells, "posts: ibv_post_send, _recv and _srq_recv, ibv_wr_complete")    \
	X(send_wrs, "work requests accepted by send queues")                          \
	X(recv_wrs, "work requests accepted by receive queues, shared ones included") \
	X(completions, "work completions polled")                                     \
	X(cq_events, "completion events taken from channels")                         \
	X(async_events, "asynchronous events taken from devices")                     \
	X(receives, "messages and immediates received")                               \
	X(receive_bytes, "bytes of messages received")                                \
	X(errors, "work completions with an error, flushed ones included")            \
	X(polls, "calls of ibv_poll_cq, ibv_start_poll and ibv_next_poll")            \
	X(empty_polls, "of them, those that found nothing")                           \
	X(arms, "calls of ibv_req_notify_cq")                                         \
	X(posted_writes, "RDMA writes posted")                                        \
	X(posted_reads, "RDMA reads posted")                                          \
	X(posted_sends, "sends posted")                                               \
	X(posted_atomics, "remote atomics posted")                                    \
	X(posted_write_bytes, "bytes of the RDMA writes posted")                      \
	X(posted_read_bytes, "bytes of the RDMA reads posted")                        \
	X(posted_send_bytes, "bytes of the sends posted")

/** struct verbs_counters - of all devices of this process, since it began */
struct verbs_counters {
#define VERBS_COUNTER_FIELD(name, help) uint64_t name;
	VERBS_COUNTERS(VERBS_COUNTER_FIELD)
#undef VERBS_COUNTER_FIELD
};

/**
 * verbs_count_read() - what has been counted so far
 *
 * Each counter is read by itself: while other threads post, they need not fit together.
 *
 * Context: Any thread; never blocks.
 */
void verbs_count_read(struct verbs_counters *out);

#endif
