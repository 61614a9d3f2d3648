/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The worker of a node, and its work, which at times others do (serve.c): one at a time posts, so
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

static int status_of(const struct weir_node *node)
{
	return __atomic_load_n(&node->status, __ATOMIC_SEQ_CST);
}

static bool is_set(const bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

/* Up to where the reader has read; what arrives for one who has closed counts as read. */
static int read_position(const struct weir_circuit *conn, uint64_t *head)
{
	/* First this: nobody reads what has not been received, and that may go on meanwhile. */
	uint64_t at = __atomic_load_n(&conn->door->in.head, __ATOMIC_ACQUIRE);
	uint64_t received = __atomic_load_n(&conn->received, __ATOMIC_ACQUIRE);

	if (is_set(&conn->is_closed))
		at = received;
	if (at - conn->told > received - conn->told)
		return -EPROTO;
	*head = at;
	return 0;
}

/* Tells the peer that there is room again, once it is worth a message. */
static bool grant(struct weir_circuit *conn)
{
	struct wire_mux credit = { .type = WIRE_MUX_CREDIT, .to = weir_circuit_remote(conn) };
	uint64_t head;

	if (read_position(conn, &head)) {
		weir_circuit_fail(conn, -EPROTO);
		return true;
	}
	if (head - conn->told < conn->size / 4)
		return true;
	credit.position = head + conn->size;
	/* First it is allowed, or the peer could be there before: see piece_arrived(). */
	__atomic_store_n(&conn->told, head, __ATOMIC_RELEASE);
	if (!weir_post_control(conn, &credit)) {
		conn->todo |= WEIR_CHORE_CREDIT;
		return false;
	}
	conn->todo &= ~WEIR_CHORE_CREDIT;
	weir_count(&conn->hub->counts.credits, 1);
	return true;
}

/* A credit that found no room goes out late, and says what is true by then. */
static bool grant_again(struct weir_circuit *conn)
{
	struct wire_mux credit = { .type = WIRE_MUX_CREDIT, .to = weir_circuit_remote(conn),
				   .position = conn->told + conn->size };

	if (!(conn->todo & WEIR_CHORE_CREDIT))
		return true;
	if (!weir_post_control(conn, &credit))
		return false;
	conn->todo &= ~WEIR_CHORE_CREDIT;
	weir_count(&conn->hub->counts.credits, 1);
	return true;
}

/* What a chore says. */
static void chore_fill(const struct weir_circuit *conn, uint32_t chore, struct wire_mux *m)
{
	switch (chore) {
	case WEIR_CHORE_OPEN:
		*m = (struct wire_mux){ .type = WIRE_MUX_OPEN, .to = conn->service,
					.from = conn->id, .value = conn->size,
					.position = (uintptr_t)conn->arriving.bytes,
					.length = conn->chunk->mr_in->rkey };
		break;
	case WEIR_CHORE_ACCEPT:
		*m = (struct wire_mux){ .type = WIRE_MUX_ACCEPT, .to = weir_circuit_remote(conn),
					.from = conn->id, .value = conn->size,
					.position = (uintptr_t)conn->arriving.bytes,
					.length = conn->chunk->mr_in->rkey };
		break;
	case WEIR_CHORE_SAY:
		*m = (struct wire_mux){ .type = (uint16_t)conn->service };
		break;
	default:
		*m = (struct wire_mux){ .type = WIRE_MUX_REFUSE, .to = weir_circuit_remote(conn),
					.value = (uint32_t)-conn->status };
		break;
	}
}

static bool send_chore(struct weir_circuit *conn, uint32_t chore)
{
	struct wire_mux m;

	if (!(conn->todo & chore))
		return true;
	chore_fill(conn, chore, &m);
	if (!weir_post_control(conn, &m))
		return false;
	conn->todo &= ~chore;
	return true;
}

static bool send_grants(struct weir_circuit *conn)
{
	if (!(conn->todo & WEIR_CHORE_GRANTS))
		return true;
	/* After FIN nothing is said, and nothing waits for it. */
	if (!conn->fin_sent && !weir_grants_send(conn))
		return false;
	conn->todo &= ~WEIR_CHORE_GRANTS;
	return true;
}

static bool do_chores(struct weir_circuit *conn)
{
	conn->todo |= __atomic_exchange_n(&conn->chores, 0, __ATOMIC_ACQ_REL);
	return send_chore(conn, WEIR_CHORE_OPEN) && send_chore(conn, WEIR_CHORE_ACCEPT) &&
	       send_chore(conn, WEIR_CHORE_REFUSE) && send_chore(conn, WEIR_CHORE_SAY) &&
	       grant_again(conn) && send_grants(conn);
}

/* Whether nothing more is to be sent of the stream: all is, or nobody would read it. */
static bool is_drained(const struct weir_circuit *conn, bool closed, uint64_t tail)
{
	if (is_set(&conn->is_finished) || __atomic_load_n(&conn->status, __ATOMIC_ACQUIRE))
		return true;
	return closed && conn->posted == tail;
}

/* The last that this end says; nothing of it is left to be sent. */
static bool finish(struct weir_circuit *conn)
{
	struct wire_mux fin = { .type = WIRE_MUX_FIN, .to = weir_circuit_remote(conn) };

	if (__atomic_load_n(&conn->status, __ATOMIC_ACQUIRE))
		fin.value = ECONNRESET;
	if (!weir_post_control(conn, &fin))
		return false;
	conn->fin_sent = true;
	return true;
}

/* Sends and offers what there is. Return: whether there was room for all that cannot wait. */
static bool serve(struct weir_circuit *conn)
{
	struct weir_sched *sched = &conn->node->sched;
	bool closed = is_set(&conn->is_closed); /* first: after that no more is written */
	uint64_t limit, tail;
	int status;

	if (!do_chores(conn))
		return false;
	if (conn->fin_sent)
		return true;
	if (!is_set(&conn->is_open)) {
		conn->fin_sent = is_set(&conn->is_finished);
		return true;
	}
	if (!grant(conn))
		return false;
	limit = weir_piece_limit(conn, &tail);
	if (is_drained(conn, closed, tail)) {
		weir_stake_idle(conn);
		status = __atomic_load_n(&conn->status, __ATOMIC_ACQUIRE);
		weir_errand_end(&conn->errand, status ? status : -ENOTCONN);
		weir_errand_end(&conn->loan, status ? status : -ENOTCONN);
		/* What is posted is done before the other end may forget its memory. */
		return conn->errand.wrs || finish(conn);
	}
	weir_errand_take(&conn->errand);
	weir_errand_take(&conn->loan);
	weir_stake_follow(conn);
	weir_bundle_weigh(&conn->stake->bundle, weir_owner_weight(conn->owner));
	conn->flow.turn.weight = __atomic_load_n(&conn->weight, __ATOMIC_RELAXED);
	if (!weir_piece_is_wanted(conn, limit, tail))
		return true;
	if (!conn->flow.turn.is_ready)
		conn->waits_ns = weir_now_ns();
	weir_sched_ready(sched, &conn->flow);
	return true;
}

/* Lets go of a connection of which nothing will be sent any more, and nothing is in flight. */
static void detach(struct weir_circuit *conn)
{
	struct weir_hub *hub = conn->hub;

	if (!conn->fin_sent || conn->todo || conn->flow.wrs || conn->controls ||
	    !is_set(&conn->is_closed))
		return;
	pthread_mutex_lock(&hub->lock);
	if (!__atomic_load_n(&conn->has_news, __ATOMIC_SEQ_CST)) {
		weir_list_del(&conn->wait_link);
		conn->is_detached = true;
		weir_circuit_release(conn);
	}
	pthread_mutex_unlock(&hub->lock);
}

/* Return: false: it waits for room. Otherwise it may be gone. */
static bool look(struct weir_circuit *conn)
{
	struct weir_node *node = conn->node;

	weir_list_del(&conn->wait_link);
	if (serve(conn)) {
		detach(conn);
		return true;
	}
	weir_list_add_tail(&node->control_waits, &conn->wait_link);
	return false;
}

static bool take_news(struct weir_node *node)
{
	struct weir_inbox_node *news = weir_inbox_take(&node->inbox);
	bool any = news;

	while (news) {
		struct weir_circuit *conn = container_of(news, struct weir_circuit, news);

		news = news->next;
		__atomic_store_n(&conn->has_news, 0, __ATOMIC_SEQ_CST);
		look(conn);
	}
	return any;
}

static bool take_completions(struct weir_node *node)
{
	struct ibv_wc wcs[WCS_MAX];
	struct weir_circuit *conn;
	int i, n = ibv_poll_cq(node->cq, WCS_MAX, wcs);

	for (i = 0; i < n; i++) {
		conn = weir_post_completed(node, &wcs[i]);
		if (conn && conn->fin_sent)
			detach(conn);
	}
	while (n > 0 && !weir_list_is_empty(&node->control_waits)) {
		conn = weir_list_entry(node->control_waits.next, struct weir_circuit, wait_link);
		if (!look(conn))
			break;
	}
	return n > 0;
}

bool weir_node_work(struct weir_node *node, uint64_t now_ns, uint64_t *next_ns)
{
	bool any = take_completions(node);

	any |= take_news(node);
	*next_ns = weir_stakes_pace(node, now_ns);
	any |= weir_pieces_post(node, now_ns);
	return any;
}

/* There is one for each time that the CQ was armed: no need to ask for another. */
static void take_event(struct weir_node *node)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(node->completions, &cq, &context))
		return;
	__atomic_store_n(&node->is_armed, false, __ATOMIC_RELAXED);
	node->cq_events++;
}

/* Whether a completion will come; who begins a handshake wakes it after that. */
static bool is_under_way(const struct weir_node *node)
{
	return node->posted || __atomic_load_n(&node->unheard, __ATOMIC_SEQ_CST);
}

/*
 * Says that it sleeps, and arms. Then it works once more, since others may have begun what it did
 * not know of: @node->rises_ns is when the first may go on who has to wait.
 * Return: whether it may sleep: there was nothing to do.
 */
static bool lie_down(struct weir_node *node)
{
	bool may_sleep;

	if (!weir_node_begin(node))
		return false;
	__atomic_store_n(&node->asleep, 1, __ATOMIC_SEQ_CST);
	if (is_under_way(node) && !is_set(&node->is_armed)) {
		ibv_req_notify_cq(node->cq, 0);
		__atomic_store_n(&node->is_armed, true, __ATOMIC_RELAXED);
	}
	may_sleep = !weir_node_work(node, weir_now_ns(), &node->rises_ns) &&
		    (!status_of(node) || node->posted);
	weir_node_stop(node);
	return may_sleep && weir_inbox_is_empty(&node->inbox);
}

/* Sleeps until something comes, or until somebody may send again. */
static void nap(struct weir_node *node)
{
	struct pollfd fds[] = { { .fd = node->bell, .events = POLLIN },
				{ .fd = node->completions->fd, .events = POLLIN } };

	if (lie_down(node)) {
		weir_count(&node->hub->counts.sleeps, 1);
		poll(fds, 2, weir_poll_ms(node->rises_ns));
	}
	__atomic_store_n(&node->asleep, 0, __ATOMIC_SEQ_CST);
	if (fds[0].revents)
		weir_fd_take(node->bell);
	if (fds[1].revents)
		take_event(node);
}

/*
 * Nothing is in flight any more: the connections hear of it; also those that only waited for the
 * other end's FIN, which will not come. Nor is anything written into their rings any more, which
 * others may have then.
 */
static void end(struct weir_node *node)
{
	struct weir_hub *hub = node->hub;
	struct weir_circuit *conn;

	pthread_mutex_lock(&hub->lock);
	weir_lanes_break(node);
	while (!weir_list_is_empty(&node->conns)) {
		conn = weir_list_entry(node->conns.next, struct weir_circuit, node_link);
		weir_circuit_fail(conn, status_of(node));
		weir_errand_drop(&conn->errand, -ECONNRESET);
		weir_errand_drop(&conn->loan, -ECONNRESET);
		weir_list_del(&conn->node_link);
		weir_list_del(&conn->wait_link);
		weir_list_del(&conn->ask_link);
		if (conn->stake)
			weir_list_del(&conn->stake->pace_link);
		weir_circuit_finished(conn);
		weir_circuit_changed(conn);
		conn->is_detached = true;
		weir_circuit_release(conn);
	}
	node->is_over = true;
	pthread_cond_broadcast(&hub->changed);
	weir_fd_ring(hub->bell);
	pthread_mutex_unlock(&hub->lock);
}

void *weir_node_worker(void *arg)
{
	struct weir_node *node = arg;
	uint64_t worked_ns = weir_now_ns(), now_ns = worked_ns;

	for (;;) {
		bool any = false;

		if (weir_node_begin(node)) {
			node->is_ended = status_of(node) && !node->posted;
			if (node->is_ended)
				break;
			any = weir_node_work(node, now_ns, &node->rises_ns);
			weir_node_stop(node);
		}
		weir_yield(&now_ns);
		if (any)
			worked_ns = now_ns;
		else if (now_ns - worked_ns > node->hub->options.quiet_ns)
			nap(node);
	}
	weir_node_stop(node);
	end(node);
	return NULL;
}
