/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a NIC would have counted, for whoever wants to look from outside.
 *
 * Every process that has the software device open keeps its own counters in shared
 * memory that others may map read-only. This header and its small library find those
 * processes and read them; nothing here opens a device.
 */
#ifndef WEIR_SOFTNIC_CONTROL_STAT_H
#define WEIR_SOFTNIC_CONTROL_STAT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* X(name, what it counts) */
#define SOFTNIC_COUNTERS(X)                                                \
	X(doorbells, "calls of ibv_post_send and ibv_post_recv")           \
	X(send_wrs, "work requests posted to send queues")                 \
	X(recv_wrs, "work requests posted to receive queues")              \
	X(completions, "work completions polled")                          \
	X(cq_events, "completion events taken from channels")              \
	X(writes, "RDMA writes completed")                                 \
	X(reads, "RDMA reads completed")                                   \
	X(sends, "sends completed")                                        \
	X(atomics, "remote atomics completed")                             \
	X(write_bytes, "bytes moved by RDMA writes")                       \
	X(read_bytes, "bytes moved by RDMA reads")                         \
	X(send_bytes, "bytes moved by sends")                              \
	X(receives, "messages and immediates received")                    \
	X(receive_bytes, "bytes of messages received")                     \
	X(errors, "work completions with an error, flushed ones included") \
	X(rnr_naks, "times a receiver had no buffer posted")               \
	X(mrs, "memory regions now registered")                            \
	X(qps, "queue pairs now open")

/** struct softnic_counters - since the process opened the device, unless "now" */
struct softnic_counters {
#define SOFTNIC_COUNTER_FIELD(name, help) uint64_t name;
	SOFTNIC_COUNTERS(SOFTNIC_COUNTER_FIELD)
#undef SOFTNIC_COUNTER_FIELD
};

/** struct softnic_process - one process that has the device open */
struct softnic_process {
	pid_t pid;
	char comm[16];
	struct softnic_counters counters;
};

/**
 * softnic_stat() - read the counters of every process of this user that has the device open
 * @out: room for them
 * @room: how many @out can hold; SOFTNIC_SLOTS of device.h, 1024, are always enough
 * @count: how many were written
 *
 * Asks each process over its socket and waits for no one longer than half a second: a
 * process that is stopped is left out.
 *
 * Context: Any thread; blocks.
 * Return: 0, or a negative errno if no socket can be had at all.
 */
int softnic_stat(struct softnic_process *out, size_t room, size_t *count);

#endif
