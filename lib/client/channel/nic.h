/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the sessions of one process share on one device. */
#ifndef WEIR_LIB_CLIENT_CHANNEL_NIC_H
#define WEIR_LIB_CLIENT_CHANNEL_NIC_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include <weir/session.h>
#include "core/base/inbox.h"
#include "core/base/list.h"
#include "core/sched/window_delay.h"
#include "core/sched/window_knee.h"
#include "lib/base/mutex.h"

#define WEIR_WINDOW_BYTES_DEFAULT (8u << 20)
#define WEIR_WINDOW_BYTES_MIN (64u << 10)
#define WEIR_WINDOW_WRS 4096
#define WEIR_WAKES_MAX 16

/**
 * struct weir_nic - one device, as this process uses it
 * @lock: guards @window, the engines that take from it, and all else in their sessions that
 *	says so. Innermost but for the locks of queues and pools; callbacks run without it. Taken
 *	and given back by serve.h
 * @inbox: requests that nobody has taken yet
 * @fed: sessions that may have something to post
 * @wakes: words on which threads sleep that are to be woken, @nr_wakes of them: see weir_nic_wake()
 * @context: the connection manager's, which lives while a session has a connection
 * @pd: of all sessions, so that they may share memory
 * @rd_atomic: RDMA reads and atomics in flight that a QP can have
 * @numa_node: that it is on, or -1
 * @dyn_bytes: from this length on registering memory is cheaper than copying it
 * @sge_max: entries of local memory that a WR can have
 * @window: what may be in flight; @delay or @knee moves its limit, or neither
 * @scq: completion queues that sessions share, if any do
 * @vectors: completion vectors given out so far; atomic
 * @users, @next: the list of NICs'
 *
 * Its memory stays a NIC's for ever: a thread that has left a request may come for the lock when
 * that is done, and its session closed.
 */
struct weir_nic {
	struct weir_mutex lock;
	struct weir_inbox inbox;
	struct weir_list fed;
	uint32_t *wakes[WEIR_WAKES_MAX];
	unsigned int nr_wakes;
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint8_t rd_atomic;
	int numa_node;
	uint32_t dyn_bytes;
	uint8_t sge_max;
	struct weir_window window;
	union {
		struct weir_window_delay delay;
		struct weir_window_knee knee;
	};
	struct weir_scq *scq;
	unsigned int vectors;
	unsigned int users;
	struct weir_nic *next;
};

/**
 * weir_nic_get() - the NIC of a device; the first one to ask makes it
 * @context: the device, opened
 * @options: window and admission, if it is made now; filled in
 * @nic: receives it; give it back with weir_nic_put()
 *
 * Context: any thread. Return: 0; -ENOMEM; what the device says.
 */
int weir_nic_get(struct ibv_context *context, const struct weir_session_options *options,
		 struct weir_nic **nic, struct weir_error *error);

/* The completion vector of the next CQ: one of the first @max that the device has, 0: of all. */
int weir_nic_next_vector(struct weir_nic *nic, unsigned int max);

/* The last one to leave unmakes it. */
void weir_nic_put(struct weir_nic *nic);

#endif
