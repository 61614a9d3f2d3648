/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Flat combining: the thread holding remote->is_claimed does the work of the remote's worker.
 * Waking the worker costs more than most of the work. So a thread queues a connection and, with
 * no lock held, tries to claim the remote and do the work itself. The protocol is that of
 * core/base/combine.h, with the claim as the lock.
 *
 * The claim holder checks the inbox again after release. So a thread need do nothing more if the
 * remote is claimed. The worker sets asleep before releasing the claim, and checks the inbox
 * afterwards.
 */
#include "lib/mux/tx/post.h"

#define PASSES_MAX 8 /* passes of a combining thread before the worker takes over */
#define PASSES_SOME 2 /* passes of the poller between polls for arrivals */
#define BULK_BYTES WIRE_MUX_SEGMENT_MAX /* low-level bytes in flight: the poller stops */
#define NODES_MAX 16 /* combined in one call; workers serve the others */

void weir_mux_remote_wake(struct weir_mux_remote *remote)
{
	if (__atomic_exchange_n(&remote->asleep, 0, __ATOMIC_SEQ_CST))
		weir_mux_fd_signal(remote->wakeup_fd);
}

bool weir_mux_remote_claim(struct weir_mux_remote *remote)
{
	return !__atomic_exchange_n(&remote->is_claimed, 1, __ATOMIC_SEQ_CST);
}

void weir_mux_remote_release(struct weir_mux_remote *remote)
{
	__atomic_store_n(&remote->is_claimed, 0, __ATOMIC_SEQ_CST);
}

void weir_mux_vconn_queue(struct weir_mux_vconn *conn)
{
	if (!__atomic_exchange_n(&conn->is_queued, 1, __ATOMIC_SEQ_CST))
		weir_inbox_push(&conn->remote->inbox, &conn->inbox_node);
}

void weir_mux_vconn_notify(struct weir_mux_vconn *conn)
{
	struct weir_mux_remote *remote = conn->remote;

	weir_mux_vconn_queue(conn);
	if (!__atomic_load_n(&remote->is_claimed, __ATOMIC_SEQ_CST))
		weir_mux_remote_wake(remote);
}

/*
 * Some devices complete a work request before the post returns, most do not. The worker must
 * wait for completions and paced groups. @waits: wake the worker, unless already asleep with the
 * CQ armed and an early enough timeout. Return: whether work may be left after *@passes steps.
 */
static bool run_passes(struct weir_mux_remote *remote, unsigned int *passes, bool *waits)
{
	const bool is_short = *passes <= PASSES_SOME;
	uint64_t next_ns = UINT64_MAX;
	bool is_done = false;

	remote->now_ns = weir_now_ns();
	while (!is_done && *passes && weir_mux_worker_step(remote, &next_ns)) {
		*passes = is_short && remote->sched.low_bytes >= BULK_BYTES ? 0 : *passes - 1;
		is_done = weir_mux_worker_is_done(remote);
	}
	*waits = next_ns < remote->wakes_ns ||
		 (remote->posted && !__atomic_load_n(&remote->is_armed, __ATOMIC_RELAXED));
	return !is_done && !*passes;
}

/* Return: as run_passes(). */
static bool combine(struct weir_mux_remote *remote, unsigned int passes)
{
	bool has_more = false, waits = false, is_ended;

	do {
		if (!weir_mux_remote_claim(remote))
			return false;
		is_ended = remote->is_ended;
		if (!is_ended)
			has_more = run_passes(remote, &passes, &waits);
		weir_mux_remote_release(remote);
	} while (!is_ended && !has_more && !waits &&
		 !weir_combine_may_leave(&remote->inbox, false));
	if (waits)
		weir_mux_remote_wake(remote);
	return has_more;
}

void weir_mux_remote_combine(struct weir_mux_remote *remote)
{
	if (combine(remote, PASSES_MAX))
		weir_mux_remote_wake(remote);
}

/*
 * Collects remotes with work and takes a reference to each. With mux->lock held. Return: their
 * number.
 */
static unsigned int take_remotes(struct weir_mux_local *mux, struct weir_mux_remote **remotes)
{
	struct weir_list *at;
	unsigned int n = 0;

	for (at = mux->remotes.next; at != &mux->remotes; at = at->next) {
		struct weir_mux_remote *remote = weir_list_entry(at, struct weir_mux_remote, link);

		if (!remote->has_more && !weir_inbox_may_have(&remote->inbox))
			continue;
		if (n == NODES_MAX) {
			weir_mux_remote_wake(remote);
			continue;
		}
		remote->has_more = false;
		remote->refs++;
		remotes[n++] = remote;
	}
	return n;
}

bool weir_mux_local_combine(struct weir_mux_local *mux)
{
	struct weir_mux_remote *remotes[NODES_MAX];
	bool more[NODES_MAX], any = false;
	unsigned int i, n;

	pthread_mutex_lock(&mux->lock);
	n = take_remotes(mux, remotes);
	pthread_mutex_unlock(&mux->lock);
	for (i = 0; i < n; i++)
		more[i] = combine(remotes[i], PASSES_SOME);
	pthread_mutex_lock(&mux->lock);
	for (i = 0; i < n; i++) {
		remotes[i]->has_more |= more[i];
		any |= more[i];
		weir_mux_remote_put(remotes[i]);
	}
	pthread_mutex_unlock(&mux->lock);
	return any;
}
