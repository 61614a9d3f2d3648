/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The counters of the software device, read from another process.
 *
 * Every process with the device open keeps its counters in shared memory, which other processes
 * may map read-only. This header and its small library find the processes and read their counters,
 * without opening a device.
 */
#ifndef WEIR_SOFTNIC_CONTROL_STAT_H
#define WEIR_SOFTNIC_CONTROL_STAT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* X(name, help) */
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
	X(packets_out, "packets sent to other hosts")                      \
	X(packets_in, "packets of other hosts accepted by a queue pair")   \
	X(refused, "packets of other hosts refused as damaged or foreign") \
	X(retransmitted, "packets sent again to other hosts")              \
	X(duplicates, "packets of other hosts that came twice")            \
	X(gaps, "packets of other hosts that came past a lost one")        \
	X(sealed, "encrypted packets sent to other hosts")                 \
	X(forged, "packets refused as not properly encrypted")              \
	X(mrs, "memory regions now registered")                            \
	X(qps, "queue pairs now open")

/** struct softnic_counters - counts since the process opened the device, or, with "now", levels */
struct softnic_counters {
#define SOFTNIC_COUNTER_FIELD(name, help) uint64_t name;
	SOFTNIC_COUNTERS(SOFTNIC_COUNTER_FIELD)
#undef SOFTNIC_COUNTER_FIELD
};

/* X(name, help): of the packets to and from one peer; bytes are those of programs */
#define SOFTNIC_PEER_COUNTERS(X)                                          \
	X(packets_out, "packets sent to a peer on another host")          \
	X(packets_in, "packets of a peer accepted by a queue pair")       \
	X(bytes_out, "bytes of payload sent to a peer, repeated ones too") \
	X(bytes_in, "bytes of payload received from a peer")              \
	X(retransmitted, "packets sent again to a peer")                  \
	X(duplicates, "packets of a peer that came twice")                \
	X(gaps, "packets of a peer that came past a lost one")            \
	X(timeouts, "times that a peer did not answer in time")           \
	X(naks_out, "NAKs sent to a peer")                                \
	X(naks_in, "NAKs of a peer")                                      \
	X(rnr_out, "times that a peer was told that no buffer is posted") \
	X(rnr_in, "times that a peer had no buffer posted")

struct softnic_peer_counters {
#define SOFTNIC_COUNTER_FIELD(name, help) uint64_t name;
	SOFTNIC_PEER_COUNTERS(SOFTNIC_COUNTER_FIELD)
#undef SOFTNIC_COUNTER_FIELD
};

enum { SOFTNIC_PEERS_MAX = 32 };

/** struct softnic_peer - a host that a process exchanged packets with; @gid of zeros: the rest */
struct softnic_peer {
	uint8_t gid[16];
	struct softnic_peer_counters counters;
};

/** struct softnic_process - one process that has the device open */
struct softnic_process {
	pid_t pid;
	char comm[16];
	struct softnic_counters counters;
	size_t nr_peers;
	struct softnic_peer peers[SOFTNIC_PEERS_MAX];
};

/**
 * softnic_stat() - read the counters of every process of this user that has the device open
 * @out: the processes
 * @room: capacity of @out; SOFTNIC_SLOTS of device.h, 1024, is always enough
 * @count: set to the number of processes written
 *
 * Asks all processes over their sockets, 64 at a time, and then waits up to half a second for the
 * answers. A stopped process is left out at once.
 *
 * Context: Any thread; blocks.
 * Return: 0, or a negative errno if no socket can be created.
 */
int softnic_stat(struct softnic_process *out, size_t room, size_t *count);

/* The same. @silent: set to the number of processes without an answer, stopped ones included. */
int softnic_stat_answers(struct softnic_process *out, size_t room, size_t *count, size_t *silent);

#endif
