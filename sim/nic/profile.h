/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Costs of a host and its NIC. A profile file gives one "name = value" a line; the comment after
 * "#" names the source of the number.
 *
 * A COUNT is a whole number. A TIME is called name_ns in files, may have up to three decimals, and
 * is stored in picoseconds. A RATE is called name_gbps in files, may have up to three decimals, and
 * is stored in megabits a second.
 */
#ifndef WEIR_SIM_NIC_PROFILE_H
#define WEIR_SIM_NIC_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_PROFILE(COUNT, TIME, RATE)                                                    \
	/* The host. */                                                                   \
	COUNT(cores) /* logical CPUs */                                                   \
	TIME(quantum) /* a thread keeps its core this long although others wait */        \
	TIME(switch) /* to another thread on a core */                                    \
	TIME(wake) /* from waking a thread until it is ready */                           \
	TIME(wake_call) /* CPU of the waker */                                            \
	TIME(syscall) /* in and out of the kernel */                                      \
	TIME(irq) /* CPU of an interrupt, its handler included */                         \
	TIME(irq_latency) /* from the event's arrival to the handler */                   \
	TIME(lock) /* an uncontended lock */                                              \
	TIME(handoff) /* contended: from giver to taker */                                \
	TIME(handoff_waiter) /* added for each thread that goes on waiting */             \
	RATE(copy) /* memcpy by one thread */                                             \
	TIME(copy_call) /* added per call */                                              \
	COUNT(page_bytes) /* of registered memory */                                      \
	TIME(reg) /* ibv_reg_mr */                                                        \
	TIME(reg_page) /* added per page */                                               \
	TIME(dereg) /* ibv_dereg_mr */                                                    \
	TIME(dereg_page) /* added per page */                                             \
	/* Verbs, on the CPU. */                                                          \
	TIME(post) /* build a WQE */                                                      \
	TIME(post_sge) /* each entry after the first */                                   \
	TIME(post_recv) /* a receive */                                                   \
	TIME(doorbell) /* ring */                                                         \
	TIME(blueflame) /* write a WQE through the doorbell page instead */               \
	COUNT(blueflame_inline_only) /* 1: only WQEs that carry their data, as in mlx4 */ \
	COUNT(blueflame_bytes_max) /* payload of an inlined one */                        \
	COUNT(inline_max) /* bytes */                                                     \
	COUNT(uars) /* doorbell pages, each behind a lock; 0: one a QP, without */        \
	TIME(poll_empty) /* ibv_poll_cq that finds nothing */                             \
	TIME(poll) /* ibv_poll_cq that finds completions */                               \
	TIME(poll_wc) /* added per completion */                                          \
	TIME(arm) /* ibv_req_notify_cq */                                                 \
	/* PCIe. */                                                                       \
	TIME(pcie) /* one way */                                                          \
	RATE(pcie_read) /* highest rate of reads by the NIC */                            \
	RATE(pcie_write) /* highest rate of writes by the NIC */                          \
	COUNT(pcie_bytes_min) /* shorter transfers take as long as this */                \
	COUNT(pcie_tags) /* reads under way at a time */                                  \
	COUNT(pcie_read_bytes) /* longest read */                                         \
	/* The NIC. */                                                                    \
	COUNT(pus) /* processing units; a QP is bound to one */                           \
	TIME(tx_write) /* of the whole NIC, per WQE */                                    \
	TIME(tx_read)                                                                     \
	TIME(tx_send)                                                                     \
	TIME(rx_write) /* per incoming message, of the whole NIC */                       \
	TIME(rx_read)                                                                     \
	TIME(rx_send)                                                                     \
	TIME(tx_latency) /* from the WQE to the port */                                   \
	TIME(rx_latency) /* from the port to PCIe or to the answer */                     \
	TIME(ack_latency) /* from an answer's arrival to the completion */                \
	TIME(atomic) /* per atomic, one at a time */                                      \
	COUNT(fetch_wqes) /* WQEs in one read */                                          \
	COUNT(reads_max) /* RDMA reads and atomics of a QP under way */                   \
	COUNT(cache_ways) /* of all caches but the WQE cache */                           \
	COUNT(wqe_ways)                                                                   \
	COUNT(wqe_entries)                                                                \
	COUNT(wqe_slots_write) /* entries of a write or send until it is confirmed */     \
	TIME(wqe_miss) /* delay of the message that missed */                             \
	TIME(wqe_stall) /* stall of the whole NIC */                                      \
	TIME(wqe_stall_read) /* the same, for a read or atomic */                         \
	COUNT(qpc_entries)                                                                \
	TIME(qpc_miss)                                                                    \
	TIME(qpc_stall)                                                                   \
	COUNT(mtt_entries)                                                                \
	TIME(mtt_miss)                                                                    \
	TIME(mtt_stall)                                                                   \
	COUNT(mpt_entries)                                                                \
	TIME(mpt_miss)                                                                    \
	TIME(mpt_stall)                                                                   \
	COUNT(tx_quantum_bytes) /* payload of one QP before another QP's turn */          \
	COUNT(burst_bytes) /* bytes read from memory before they go on */                 \
	COUNT(cqe_bytes)                                                                  \
	TIME(rnr) /* delay before a message without a receive is sent again */            \
	/* The wire. */                                                                   \
	RATE(link)                                                                        \
	COUNT(mtu)                                                                        \
	COUNT(header_bytes) /* per packet */                                              \
	COUNT(ack_bytes)                                                                  \
	TIME(wire) /* one way, cables and switch */

#define SIM_PROFILE_COUNT(name) uint64_t name;
#define SIM_PROFILE_TIME(name) uint64_t name##_ps;
#define SIM_PROFILE_RATE(name) uint64_t name##_mbps;

/* The numbers. A loaded profile has them all. */
struct sim_profile {
	SIM_PROFILE(SIM_PROFILE_COUNT, SIM_PROFILE_TIME, SIM_PROFILE_RATE)
};

#define SIM_PROFILE_WHY_BYTES 256

/**
 * sim_profile_load() - read a profile from a file
 * @profile: receives the numbers
 * @path: the file
 * @why: receives the error and its place: "FILE:LINE: ..."
 *
 * Return: 0, or -EINVAL: the file is unreadable, a line is bad, a name is missing or comes twice.
 */
int sim_profile_load(struct sim_profile *profile, const char *path,
		     char why[SIM_PROFILE_WHY_BYTES]);

/**
 * sim_profile_set() - set one number
 * @profile: receives the number
 * @name, @value: as in a file
 *
 * Return: 0; -ENOENT: no such name; -EINVAL: no such value.
 */
int sim_profile_set(struct sim_profile *profile, const char *name, const char *value);

/**
 * sim_profile_check() - check that a machine can be built from a profile
 *
 * Return: NULL, or the name of a number out of range.
 */
const char *sim_profile_check(const struct sim_profile *profile);

/* Time that @bytes take at @mbps. */
static inline uint64_t sim_bytes_ps(uint64_t bytes, uint64_t mbps)
{
	return bytes * 8000000 / mbps;
}

#endif
