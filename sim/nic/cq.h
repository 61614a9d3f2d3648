/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues and their events.
 *
 * A CQ belongs to a completion channel, and the channel to a completion vector. An event interrupts
 * the vector's core and wakes the thread that waits on the channel.
 */
#ifndef WEIR_SIM_NIC_CQ_H
#define WEIR_SIM_NIC_CQ_H

#include "sim/cpu/thread.h"

struct sim_qp;

/**
 * struct sim_wc - a work completion
 * @id: as posted; 0 for a receive
 * @qp: the QP of the work request
 * @bytes: received
 * @status: 0 or a negative errno
 * @is_recv: a receive
 */
struct sim_wc {
	uint64_t id;
	struct sim_qp *qp;
	uint32_t bytes;
	int16_t status;
	bool is_recv;
};

/**
 * struct sim_channel - a completion channel
 * @core: the core that the vector interrupts
 * @waiter: the waiting thread, or NULL
 * @events: events not yet taken
 * @event: end of the interrupt handler
 * @raised: interrupts whose handler has not run yet
 */
struct sim_channel {
	struct sim_core *core;
	struct sim_thread *waiter;
	uint32_t events;
	struct sim_event event;
	uint32_t raised;
};

/**
 * struct sim_cq - one completion queue
 * @channel: for events, or NULL
 * @msi: the interrupt on its way to the core
 * @ring, @room, @first, @count: completions, oldest first
 * @is_armed: the next completion raises an event
 * @spinners: threads that poll in a loop, by wait_link
 * @pushed: completions so far
 */
struct sim_cq {
	struct sim_channel *channel;
	struct sim_event msi;
	struct sim_wc *ring;
	uint32_t room;
	uint32_t first;
	uint32_t count;
	bool is_armed;
	struct weir_list spinners;
	uint64_t pushed;
};

/* A channel without events, *kept*. */
void sim_channel_init(struct sim_channel *channel, struct sim_core *core);

/**
 * sim_cq_init() - an empty CQ
 * @cq: *kept*
 * @channel: *kept*, or NULL
 * @room: initial capacity in completions, at least 1; grows when needed
 *
 * Return: 0, or -ENOMEM.
 */
int sim_cq_init(struct sim_cq *cq, struct sim_channel *channel, uint32_t room);

/* Frees the ring. */
void sim_cq_fini(struct sim_cq *cq);

/* A completion written by the device becomes visible to the CPU now. */
void sim_cq_push(struct sim_cq *cq, const struct sim_wc *wc);

#endif
