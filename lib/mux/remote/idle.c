/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Idle teardown. An unused remote costs each end QPs and a thread. After options.idle_ns without
 * a connection, this end asks the other, on the QP of class 0:
 *
 *	LEAVE -> <- LEFT	no connections there either: nothing more is sent, the remote ends
 *	LEAVE -> <- STAY	there is a connection, or will be: the remote stays
 *	LEAVE -> <- LEAVE	both ends have asked, and treat LEAVE as LEFT
 *
 * After LEAVE, an end opens no connection on the remote until the answer; after sending or
 * receiving LEFT, never again. Connecting threads wait meanwhile, or dial again, so no OPEN
 * reaches an end already gone. If the peer opened a connection before LEAVE came, the answer is
 * STAY.
 *
 * LEFT can overtake the last FIN of a connection on another QP. So the receiver of LEFT ends the
 * QPs after the last connection; the sender of LEFT gives the peer some time to do so. If LEAVE
 * is not answered in the same time, the QPs end too: the peer is stopped or broken.
 * tests/model/idle.pml checks every interleaving, except for the timeouts.
 */
#include <errno.h>

#include "lib/mux/local/local.h"

#define WAIT_NS_MAX WEIR_HANDSHAKE_NS /* wait after LEFT, or for the answer to LEAVE */

/* Only the mux's own reference is left. */
static bool has_no_conns(const struct weir_mux_remote *remote)
{
	return remote->refs == 1;
}

static void mark_left(struct weir_mux_remote *remote, uint64_t expires_ns)
{
	remote->leave = WEIR_MUX_IDLE_LEFT;
	remote->expires_ns = expires_ns;
	pthread_cond_broadcast(&remote->mux->changed);
	weir_mux_fd_signal(remote->mux->wakeup_fd);
}

static int handle_leave(struct weir_mux_remote *remote)
{
	bool may_leave = has_no_conns(remote);
	int rc = weir_mux_vconn_send_remote_ctrl(remote, may_leave ? WIRE_MUX_LEFT : WIRE_MUX_STAY);

	if (!rc && may_leave)
		mark_left(remote, weir_now_ns() + WAIT_NS_MAX);
	return rc;
}

static void handle_stay(struct weir_mux_remote *remote)
{
	remote->leave = WEIR_MUX_IDLE_NONE;
	remote->unused_ns = 0;
	pthread_cond_broadcast(&remote->mux->changed);
	weir_mux_fd_signal(remote->mux->wakeup_fd);
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
		remote->expires_ns = now_ns + WAIT_NS_MAX;
		return remote->expires_ns;
	}
	/* No memory, or the peer takes in nothing: try again later. */
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

/* The remote has no users except placeholders sending LEAVE. */
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
