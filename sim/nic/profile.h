/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a host and its NIC cost: the numbers that a profile file gives, one "name = value" a line,
 * "#" and what follows for people: where the number comes from.
 *
 * A COUNT is a whole number; a TIME is called name_ns in files, may have up to three decimals,
 * and is picoseconds here; a RATE is called name_gbps, may have up to three decimals, and is
 * megabits a second here.
 */
#ifndef WEIR_SIM_NIC_PROFILE_H
#define WEIR_SIM_NIC_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_PROFILE(COUNT, TIME, RATE)                                                    \
	/* The host. */                                                                   \
	COUNT(cores) /* logical CPUs */                                                   \
	TIME(quantum) /* a thread keeps its core so long although others want it */       \
	TIME(switch) /* another thread on a core */                                       \
	TIME(wake) /* from waking a thread until it is ready */                           \
	TIME(wake_call) /* CPU of who wakes it */                                         \
	TIME(syscall) /* in and out of the kernel */                                      \
	TIME(irq) /* CPU of an interrupt, its handler included */                         \
	TIME(irq_latency) /* from the event's arrival to the handler */                   \
	TIME(lock) /* an uncontended lock */                                              \
	TIME(handoff) /* a contended one, from giver to taker */                          \
	TIME(handoff_waiter) /* and so much more for each that goes on waiting */         \
	RATE(copy) /* memcpy by one thread */                                             \
	TIME(copy_call) /* and per call */                                                \
	COUNT(page_bytes) /* of registered memory */                                      \
	TIME(reg) /* ibv_reg_mr */                                                        \
	TIME(reg_page) /* and per page */                                                 \
	TIME(dereg) /* ibv_dereg_mr */                                                    \
	TIME(dereg_page) /* and per page */                                               \
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
	TIME(poll) /* that finds something */                                             \
	TIME(poll_wc) /* and per completion */                                            \
	TIME(arm) /* ibv_req_notify_cq */                                                 \
	/* PCIe. */                                                                       \
	TIME(pcie) /* one way */                                                          \
	RATE(pcie_read) /* what a NIC reads at most */                                    \
	RATE(pcie_write) /* what it writes at most */                                     \
	COUNT(pcie_bytes_min) /* a shorter transfer takes as long as this */              \
	COUNT(pcie_tags) /* reads under way at a time */                                  \
	COUNT(pcie_read_bytes) /* of one read at most */                                  \
	/* The NIC. */                                                                    \
	COUNT(pus) /* processing units; a QP is bound to one */                           \
	TIME(tx_write) /* of the whole NIC, per WQE */                                    \
	TIME(tx_read)                                                                     \
	TIME(tx_send)                                                                     \
	TIME(rx_write) /* of the whole NIC, per message that comes in */                  \
	TIME(rx_read)                                                                     \
	TIME(rx_send)                                                                     \
	TIME(tx_latency) /* from the WQE to the port */                                   \
	TIME(rx_latency) /* from the port to PCIe or the answer */                        \
	TIME(ack_latency) /* from an answer's arrival to the completion */                \
	TIME(atomic) /* one atomic after the other */                                     \
	COUNT(fetch_wqes) /* WQEs in one read */                                          \
	COUNT(reads_max) /* RDMA reads and atomics of a QP under way */                   \
	COUNT(cache_ways) /* of all caches but the next */                                \
	COUNT(wqe_ways)                                                                   \
	COUNT(wqe_entries)                                                                \
	COUNT(wqe_slots_write) /* entries of a write or send until it is confirmed */     \
	TIME(wqe_miss) /* how much later, for who missed */                               \
	TIME(wqe_stall) /* how long the whole NIC waits */                                \
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
	COUNT(tx_quantum_bytes) /* of one QP before another's turn */                     \
	COUNT(burst_bytes) /* how much is read from memory before it goes on */           \
	COUNT(cqe_bytes)                                                                  \
	TIME(rnr) /* until a message that found no receive is sent again */               \
	/* The wire. */                                                                   \
	RATE(link)                                                                        \
	COUNT(mtu)                                                                        \
	COUNT(header_bytes) /* per packet */                                              \
	COUNT(ack_bytes)                                                                  \
	TIME(wire) /* one way, cables and switch */

#define SIM_PROFILE_COUNT(name) uint64_t name;
#define SIM_PROFILE_TIME(name) uint64_t name##_ps;
#define SIM_PROFILE_RATE(name) uint64_t name##_mbps;

/* The numbers; a profile that was loaded has them all. */
struct sim_profile {
	SIM_PROFILE(SIM_PROFILE_COUNT, SIM_PROFILE_TIME, SIM_PROFILE_RATE)
};

#define SIM_PROFILE_WHY_BYTES 256

/**
 * sim_profile_load() - read a profile from a file
 * @profile: receives it
 * @path: the file
 * @why: receives what is wrong, and where: "FILE:LINE: ..."
 *
 * Return: 0, or -EINVAL: it cannot be read, a line is bad, a name comes twice or is missing.
 */
int sim_profile_load(struct sim_profile *profile, const char *path,
		     char why[SIM_PROFILE_WHY_BYTES]);

/**
 * sim_profile_set() - give one number
 * @profile: receives it
 * @name: as in a file
 * @value: as in a file
 *
 * Return: 0; -ENOENT: no such name; -EINVAL: no such value.
 */
int sim_profile_set(struct sim_profile *profile, const char *name, const char *value);

/**
 * sim_profile_check() - whether a machine can be built of it
 *
 * Return: NULL, or the name of a number that is out of its range.
 */
const char *sim_profile_check(const struct sim_profile *profile);

/* How long @bytes take at @mbps. */
static inline uint64_t sim_bytes_ps(uint64_t bytes, uint64_t mbps)
{
	return bytes * 8000000 / mbps;
}

#endif
