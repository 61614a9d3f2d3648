/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Life of a remote, from the first message to the end. One broken QP ends the whole remote: the
 * connections of one class would not outlive those of another for long.
 *
 * Teardown: any thread marks the remote as failed; the poller moves the QPs to error, so all
 * posted WRs complete; the worker waits for the completions and releases the connections; the
 * poller destroys the QPs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/mux/local/local.h"
#include "lib/base/thread.h"

static int queues_open(struct weir_mux_remote *remote)
{
	struct weir_mux_local *mux = remote->mux;
	int depth = WEIR_MUX_QP_DEPTH + WEIR_MUX_QP_CTRLS + WEIR_MUX_QP_HANDSHAKES;

	remote->completions = ibv_create_comp_channel(mux->device);
	if (!remote->completions)
		return -ENOMEM;
	fcntl(remote->completions->fd, F_SETFL, O_NONBLOCK);
	remote->cq = ibv_create_cq(mux->device, depth * (int)mux->options.nr_classes, remote,
				   remote->completions, 0);
	remote->wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return remote->cq && remote->wakeup_fd >= 0 ? 0 : -ENOMEM;
}

static void queues_close(struct weir_mux_remote *remote)
{
	if (remote->cq) {
		ibv_ack_cq_events(remote->cq, remote->cq_events);
		ibv_destroy_cq(remote->cq);
		remote->cq = NULL;
	}
	if (remote->completions)
		ibv_destroy_comp_channel(remote->completions);
	remote->completions = NULL;
}

int weir_mux_remote_new(struct weir_mux_local *mux, const char *name, struct weir_mux_remote **out)
{
	struct weir_mux_remote *remote = calloc(1, sizeof(*remote));
	int rc;

	if (!remote)
		return -ENOMEM;
	remote->mux = mux;
	remote->refs = 1;
	remote->wakeup_fd = -1;
	snprintf(remote->name, sizeof(remote->name), "%s", name);
	weir_list_init(&remote->link);
	weir_list_init(&remote->conns);
	weir_list_init(&remote->sched_groups);
	weir_list_init(&remote->open_waiters);
	weir_list_init(&remote->control_waits);
	weir_list_init(&remote->paced);
	weir_inbox_init(&remote->inbox);
	rc = weir_sched_init(&remote->sched, mux->configs, (uint8_t)mux->options.nr_classes,
			     mux->options.low_bytes_max);
	if (!rc)
		rc = queues_open(remote);
	if (rc) {
		queues_close(remote);
		weir_mux_remote_put(remote);
		return rc;
	}
	weir_list_add_tail(&mux->remotes, &remote->link);
	*out = remote;
	return 0;
}

int weir_mux_remote_start(struct weir_mux_remote *remote)
{
	int rc = weir_thread_create(&remote->worker, "weir-worker", weir_mux_worker_run, remote,
				    NULL);

	if (!rc)
		remote->worker_state = WEIR_MUX_WORKER_RUNNING;
	return rc;
}

void weir_mux_remote_fail(struct weir_mux_remote *remote, int status)
{
	int none = 0;

	if (!__atomic_compare_exchange_n(&remote->status, &none, status, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED))
		return;
	weir_mux_remote_wake(remote);
	weir_mux_fd_signal(remote->mux->wakeup_fd);
}

void weir_mux_remote_put(struct weir_mux_remote *remote)
{
	/* No users are left: the poller starts the idle timer. */
	if (--remote->refs == 1)
		weir_mux_fd_signal(remote->mux->wakeup_fd);
	if (remote->refs)
		return;
	if (remote->wakeup_fd >= 0)
		close(remote->wakeup_fd);
	free(remote);
}

void weir_mux_remote_uncharge(struct weir_mux_remote *remote)
{
	if (!remote->group)
		return;
	remote->group->nr_remotes--;
	remote->group = NULL;
	pthread_cond_broadcast(&remote->mux->changed); /* a dialling thread may wait for room */
}

/* Fails orphaned QPs; a dialling thread checks the remote's status anyway. */
static void fail_orphans(struct weir_mux_remote *remote)
{
	struct weir_list *at;

	for (at = remote->mux->qps.next; at != &remote->mux->qps; at = at->next) {
		struct weir_mux_qp *qp = weir_list_entry(at, struct weir_mux_qp, link);

		if (qp->remote == remote && qp->is_orphan && qp->state == WEIR_MUX_QP_PROVING)
			weir_mux_qp_fail(qp, -ECONNRESET);
	}
}

/* Lets posted WRs complete, and tells the peer. */
void weir_mux_remote_flush_qps(struct weir_mux_remote *remote)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	unsigned int i;

	fail_orphans(remote);
	for (i = 0; i < remote->mux->options.nr_classes; i++) {
		struct weir_mux_qp *qp = remote->qps[i];

		if (!qp || qp->state == WEIR_MUX_QP_FAILED)
			continue;
		qp->state = WEIR_MUX_QP_FAILED;
		ibv_modify_qp(qp->qp, &error, IBV_QP_STATE);
		rdma_disconnect(qp->id);
	}
}

/* Includes QPs not proven yet. */
static void destroy_qps(struct weir_mux_remote *remote)
{
	struct weir_mux_local *mux = remote->mux;
	struct weir_list *at;

	for (at = mux->qps.next; at != &mux->qps;) {
		struct weir_mux_qp *qp = weir_list_entry(at, struct weir_mux_qp, link);

		at = at->next;
		if (qp->remote == remote)
			weir_mux_qp_destroy(qp);
	}
}

static void destroy_remote(struct weir_mux_remote *remote)
{
	if (remote->worker_state != WEIR_MUX_WORKER_NONE)
		pthread_join(remote->worker, NULL);
	destroy_qps(remote);
	queues_close(remote);
	weir_mux_remote_uncharge(remote);
	weir_list_del(&remote->link);
	weir_mux_remote_put(remote);
}

/* Ends a failed remote, even a remote never reached. */
static void reap_remote(struct weir_mux_remote *remote)
{
	if (!__atomic_load_n(&remote->status, __ATOMIC_ACQUIRE))
		return;
	weir_mux_remote_flush_qps(remote);
	if (remote->is_dialing || remote->worker_state == WEIR_MUX_WORKER_RUNNING)
		return;
	destroy_remote(remote);
}

/* Destroys failed QPs outside remotes; a dialling thread destroys its own. */
static void reap_qps(struct weir_mux_local *mux)
{
	struct weir_list *at = mux->qps.next;

	while (at != &mux->qps) {
		struct weir_mux_qp *qp = weir_list_entry(at, struct weir_mux_qp, link);

		at = at->next;
		if (qp->state == WEIR_MUX_QP_FAILED && (!qp->cm || qp->is_orphan) &&
		    qp->remote->qps[qp->class] != qp)
			weir_mux_qp_destroy(qp);
	}
}

void weir_mux_remotes_reap(struct weir_mux_local *mux)
{
	struct weir_list *at;

	reap_qps(mux);
	for (at = mux->remotes.next; at != &mux->remotes;) {
		struct weir_mux_remote *remote = weir_list_entry(at, struct weir_mux_remote, link);

		at = at->next;
		reap_remote(remote);
	}
}
