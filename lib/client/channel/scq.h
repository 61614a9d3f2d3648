/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues that sessions share, and the one thread that polls them without end: SCQ in
 * RDMAbox, section III-B.
 *
 * They are the NIC's. The first session that wants them makes them, and the thread; the last one
 * that lets go unmakes both. Whoever polls one, be it a thread that has just posted, finds
 * completions of any session and tells its engine; what follows from that, callbacks above all, is
 * due, and the thread sees to it. So who waits sleeps: there is no second poller.
 *
 * A session is attached while it may have QPs, and driven from when it is open until it is to be
 * closed. Meanwhile the thread stands for one of its own. One that is attached and not driven is
 * kicked when another has taken its completions.
 */
#ifndef WEIR_LIB_CLIENT_CHANNEL_SCQ_H
#define WEIR_LIB_CLIENT_CHANNEL_SCQ_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>
#include "core/engine/channel.h"
#include "core/base/list.h"
#include "lib/client/channel/waitqueue.h"
#include "lib/client/channel/cq.h"

struct ibv_wc;
struct weir_nic;
struct weir_session;

/**
 * struct weir_scq - guarded by the NIC's lock, but for what is made once
 * @cqs: @nr_cqs of them, as many as the first session asked for
 * @entries: that each has; @taken: of those, how many sessions may need at once
 * @next: the next channel's CQ
 * @sessions: those that are attached
 * @due: those of them whose completions somebody else has taken
 * @current: the thread is at this one; @left: when it no longer is
 * @thread, @stopping: it is to end
 * @users: how many @sessions
 */
struct weir_scq {
	struct weir_nic *nic;
	struct weir_cq cqs[WEIR_CHANNEL_MAX];
	unsigned int nr_cqs;
	uint32_t entries, taken;
	unsigned int next;
	struct weir_list sessions;
	struct weir_list due;
	struct weir_session *current;
	struct weir_waitqueue left;
	pthread_t thread;
	bool stopping;
	unsigned int users;
};

/**
 * weir_scq_attach() - give a session its CQs
 * @session: its NIC is known; receives cqs and nr_cqs
 *
 * Context: without nic->lock. Return: 0; -ENOMEM; -EINVAL the device has no CQ as large.
 */
int weir_scq_attach(struct weir_session *session, struct weir_error *error);

/* Its QPs are gone. Without nic->lock. */
void weir_scq_detach(struct weir_session *session);

/* From here on the thread drives it. Without nic->lock. */
void weir_scq_start_driving(struct weir_session *session);

/*
 * From here on it does not, and its callbacks that the thread ran have returned. Without nic->lock.
 */
void weir_scq_stop_driving(struct weir_session *session);

/* Another than @session's own driver has taken completions of it. With nic->lock held. */
void weir_scq_due(struct weir_session *session);

#endif
