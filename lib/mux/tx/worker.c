/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The worker of a remote; other threads may stand in (combine.c). Only the claim holder posts,
 * so scheduler, queues and in-flight state need no lock. Applications put connections into the
 * inbox; the claim holder looks at the rings and posts in the scheduler's order. Bytes gathered
 * in a ring go in a single work request: small messages are merged up to a segment, large ones
 * split.
 *
 * After a quiet period the worker sleeps. With nothing in flight the CQ is not armed: a
 * combining thread takes its own completions, or wakes the worker.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/mux/tx/tx.h"
#include "lib/mux/tx/post.h"
#include "lib/base/yield.h"

#define WCS_MAX 32

static int remote_status(const struct weir_mux_remote *remote)
{
	return __atomic_load_n(&remote->status, __ATOMIC_SEQ_CST);
}

static bool is_set(const bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

/* How far the application has read. After close, all arrivals count as read. */
static int read_position(const struct weir_mux_vconn *conn, uint64_t *head)
{
	/*
	 * Load the head before @received: the reader is never ahead of @received, which may grow
	 * between.
	 */
	uint64_t at = __atomic_load_n(&conn->shm->in.head, __ATOMIC_ACQUIRE);
	uint64_t received = __atomic_load_n(&conn->received, __ATOMIC_ACQUIRE);

	if (is_set(&conn->is_closed))
		at = received;
	if (at - conn->credited > received - conn->credited)
		return -EPROTO;
	*head = at;
	return 0;
}

/* Sends a credit once a quarter of the ring has been read. */
static bool send_credit(struct weir_mux_vconn *conn)
{
	struct wire_mux_control credit = { .type = WIRE_MUX_CREDIT,
					   .to = weir_mux_vconn_remote_id(conn) };
	uint64_t head;

	if (read_position(conn, &head)) {
		weir_mux_vconn_fail(conn, -EPROTO);
		return true;
	}
	if (head - conn->credited < conn->size / 4)
		return true;
	credit.position = head + conn->size;
	/*
	 * Store @credited before CREDIT goes out: the poller checks arrivals against @credited
	 * (take_segment()), and the peer may send at once.
	 */
	__atomic_store_n(&conn->credited, head, __ATOMIC_RELEASE);
	if (!weir_mux_post_ctrl(conn, &credit)) {
		conn->ctrls_todo |= WEIR_MUX_CTRL_CREDIT;
		return false;
	}
	conn->ctrls_todo &= ~WEIR_MUX_CTRL_CREDIT;
	weir_counter_add(&conn->mux->counts.credits, 1);
	return true;
}

/* Retries a credit after a lack of room, with the present position. */
static bool resend_credit(struct weir_mux_vconn *conn)
{
	struct wire_mux_control credit = { .type = WIRE_MUX_CREDIT,
					   .to = weir_mux_vconn_remote_id(conn),
					   .position = conn->credited + conn->size };

	if (!(conn->ctrls_todo & WEIR_MUX_CTRL_CREDIT))
		return true;
	if (!weir_mux_post_ctrl(conn, &credit))
		return false;
	conn->ctrls_todo &= ~WEIR_MUX_CTRL_CREDIT;
	weir_counter_add(&conn->mux->counts.credits, 1);
	return true;
}

/* Fills in the message for @ctrl. */
static void ctrl_fill(const struct weir_mux_vconn *conn, uint32_t ctrl, struct wire_mux_control *m)
{
	switch (ctrl) {
	case WEIR_MUX_CTRL_OPEN:
		*m = (struct wire_mux_control){ .type = WIRE_MUX_OPEN,
						.to = conn->service,
						.from = conn->id,
						.value = conn->size,
						.position = (uintptr_t)conn->arriving.bytes,
						.length = conn->slab->mr_in->rkey };
		break;
	case WEIR_MUX_CTRL_ACCEPT:
		*m = (struct wire_mux_control){ .type = WIRE_MUX_ACCEPT,
						.to = weir_mux_vconn_remote_id(conn),
						.from = conn->id,
						.value = conn->size,
						.position = (uintptr_t)conn->arriving.bytes,
						.length = conn->slab->mr_in->rkey };
		break;
	case WEIR_MUX_CTRL_REMOTE:
		*m = (struct wire_mux_control){ .type = (uint16_t)conn->service };
		break;
	default:
		*m = (struct wire_mux_control){ .type = WIRE_MUX_REFUSE,
						.to = weir_mux_vconn_remote_id(conn),
						.value = (uint32_t)-conn->status };
		break;
	}
}

static bool send_ctrl(struct weir_mux_vconn *conn, uint32_t ctrl)
{
	struct wire_mux_control m;

	if (!(conn->ctrls_todo & ctrl))
		return true;
	ctrl_fill(conn, ctrl, &m);
	if (!weir_mux_post_ctrl(conn, &m))
		return false;
	conn->ctrls_todo &= ~ctrl;
	return true;
}

static bool send_grants(struct weir_mux_vconn *conn)
{
	if (!(conn->ctrls_todo & WEIR_MUX_CTRL_GRANTS))
		return true;
	/* After FIN nothing more is sent, and nobody waits for it. */
	if (!conn->fin_sent && !weir_mux_grants_send(conn))
		return false;
	conn->ctrls_todo &= ~WEIR_MUX_CTRL_GRANTS;
	return true;
}

static bool send_ctrls(struct weir_mux_vconn *conn)
{
	if (__atomic_load_n(&conn->ctrls, __ATOMIC_SEQ_CST))
		conn->ctrls_todo |= __atomic_exchange_n(&conn->ctrls, 0, __ATOMIC_ACQ_REL);
	return send_ctrl(conn, WEIR_MUX_CTRL_OPEN) && send_ctrl(conn, WEIR_MUX_CTRL_ACCEPT) &&
	       send_ctrl(conn, WEIR_MUX_CTRL_REFUSE) && send_ctrl(conn, WEIR_MUX_CTRL_REMOTE) &&
	       resend_credit(conn) && send_grants(conn);
}

/* Whether the stream is done: all is posted, or the peer would not read it. */
static bool is_drained(const struct weir_mux_vconn *conn, bool closed, uint64_t tail)
{
	if (weir_mux_vconn_is_finished(conn) || __atomic_load_n(&conn->status, __ATOMIC_ACQUIRE))
		return true;
	return closed && conn->posted == tail;
}

/* Sends FIN, the connection's last message; all data has been posted. */
static bool send_fin(struct weir_mux_vconn *conn)
{
	struct wire_mux_control fin = { .type = WIRE_MUX_FIN,
					.to = weir_mux_vconn_remote_id(conn) };

	if (__atomic_load_n(&conn->status, __ATOMIC_ACQUIRE))
		fin.value = ECONNRESET;
	if (!weir_mux_post_ctrl(conn, &fin))
		return false;
	conn->fin_sent = true;
	return true;
}

/*
 * Sends control messages and offers the stream to the scheduler. Return: false: control messages
 * lack room.
 */
static bool serve_conn(struct weir_mux_vconn *conn)
{
	struct weir_sched *sched = &conn->remote->sched;
	bool closed = is_set(&conn->is_closed); /* before the tail: no writes after this */
	uint64_t limit, tail;
	int status;

	if (!send_ctrls(conn))
		return false;
	if (conn->fin_sent)
		return true;
	if (!weir_mux_vconn_was_opened(conn)) {
		conn->fin_sent = weir_mux_vconn_is_finished(conn);
		return true;
	}
	if (!send_credit(conn))
		return false;
	limit = weir_mux_tx_limit(conn, &tail);
	if (is_drained(conn, closed, tail)) {
		weir_mux_sched_group_idle(conn);
		status = __atomic_load_n(&conn->status, __ATOMIC_ACQUIRE);
		weir_mux_rdma_op_stop(&conn->rdma_op, status ? status : -ENOTCONN);
		weir_mux_rdma_op_stop(&conn->zc_send, status ? status : -ENOTCONN);
		/*
		 * RDMA operations must complete before FIN, after which the peer may free the
		 * memory.
		 */
		return conn->rdma_op.wrs || send_fin(conn);
	}
	weir_mux_rdma_op_start(&conn->rdma_op);
	weir_mux_rdma_op_start(&conn->zc_send);
	weir_mux_sched_group_follow_account(conn);
	weir_sched_bundle_set_weight(&conn->sched_group->bundle,
				     weir_mux_account_weight(conn->account));
	conn->flow.turn.weight = __atomic_load_n(&conn->weight, __ATOMIC_RELAXED);
	if (!weir_mux_tx_is_wanted(conn, limit, tail))
		return true;
	if (!conn->flow.turn.is_ready)
		conn->waits_ns = conn->remote->now_ns;
	weir_sched_ready(sched, &conn->flow);
	return true;
}

/* Detaches a finished connection once nothing is queued or in flight. */
static void detach_if_done(struct weir_mux_vconn *conn)
{
	struct weir_mux_local *mux = conn->mux;

	if (!conn->fin_sent || conn->ctrls_todo || conn->flow.wrs || conn->controls ||
	    !is_set(&conn->is_closed))
		return;
	pthread_mutex_lock(&mux->lock);
	if (!__atomic_load_n(&conn->is_queued, __ATOMIC_SEQ_CST)) {
		weir_list_del(&conn->wait_link);
		conn->is_detached = true;
		weir_mux_vconn_release(conn);
	}
	pthread_mutex_unlock(&mux->lock);
}

/* Return: false: the connection waits for room. If true, the connection may be gone. */
static bool serve_or_wait(struct weir_mux_vconn *conn)
{
	struct weir_mux_remote *remote = conn->remote;

	weir_list_del(&conn->wait_link);
	if (serve_conn(conn)) {
		detach_if_done(conn);
		return true;
	}
	weir_list_add_tail(&remote->control_waits, &conn->wait_link);
	return false;
}

static bool take_news(struct weir_mux_remote *remote)
{
	struct weir_inbox_node *inbox_node;
	bool any;

	if (!weir_inbox_may_have(&remote->inbox))
		return false;
	inbox_node = weir_inbox_take(&remote->inbox);
	any = inbox_node;
	while (inbox_node) {
		struct weir_mux_vconn *conn =
			container_of(inbox_node, struct weir_mux_vconn, inbox_node);

		inbox_node = inbox_node->next;
		__atomic_store_n(&conn->is_queued, 0, __ATOMIC_SEQ_CST);
		serve_or_wait(conn);
	}
	return any;
}

/* Whether a completion is outstanding. Handshakes wake the worker after each post. */
static bool is_completion_due(const struct weir_mux_remote *remote)
{
	return remote->posted || __atomic_load_n(&remote->nr_handshakes_posted, __ATOMIC_SEQ_CST);
}

static bool take_completions(struct weir_mux_remote *remote)
{
	struct ibv_wc wcs[WCS_MAX];
	struct weir_mux_vconn *conn;
	int i, n;

	if (!is_completion_due(remote))
		return false;
	n = ibv_poll_cq(remote->cq, WCS_MAX, wcs);
	for (i = 0; i < n; i++) {
		conn = weir_mux_post_completed(remote, &wcs[i]);
		if (conn && conn->fin_sent)
			detach_if_done(conn);
	}
	while (n > 0 && !weir_list_is_empty(&remote->control_waits)) {
		conn = weir_list_entry(remote->control_waits.next, struct weir_mux_vconn,
				       wait_link);
		if (!serve_or_wait(conn))
			break;
	}
	return n > 0;
}

bool weir_mux_worker_step(struct weir_mux_remote *remote, uint64_t *next_ns)
{
	bool any = take_completions(remote);

	any |= take_news(remote);
	*next_ns = weir_mux_sched_groups_resume(remote);
	any |= weir_mux_tx_post(remote);
	return any;
}

bool weir_mux_worker_is_done(const struct weir_mux_remote *remote)
{
	return !is_completion_due(remote) && !weir_inbox_may_have(&remote->inbox);
}

/* Each arming raises at most a single event. */
static void take_cq_event(struct weir_mux_remote *remote)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(remote->completions, &cq, &context))
		return;
	__atomic_store_n(&remote->is_armed, false, __ATOMIC_RELAXED);
	remote->cq_events++;
}

/*
 * Marks the worker asleep and arms the CQ, then works once more, since another thread may have
 * queued something before seeing the mark. @remote->wakes_ns: when the first paced group may
 * send again.
 * Return: whether the worker may sleep: there was nothing to do.
 */
static bool prepare_sleep(struct weir_mux_remote *remote)
{
	bool may_sleep;

	if (!weir_mux_remote_claim(remote))
		return false;
	__atomic_store_n(&remote->asleep, 1, __ATOMIC_SEQ_CST);
	if (is_completion_due(remote) && !is_set(&remote->is_armed)) {
		ibv_req_notify_cq(remote->cq, 0);
		__atomic_store_n(&remote->is_armed, true, __ATOMIC_RELAXED);
	}
	remote->now_ns = weir_now_ns();
	may_sleep = !weir_mux_worker_step(remote, &remote->wakes_ns) &&
		    (!remote_status(remote) || remote->posted);
	weir_mux_remote_release(remote);
	return may_sleep && weir_inbox_is_empty(&remote->inbox);
}

/* Sleeps until an event, or until a paced group may send again. */
static void sleep_until_event(struct weir_mux_remote *remote)
{
	struct pollfd fds[] = { { .fd = remote->wakeup_fd, .events = POLLIN },
				{ .fd = remote->completions->fd, .events = POLLIN } };

	if (prepare_sleep(remote)) {
		weir_counter_add(&remote->mux->counts.sleeps, 1);
		poll(fds, 2, weir_poll_ms(remote->wakes_ns));
	}
	__atomic_store_n(&remote->asleep, 0, __ATOMIC_SEQ_CST);
	if (fds[0].revents)
		weir_mux_fd_drain(remote->wakeup_fd);
	if (fds[1].revents)
		take_cq_event(remote);
}

/*
 * Nothing is in flight any more: ends all connections of the remote, including connections still
 * waiting for the peer's FIN. With the QPs in error, no peer can write into the rings, so others
 * may use the memory. The end of its mux takes nothing from a connection that the peer has closed.
 */
static void release_conns(struct weir_mux_remote *remote)
{
	struct weir_mux_local *mux = remote->mux;
	struct weir_mux_vconn *conn;

	pthread_mutex_lock(&mux->lock);
	weir_mux_remote_flush_qps(remote);
	while (!weir_list_is_empty(&remote->conns)) {
		conn = weir_list_entry(remote->conns.next, struct weir_mux_vconn, remote_link);
		if (!weir_mux_vconn_is_finished(conn))
			weir_mux_vconn_fail(conn, remote_status(remote));
		weir_mux_rdma_op_drop(&conn->rdma_op, -ECONNRESET);
		weir_mux_rdma_op_drop(&conn->zc_send, -ECONNRESET);
		weir_list_del(&conn->remote_link);
		weir_list_del(&conn->wait_link);
		weir_list_del(&conn->open_link);
		if (conn->sched_group)
			weir_list_del(&conn->sched_group->pace_link);
		weir_mux_vconn_peer_finished(conn);
		weir_mux_vconn_wake_waiters(conn);
		conn->is_detached = true;
		weir_mux_vconn_release(conn);
	}
	remote->worker_state = WEIR_MUX_WORKER_OVER;
	pthread_cond_broadcast(&mux->changed);
	weir_mux_fd_signal(mux->wakeup_fd);
	pthread_mutex_unlock(&mux->lock);
}

void *weir_mux_worker_run(void *arg)
{
	struct weir_mux_remote *remote = arg;
	uint64_t worked_ns = weir_now_ns(), now_ns = worked_ns;

	for (;;) {
		bool any = false;

		if (weir_mux_remote_claim(remote)) {
			remote->is_ended = remote_status(remote) && !remote->posted;
			if (remote->is_ended)
				break;
			remote->now_ns = now_ns;
			any = weir_mux_worker_step(remote, &remote->wakes_ns);
			weir_mux_remote_release(remote);
		}
		weir_yield(&now_ns);
		if (any)
			worked_ns = now_ns;
		else if (now_ns - worked_ns > remote->mux->options.idle_poll_ns)
			sleep_until_event(remote);
	}
	weir_mux_remote_release(remote);
	release_conns(remote);
	return NULL;
}
