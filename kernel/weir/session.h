/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Internals of a session.
 *
 * nic->lock guards all members that change, unless noted. No thread sleeps with the lock held: the
 * link's work destroys QPs and connects, and the connection's work polls. The engine's decisions
 * about a QP are left to these works.
 */
#ifndef WEIR_KERNEL_WEIR_SESSION_H
#define WEIR_KERNEL_WEIR_SESSION_H

#include <linux/completion.h>
#include <linux/percpu-refcount.h>

#include "core/link/keepalive.h"
#include "core/poll/poll.h"
#include "kernel/weir/bounce.h"
#include "kernel/weir/keepalive.h"
#include "kernel/weir/weir.h"
#include "kernel/weir/link.h"
#include "kernel/weir/control.h"
#include "kernel/weir/nic.h"
#include "kernel/weir/handshake.h"

/**
 * struct kweir_session - connections to one donor, and the pipeline over them
 * @entry: in nic->sessions
 * @options: with defaults filled in; @timeout_ns: the timeout in nanoseconds
 * @nic: the device; NULL until the first connection has found it
 * @donor, @peer: address of the donor, binary and as text
 * @secret: of the key
 * @id, @incarnation: from the donor's WELCOME
 * @engine, @wrs: the pipeline, and its WRs
 * @bounce: bounce memory, if options.mr is PRE
 * @links: options.channels channels
 * @active: in nic->combine, or in no list
 * @is_stopping, @lost: no broken channel comes up again; the sleeper in link->wait reads both
 *	without the lock
 * @why: errno of a lost session
 * @keepalive: checks that the donor's host is alive
 * @tick: runs the engine's and keep-alive's timers; @tick_ns: when, or WEIR_NEVER
 * @ios: ios with mapped memory; @quiet: none left, and no new ones
 * @end_mutex: held while the session ends
 * @control: control messages about regions
 * @stat: counters
 */
struct kweir_session {
	struct list_head entry;
	struct kweir_options options;
	u64 timeout_ns;
	struct kweir_nic *nic;
	struct sockaddr_storage donor;
	char peer[64];
	struct kweir_secret secret;
	u64 id;
	u64 incarnation;

	struct weir_engine engine;
	struct weir_wr *wrs;
	struct kweir_bounce_pool bounce;
	struct kweir_link links[WEIR_CHANNEL_MAX];
	struct weir_list active;
	bool is_stopping;
	bool lost;
	int why;
	struct weir_keepalive keepalive;
	struct delayed_work tick;
	u64 tick_ns;
	struct percpu_ref ios;
	struct completion quiet;
	struct mutex end_mutex;
	struct kweir_control control;
	struct kweir_stat stat;
};

/* Creates the objects that need a device; the first connection calls this. Sleeps. */
int kweir_session_attach(struct kweir_session *session, struct ib_device *device,
			 struct kweir_error *error);

/* Executes actions of the engine, up to one chain. Return: true if there is more to post. */
bool kweir_session_pull(struct kweir_session *session);

/* Marks that actions may be pending; the next release of the lock executes them. */
static inline void kweir_session_schedule(struct kweir_session *session)
{
	weir_combine_activate(&session->nic->combine, &session->active);
}

/* Ends all links; nothing reconnects any more. */
void kweir_session_lose(struct kweir_session *session, int why);

/* As kweir_session_lose(), and removes all of the session's objects from the device before
 * returning. Sleeps; without the lock. */
void kweir_session_force_close(struct kweir_session *session);

/* May a broken channel come up again? Any context. */
static inline bool kweir_session_may_reconnect(const struct kweir_session *session)
{
	return !READ_ONCE(session->is_stopping) && !READ_ONCE(session->lost);
}

/* Takes the device for an io. Return: false: the device is gone. */
static inline bool kweir_session_enter(struct kweir_session *session)
{
	return percpu_ref_tryget_live(&session->ios);
}

static inline void kweir_session_leave(struct kweir_session *session)
{
	percpu_ref_put(&session->ios);
}

#endif
