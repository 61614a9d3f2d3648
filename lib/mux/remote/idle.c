/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The end of a remote that nobody uses. At either end it costs queue pairs and a thread; so once it
 * has had no connection for options.idle_ns, this end asks the other, on the qp of class 0:
 *
 *	LEAVE -> <- LEFT	there is none there either: nothing more is sent, and all ends
 *	LEAVE -> <- STAY	there is one, or is about to be: all is as before
 *	LEAVE -> <- LEAVE	both have handle_leave, and take it for LEFT
 *
 * Who has handle_leave lets nobody connect by that remote before he knows; who has said LEFT, or has heard
 * it, never again. Who wants to connect waits so long, or dials anew: no OPEN comes to an end that
 * is gone. What was opened over there before LEAVE came is answered by STAY.
 *
 * The last FIN of a connection goes by another qp, and LEFT can overtake it. So who hears LEFT
 * has the queue pairs end when the last of his connections is over; and who says it leaves that to
 * him, for a while. Whose LEAVE is not answered in as long ends them alone: the other end is
 * stopped, or has lost its way. tests/model/leave.pml has all but that in every interleaving.
 */
#include <errno.h>

#include "lib/mux/local/local.h"

#define PATIENCE_NS WEIR_HANDSHAKE_NS /* of who has said LEFT, or LEAVE and hears nothing */

/* The mux's own reference is the only one. */
static bool has_no_conns(const struct weir_mux_remote *remote)
{
	return remote->refs == 1;
}

static void mark_left(struct weir_mux_remote *remote, uint64_t expires_ns)
{
	remote->leave = WEIR_MUX_IDLE_LEFT;
	remote->expires_ns = expires_ns;
	pthread_cond_broadcast(&remote->mux->changed);
	weir_fd_signal(remote->mux->bell);
}

static int handle_leave(struct weir_mux_remote *remote)
{
	bool may_leave = has_no_conns(remote);
	int rc = weir_mux_vconn_send_remote_ctrl(remote, may_leave ? WIRE_MUX_LEFT : WIRE_MUX_STAY);

	if (!rc && may_leave)
		mark_left(remote, weir_now_ns() + PATIENCE_NS);
	return rc;
}

static void handle_stay(struct weir_mux_remote *remote)
{
	remote->leave = WEIR_MUX_IDLE_NONE;
	remote->unused_ns = 0;
	pthread_cond_broadcast(&remote->mux->changed);
	weir_fd_signal(remote->mux->bell);
}

int weir_mux_idle_input(struct weir_mux_qp *qp, enum wire_mux_type what)
{
	struct weir_mux_remote *remote = qp->remote;

	if (qp->class || remote->leave == WEIR_MUX_IDLE_LEFT)
		return -EPROTO;
	if (remote->leave == WEIR_MUX_IDLE_NONE)
		return what == WIRE_MUX_LEAVE ? handle_leave(remote) : -EPROTO;
	if (what == WIRE_MUX_STAY)
		handle_stay(remote);
	else
		mark_left(remote, 0);
	return 0;
}

static uint64_t send_leave(struct weir_mux_remote *remote, uint64_t now_ns)
{
	remote->leave = WEIR_MUX_IDLE_ASKED;
	if (!weir_mux_vconn_send_remote_ctrl(remote, WIRE_MUX_LEAVE)) {
		remote->expires_ns = now_ns + PATIENCE_NS;
		return remote->expires_ns;
	}
	/* No memory, or the other end takes in nothing: later. */
	remote->leave = WEIR_MUX_IDLE_NONE;
	remote->unused_ns = now_ns;
	return weir_after_ns(now_ns, remote->mux->options.idle_ns);
}

static uint64_t expire_left(struct weir_mux_remote *remote, uint64_t now_ns)
{
	if (remote->expires_ns > now_ns)
		return remote->expires_ns;
	weir_mux_remote_fail(remote, -ECONNRESET);
	return UINT64_MAX;
}

/* Nobody is there, but who says that it leaves. */
static bool may_expire(const struct weir_mux_remote *remote)
{
	if (!remote->qps[0] || __atomic_load_n(&remote->status, __ATOMIC_ACQUIRE))
		return false;
	return has_no_conns(remote) ||
	       (remote->leave == WEIR_MUX_IDLE_ASKED && remote->refs == 1 + remote->nr_refusals);
}

static uint64_t expire_idle(struct weir_mux_remote *remote, uint64_t now_ns)
{
	uint64_t due_ns;

	if (remote->leave != WEIR_MUX_IDLE_NONE)
		return expire_left(remote, now_ns);
	if (!remote->unused_ns)
		remote->unused_ns = now_ns;
	due_ns = weir_after_ns(remote->unused_ns, remote->mux->options.idle_ns);
	if (due_ns > now_ns)
		return due_ns;
	return send_leave(remote, now_ns);
}

uint64_t weir_mux_idle_expire(struct weir_mux_local *mux, uint64_t now_ns)
{
	uint64_t due_ns, next_ns = UINT64_MAX;
	struct weir_list *at;

	for (at = mux->remotes.next; at != &mux->remotes; at = at->next) {
		struct weir_mux_remote *remote = weir_list_entry(at, struct weir_mux_remote, link);

		if (!may_expire(remote))
			continue;
		due_ns = expire_idle(remote, now_ns);
		if (due_ns < next_ns)
			next_ns = due_ns;
	}
	return next_ns;
}
