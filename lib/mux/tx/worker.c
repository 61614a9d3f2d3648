/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The worker of a remote, and its work, which at times others do (serve_conn.c): one at a time posts, so
 * that the scheduler, the queues and what is in flight need no lock. Applications leave a
 * connection in the inbox; whoever serves looks at the rings, and sends whatever the scheduler
 * says. What gathers in a ring while others have their turn goes in one work request: small
 * messages are merged up to a segment, large ones cut at it.
 *
 * It sleeps when there has been nothing to do for a while. While nothing is in flight it waits for
 * no completion: who posts then takes that himself, or wakes it.
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

/* Up to where the reader has read; what arrives for one who has closed counts as read. */
static int read_position(const struct weir_mux_vconn *conn, uint64_t *head)
{
	/* First this: nobody reads what has not been received, and that may go on meanwhile. */
	uint64_t at = __atomic_load_n(&conn->shm->in.head, __ATOMIC_ACQUIRE);
	uint64_t received = __atomic_load_n(&conn->received, __ATOMIC_ACQUIRE);

	if (is_set(&conn->is_closed))
		at = received;
	if (at - conn->credited > received - conn->credited)
		return -EPROTO;
	*head = at;
	return 0;
}

/* Tells the peer that there is room again, once it is worth a message. */
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
	/* First it is allowed, or the peer could be there before: see piece_arrived(). */
	__atomic_store_n(&conn->credited, head, __ATOMIC_RELEASE);
	if (!weir_mux_post_ctrl(conn, &credit)) {
		conn->ctrls_todo |= WEIR_MUX_CTRL_CREDIT;
		return false;
	}
	conn->ctrls_todo &= ~WEIR_MUX_CTRL_CREDIT;
	weir_mux_counter_add(&conn->mux->counts.credits, 1);
	return true;
}

/* A credit that found no room goes out late, and says what is true by then. */
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
	weir_mux_counter_add(&conn->mux->counts.credits, 1);
	return true;
}

/* What a ctrl says. */
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
	/* After FIN nothing is said, and nothing waits for it. */
	if (!conn->fin_sent && !weir_mux_grants_send(conn))
		return false;
	conn->ctrls_todo &= ~WEIR_MUX_CTRL_GRANTS;
	return true;
}

static bool send_ctrls(struct weir_mux_vconn *conn)
{
	conn->ctrls_todo |= __atomic_exchange_n(&conn->ctrls, 0, __ATOMIC_ACQ_REL);
	return send_ctrl(conn, WEIR_MUX_CTRL_OPEN) && send_ctrl(conn, WEIR_MUX_CTRL_ACCEPT) &&
	       send_ctrl(conn, WEIR_MUX_CTRL_REFUSE) && send_ctrl(conn, WEIR_MUX_CTRL_REMOTE) &&
	       resend_credit(conn) && send_grants(conn);
}

/* Whether nothing more is to be sent of the stream: all is, or nobody would read it. */
static bool is_drained(const struct weir_mux_vconn *conn, bool closed, uint64_t tail)
{
	if (is_set(&conn->is_finished) || __atomic_load_n(&conn->status, __ATOMIC_ACQUIRE))
		return true;
	return closed && conn->posted == tail;
}

/* The last that this release_conns says; nothing of it is left to be sent. */
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

/* Sends and offers what there is. Return: whether there was room for all that cannot wait. */
static bool serve_conn(struct weir_mux_vconn *conn)
{
	struct weir_sched *sched = &conn->remote->sched;
	bool closed = is_set(&conn->is_closed); /* first: after that no more is written */
	uint64_t limit, tail;
	int status;

	if (!send_ctrls(conn))
		return false;
	if (conn->fin_sent)
		return true;
	if (!is_set(&conn->is_open)) {
		conn->fin_sent = is_set(&conn->is_finished);
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
		/* What is posted is done before the other release_conns may forget its memory. */
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
		conn->waits_ns = weir_now_ns();
	weir_sched_ready(sched, &conn->flow);
	return true;
}

/* Lets go of a connection of which nothing will be sent any more, and nothing is in flight. */
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

/* Return: false: it waits for room. Otherwise it may be gone. */
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
	struct weir_inbox_node *inbox_node = weir_inbox_take(&remote->inbox);
	bool any = inbox_node;

	while (inbox_node) {
		struct weir_mux_vconn *conn =
			container_of(inbox_node, struct weir_mux_vconn, inbox_node);

		inbox_node = inbox_node->next;
		__atomic_store_n(&conn->is_queued, 0, __ATOMIC_SEQ_CST);
		serve_or_wait(conn);
	}
	return any;
}

static bool take_completions(struct weir_mux_remote *remote)
{
	struct ibv_wc wcs[WCS_MAX];
	struct weir_mux_vconn *conn;
	int i, n = ibv_poll_cq(remote->cq, WCS_MAX, wcs);

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

bool weir_mux_worker_step(struct weir_mux_remote *remote, uint64_t now_ns, uint64_t *next_ns)
{
	bool any = take_completions(remote);

	any |= take_news(remote);
	*next_ns = weir_mux_sched_groups_resume(remote, now_ns);
	any |= weir_mux_tx_post(remote, now_ns);
	return any;
}

/* There is one for each time that the CQ was armed: no need to ask for another. */
static void take_cq_event(struct weir_mux_remote *remote)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(remote->completions, &cq, &context))
		return;
	__atomic_store_n(&remote->is_armed, false, __ATOMIC_RELAXED);
	remote->cq_events++;
}

/* Whether a completion will come; who begins a handshake wakes it after that. */
static bool is_completion_due(const struct weir_mux_remote *remote)
{
	return remote->posted || __atomic_load_n(&remote->nr_handshakes_posted, __ATOMIC_SEQ_CST);
}

/*
 * Says that it sleeps, and arms. Then it works once more, since others may have begun what it did
 * not know of: @remote->wakes_ns is when the first may go on who has to wait.
 * Return: whether it may sleep: there was nothing to do.
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
	may_sleep = !weir_mux_worker_step(remote, weir_now_ns(), &remote->wakes_ns) &&
		    (!remote_status(remote) || remote->posted);
	weir_mux_remote_release(remote);
	return may_sleep && weir_inbox_is_empty(&remote->inbox);
}

/* Sleeps until something comes, or until somebody may send again. */
static void sleep_until_event(struct weir_mux_remote *remote)
{
	struct pollfd fds[] = { { .fd = remote->bell, .events = POLLIN },
				{ .fd = remote->completions->fd, .events = POLLIN } };

	if (prepare_sleep(remote)) {
		weir_mux_counter_add(&remote->mux->counts.sleeps, 1);
		poll(fds, 2, weir_poll_ms(remote->wakes_ns));
	}
	__atomic_store_n(&remote->asleep, 0, __ATOMIC_SEQ_CST);
	if (fds[0].revents)
		weir_fd_drain(remote->bell);
	if (fds[1].revents)
		take_cq_event(remote);
}

/*
 * Nothing is in flight any more: the connections hear of it; also those that only waited for the
 * other release_conns's FIN, which will not come. Nor is anything written into their rings any more, which
 * others may have then.
 */
static void release_conns(struct weir_mux_remote *remote)
{
	struct weir_mux_local *mux = remote->mux;
	struct weir_mux_vconn *conn;

	pthread_mutex_lock(&mux->lock);
	weir_mux_remote_flush_qps(remote);
	while (!weir_list_is_empty(&remote->conns)) {
		conn = weir_list_entry(remote->conns.next, struct weir_mux_vconn, remote_link);
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
	remote->is_over = true;
	pthread_cond_broadcast(&mux->changed);
	weir_fd_signal(mux->bell);
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
			any = weir_mux_worker_step(remote, now_ns, &remote->wakes_ns);
			weir_mux_remote_release(remote);
		}
		weir_yield(&now_ns);
		if (any)
			worked_ns = now_ns;
		else if (now_ns - worked_ns > remote->mux->options.quiet_ns)
			sleep_until_event(remote);
	}
	weir_mux_remote_release(remote);
	release_conns(remote);
	return NULL;
}
