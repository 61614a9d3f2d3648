/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues shared by sessions, and the one thread that always polls them: SCQ in RDMAbox,
 * section III-B.
 *
 * The first session of a NIC to attach creates the CQs and the thread; the last to detach destroys
 * both. Any thread that polls a shared CQ, for example after posting, may find completions of any
 * session, and reports them to the session's engine. The session is then due: the SCQ thread does
 * the rest, above all the callbacks. Waiting threads sleep and never poll.
 *
 * A session is attached as long as it may have QPs, and driven from opening until closing begins.
 * While driven, it uses the SCQ thread as its own. A session attached but not driven is kicked when
 * another thread takes its completions.
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
 * struct weir_scq - guarded by the NIC's lock, but for fields set at creation
 * @cqs, @nr_cqs: as many CQs as the first session asked for
 * @entries: of each CQ; @taken: entries that the sessions may need at once
 * @next: the next channel's CQ
 * @sessions: attached sessions
 * @due: attached sessions with completions taken by another thread
 * @current: the session that the thread is handling; @left: woken when the thread moves on
 * @thread, @is_stopping: the thread, and the request to end it
 * @users: number of @sessions
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
	bool is_stopping;
	unsigned int users;
};

/**
 * weir_scq_attach() - give a session its CQs
 * @session: its NIC is known; receives cqs and nr_cqs
 *
 * Context: without nic->lock. Return: 0; -ENOMEM; -EINVAL the device has no CQ as large.
 */
int weir_scq_attach(struct weir_session *session, struct weir_error *error);

/* Detaches a session without QPs. Context: without nic->lock. */
void weir_scq_detach(struct weir_session *session);

/* Lets the thread drive @session. Context: without nic->lock. */
void weir_scq_start_driving(struct weir_session *session);

/*
 * Stops driving @session; all its callbacks in the thread have returned. Context: without
 * nic->lock.
 */
void weir_scq_stop_driving(struct weir_session *session);

/* Marks @session due: another thread has taken its completions. Context: with nic->lock held. */
void weir_scq_due(struct weir_session *session);

#endif
