/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* State that the sessions of one process share on one device. */
#ifndef WEIR_LIB_CLIENT_CHANNEL_NIC_H
#define WEIR_LIB_CLIENT_CHANNEL_NIC_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/tuning.h>
#include "core/base/combine.h"
#include "core/sched/window_classes.h"
#include "core/sched/window_delay.h"
#include "core/sched/window_knee.h"
#include "lib/base/mutex.h"
#include "lib/client/channel/window_policy.h"

#define WEIR_WINDOW_BYTES_DEFAULT (8u << 20)
#define WEIR_WINDOW_BYTES_MIN (64u << 10)
#define WEIR_WINDOW_WRS_DEFAULT 4096
#define WEIR_WAKES_MAX 16

/**
 * struct weir_nic - one device, as this process uses it
 * @lock: guards @window, the engines that take from it, and all session state marked so; managed by
 *	combine.h. Innermost except for locks of queues and pools; not held in callbacks
 * @combine: submitted requests that no engine knows yet, links whose posts without the lock have
 *	returned, and sessions that may have requests to post
 * @lent: sessions whose lanes are lent: lanes.h. @is_lent: there are some
 * @crowd: above 0 while threads find the lock taken; counts posted chains down; atomic to write
 * @wakes, @nr_wakes: futexes to wake when the lock is given back: see weir_combine_wake()
 * @context: the connection manager's, alive while a session has a connection
 * @pd: of all sessions, so that they may share memory
 * @rd_atomic: RDMA reads and atomics in flight that a QP can have
 * @numa_node: the device's node, or -1
 * @dyn_bytes: from this length on, registering memory is cheaper than copying
 * @sge_max: entries of local memory in a WR
 * @classes: of @window, if a session has one
 * @window: limits of what is in flight; moved by @delay, @knee or @policy, if one is in use
 * @scq: shared completion queues, or NULL
 * @vectors: completion vectors assigned so far; atomic
 * @users, @next: of the list of NICs
 *
 * The memory is only reused for NICs: a submitter may try the lock after its request is done and
 * the session closed.
 */
struct weir_nic {
	struct weir_mutex lock;
	struct weir_combine combine;
	struct weir_list lent;
	bool is_lent;
	uint32_t crowd;
	uint32_t *wakes[WEIR_WAKES_MAX];
	unsigned int nr_wakes;
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint8_t rd_atomic;
	int numa_node;
	uint32_t dyn_bytes;
	uint8_t sge_max;
	struct weir_window window;
	struct weir_window_classes classes;
	union {
		struct weir_window_delay delay;
		struct weir_window_knee knee;
		struct weir_user_learner policy;
	};
	struct weir_scq *scq;
	unsigned int vectors;
	unsigned int users;
	struct weir_nic *next;
};

/**
 * weir_nic_get() - get the NIC of a device, created on first use
 * @context: the device, opened
 * @tuning: window and admission of a new NIC; filled in
 * @nic: receives the NIC; give it back with weir_nic_put()
 *
 * Context: any thread. Return: 0; -ENOMEM; the device's errno.
 */
int weir_nic_get(struct ibv_context *context, const struct weir_session_tuning *tuning,
		 struct weir_nic **nic, struct weir_error *error);

/* The completion vector of the next CQ, among the device's first @max; 0: among all. */
int weir_nic_next_vector(struct weir_nic *nic, unsigned int max);

/* The last user frees the NIC. */
void weir_nic_put(struct weir_nic *nic);

#endif
