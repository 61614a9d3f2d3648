/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a program calls, as in libibverbs, and what it costs the CPU. Baselines and the core's host
 * are written against this.
 *
 * All by a thread, "@self", whose time passes. As in libibverbs' thread-safe form, a QP's doorbell
 * page is behind a lock of its own when the device has fewer pages than QPs; the QP itself is the
 * caller's to serialise.
 */
#ifndef WEIR_SIM_NIC_VERBS_H
#define WEIR_SIM_NIC_VERBS_H

#include "sim/cpu/lock.h"
#include "sim/nic/nic.h"

/**
 * struct sim_device - a NIC as a program opens it
 * @nic: the NIC
 * @uars: its doorbell pages' locks, the profile's "uars" of them
 */
struct sim_device {
	struct sim_nic *nic;
	struct sim_lock *uars;
};

/* Opens @nic, *kept*. Return: 0, or -ENOMEM. */
int sim_device_open(struct sim_device *device, struct sim_nic *nic);

/* Frees what it holds. */
void sim_device_close(struct sim_device *device);

/**
 * sim_post_send() - post a chain, with one doorbell
 * @self: who
 * @device: open
 * @qp: of that device
 * @wrs, @count: the chain; copied but for the pieces of memory
 *
 * Return: how many fitted the send queue.
 */
uint32_t sim_post_send(struct sim_thread *self, struct sim_device *device, struct sim_qp *qp,
		       const struct sim_wr *wrs, uint32_t count);

/* Posts @count receives. */
void sim_post_recv(struct sim_thread *self, struct sim_qp *qp, uint32_t count);

/* Takes up to @max completions. Return: how many. */
uint32_t sim_poll_cq(struct sim_thread *self, struct sim_cq *cq, struct sim_wc *wcs, uint32_t max);

/**
 * sim_await_cq() - poll in a loop until there is something, and leave it there
 * @self, @cq: as sim_poll_cq()
 * @max_ps: for so long at most; SIM_NEVER: no bound
 *
 * Costs what as many polls would, and far fewer events. Returns also when somebody pokes the
 * thread for another reason.
 */
void sim_await_cq(struct sim_thread *self, struct sim_cq *cq, uint64_t max_ps);

/* The next completion raises an event; what is there already does not. */
void sim_req_notify_cq(struct sim_thread *self, struct sim_cq *cq);

/*
 * Sleeps until there is an event, and takes all that there are; or until somebody wakes the thread
 * for another reason. One thread a channel.
 */
void sim_get_cq_event(struct sim_thread *self, struct sim_channel *channel);

/* memcpy(). */
void sim_copy(struct sim_thread *self, uint64_t bytes);

/* ibv_reg_mr() and ibv_dereg_mr(). */
void sim_reg_mr(struct sim_thread *self, uint64_t bytes);
void sim_dereg_mr(struct sim_thread *self, uint64_t bytes);

#endif
