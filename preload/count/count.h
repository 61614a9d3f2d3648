/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counts verbs calls of a program, in the same way on every device.
 *
 * libweir-count.so stands before libibverbs: preloaded (before softnic, if present) or linked
 * (before -libverbs). The library counts posted work and polled completions on all devices that the
 * program opens, and changes nothing that the program sees. Counters named as in
 * softnic/control/stat.h have the same meaning, with one difference: softnic counts work on
 * completion, this library when posted, because unsignalled work passes the boundary only once.
 *
 * With WEIR_COUNT=FILE in the environment, each process that opened a device appends a line of JSON
 * to FILE at exit: {"pid": 7, "program": "x", "doorbells": 3, ...}.
 */
#ifndef WEIR_PRELOAD_COUNT_COUNT_H
#define WEIR_PRELOAD_COUNT_COUNT_H

#include <stdint.h>

/* X(name, help) */
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

/** struct verbs_counters - totals over all devices of this process since its start */
struct verbs_counters {
#define VERBS_COUNTER_FIELD(name, help) uint64_t name;
	VERBS_COUNTERS(VERBS_COUNTER_FIELD)
#undef VERBS_COUNTER_FIELD
};

/**
 * verbs_count_read() - read the counters
 *
 * Each counter is read separately: while other threads post, the values may not fit together.
 *
 * Context: Any thread; never blocks.
 */
void verbs_count_read(struct verbs_counters *out);

#endif
