/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The verbs calls of a program, as in libibverbs, with their CPU cost. The baselines and the core's
 * host use these calls.
 *
 * The thread @self makes each call, and its time passes. As in libibverbs' thread-safe form, a lock
 * guards a doorbell page when the device has fewer pages than QPs. The caller serialises the QP.
 */
#ifndef WEIR_SIM_NIC_VERBS_H
#define WEIR_SIM_NIC_VERBS_H

#include "sim/cpu/lock.h"
#include "sim/nic/nic.h"

/**
 * struct sim_device - a NIC as opened by a program
 * @nic: the NIC
 * @uars: locks of the doorbell pages, the profile's "uars" many
 */
struct sim_device {
	struct sim_nic *nic;
	struct sim_lock *uars;
};

/* Opens @nic, *kept*. Return: 0, or -ENOMEM. */
int sim_device_open(struct sim_device *device, struct sim_nic *nic);

/* Frees the locks. */
void sim_device_close(struct sim_device *device);

/**
 * sim_post_send() - post a chain with one doorbell
 * @self: the calling thread
 * @device: open
 * @qp: of @device
 * @wrs, @count: the chain; copied, except the memory that @sge points to
 *
 * Return: WRs that fitted the send queue.
 */
uint32_t sim_post_send(struct sim_thread *self, struct sim_device *device, struct sim_qp *qp,
		       const struct sim_wr *wrs, uint32_t count);

/* Posts @count receives. */
void sim_post_recv(struct sim_thread *self, struct sim_qp *qp, uint32_t count);

/* Takes up to @max completions. Return: how many. */
uint32_t sim_poll_cq(struct sim_thread *self, struct sim_cq *cq, struct sim_wc *wcs, uint32_t max);

/**
 * sim_await_cq() - poll in a loop until the CQ has a completion, without taking it
 * @self, @cq: as sim_poll_cq()
 * @max_ps: longest wait; SIM_NEVER: no bound
 *
 * Costs as much CPU as polling in a loop, with far fewer events. Also returns when another thread
 * pokes @self.
 */
void sim_await_cq(struct sim_thread *self, struct sim_cq *cq, uint64_t max_ps);

/* Arms the CQ: the next completion raises an event. Earlier completions raise none. */
void sim_req_notify_cq(struct sim_thread *self, struct sim_cq *cq);

/*
 * Sleeps until the channel has events and takes all of them, or until another thread wakes @self.
 * One thread a channel.
 */
void sim_get_cq_event(struct sim_thread *self, struct sim_channel *channel);

/* memcpy(). */
void sim_copy(struct sim_thread *self, uint64_t bytes);

/* ibv_reg_mr() and ibv_dereg_mr(). */
void sim_reg_mr(struct sim_thread *self, uint64_t bytes);
void sim_dereg_mr(struct sim_thread *self, uint64_t bytes);

#endif
