/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A session from the inside.
 *
 * nic->lock guards all that changes, unless noted. Nobody sleeps with it: QPs are destroyed and
 * connections made by each link's own work, completions are taken by each connection's, and what
 * the engine decides about a QP is left to them.
 */
#ifndef WEIR_KERNEL_SESSION_H
#define WEIR_KERNEL_SESSION_H

#include <linux/completion.h>
#include <linux/percpu-refcount.h>

#include "core/poll/poll.h"
#include "kernel/weir/bounce.h"
#include "kernel/weir/keepalive.h"
#include "kernel/weir/weir.h"
#include "kernel/weir/link.h"
#include "kernel/weir/control.h"
#include "kernel/weir/nic.h"
#include "kernel/weir/proof.h"

/**
 * struct kweir_session - connections to one donor, and the pipeline over them
 * @entry: in nic->sessions
 * @options: with the defaults filled in; @timeout_ns: of them, in nanoseconds
 * @nic: where it runs; NULL until its first connection has found it
 * @donor, @peer: its address, also for people
 * @secret: of the key
 * @id, @incarnation: what the donor said in its WELCOME
 * @engine, @wrs: the pipeline, and its WRs
 * @bounce: where what is read and written is copied to, if options.mr is PRE
 * @links: the channels, options.channels of them
 * @fed: in nic->fed, or in no list
 * @stopping, @lost: no broken channel comes up again; also read without the lock, by who waits
 *	in link->wait
 * @why: an errno, when it is lost
 * @keepalive: whether its donor's host is there still
 * @tick: tells the engine and keep-alive that time has passed; @tick_ns is when, or WEIR_NEVER
 * @ios: those that have memory mapped; @quiet: when there are none, and none will be
 * @end_mutex: held by who ends it
 * @control: what is said about regions
 * @stat: what it has done
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
	struct weir_list fed;
	bool stopping;
	bool lost;
	int why;
	struct kweir_keepalive keepalive;
	struct delayed_work tick;
	u64 tick_ns;
	struct percpu_ref ios;
	struct completion quiet;
	struct mutex end_mutex;
	struct kweir_control control;
	struct kweir_stat stat;
};

/* What it has once and only a device can give; the first connection finds it. Sleeps. */
int kweir_session_attach(struct kweir_session *session, struct ib_device *device,
			 struct kweir_error *error);

/* Does what the engine says, up to one chain. Return: true when there is more to post. */
bool kweir_session_pull(struct kweir_session *session);

/* There may be something to pull: whoever gives the lock back will. */
static inline void kweir_session_schedule(struct kweir_session *session)
{
	if (weir_list_is_empty(&session->fed))
		weir_list_add_tail(&session->nic->fed, &session->fed);
}

/* Nothing is mended any more: all links end. */
void kweir_session_lose(struct kweir_session *session, int why);

/* The same, at once, and to the end: nothing of it is left on the device. Sleeps; not the lock. */
void kweir_session_force_close(struct kweir_session *session);

/* May a broken channel come up again? Any context. */
static inline bool kweir_session_may_reconnect(const struct kweir_session *session)
{
	return !READ_ONCE(session->stopping) && !READ_ONCE(session->lost);
}

/* An io begins to use the device. Return: false: it is gone. */
static inline bool kweir_session_enter(struct kweir_session *session)
{
	return percpu_ref_tryget_live(&session->ios);
}

static inline void kweir_session_leave(struct kweir_session *session)
{
	percpu_ref_put(&session->ios);
}

#endif
