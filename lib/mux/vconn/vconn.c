/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The life of a connection, from its place in the table to the last who lets go of it. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/futex.h"
#include "lib/mux/local/local.h"

static int place_take(struct weir_hub *hub, struct weir_circuit *conn)
{
	unsigned int index = hub->next_index, nr = hub->options.connections_max;

	if (hub->nr_conns == nr)
		return -EDQUOT;
	while (hub->table[index])
		index = (index + 1) % nr;
	hub->next_index = (index + 1) % nr;
	hub->nr_conns++;
	hub->table[index] = conn;
	hub->generations[index]++;
	conn->id = (uint32_t)hub->generations[index] << 16 | (index + 1);
	return 0;
}

static void place_give(struct weir_circuit *conn)
{
	if (!conn->id)
		return;
	conn->hub->table[(conn->id & 0xffff) - 1] = NULL;
	conn->hub->nr_conns--;
}

struct weir_circuit *weir_circuit_find(struct weir_hub *hub, uint32_t id)
{
	uint32_t index = (id & 0xffff) - 1;
	struct weir_circuit *conn;

	if (index >= hub->options.connections_max)
		return NULL;
	conn = hub->table[index];
	return conn && conn->id == id ? conn : NULL;
}

/*
 * How long its rings are, in slots. What it sends in a round of the scheduler's is its weight in
 * segments. Twice that has to fit, or it has nothing left to send while it is refilled, and gets
 * less than its weight says.
 */
static unsigned int slots_of(const struct weir_owner *owner, uint16_t weight, uint32_t window)
{
	const uint32_t ring_bytes = owner->hub->options.ring_bytes;
	uint64_t wanted = (uint64_t)weight * weir_owner_weight(owner) / 2;
	unsigned int slots = 1;

	if (window)
		wanted = ((uint64_t)window + ring_bytes - 1) / ring_bytes;
	while (slots < WEIR_CHUNK_CONNS && slots < wanted)
		slots *= 2;
	return slots;
}

static struct weir_circuit *conn_alloc(struct weir_owner *owner, struct weir_node *node,
				       uint8_t class)
{
	struct weir_circuit *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->app = (struct weir_conn){ .host = &weir_local_host, .fd = -1, .room_fd = -1 };
	conn->hub = node->hub;
	conn->owner = owner;
	conn->node = node;
	conn->class = class;
	conn->fd = conn->room_fd = -1;
	weir_list_init(&conn->node_link);
	weir_list_init(&conn->offer_link);
	weir_list_init(&conn->ask_link);
	weir_list_init(&conn->wait_link);
	return conn;
}

static void conn_attach(struct weir_circuit *conn)
{
	conn->node->refs++;
	conn->node->quiet_ns = 0;
	weir_list_add_tail(&conn->node->conns, &conn->node_link);
}

int weir_circuit_new(struct weir_owner *owner, struct weir_node *node, uint8_t class,
		     uint16_t weight, uint32_t window, struct weir_circuit **out)
{
	struct weir_circuit *conn;
	int rc;

	rc = class < owner->party->first_class ? -EPERM : weir_owner_take_conn(owner);
	if (rc)
		return rc;
	conn = conn_alloc(owner, node, class);
	if (!conn) {
		weir_owner_give_conn(owner);
		return -ENOMEM;
	}
	rc = place_take(node->hub, conn);
	if (!rc)
		rc = weir_stake_take(conn);
	if (!rc)
		rc = weir_chunk_take(owner, conn, slots_of(owner, weight, window));
	if (rc) {
		weir_stake_give(conn);
		place_give(conn);
		free(conn);
		weir_owner_give_conn(owner);
		return rc;
	}
	conn->weight = weight;
	weir_flow_init(&conn->flow, &conn->stake->bundle, weight);
	weir_errands_open(conn);
	conn_attach(conn);
	*out = conn;
	return 0;
}

int weir_circuit_weigh(struct weir_circuit *conn, unsigned int weight)
{
	if (!weight || weight > WEIR_SCHED_WEIGHT_MAX)
		return -EINVAL;
	pthread_mutex_lock(&conn->hub->lock);
	__atomic_store_n(&conn->weight, (uint16_t)weight, __ATOMIC_RELAXED);
	if (!conn->is_detached)
		weir_circuit_news(conn);
	pthread_mutex_unlock(&conn->hub->lock);
	return 0;
}

static_assert(WEIR_REFUSALS_MAX >= WIRE_OPENS_MAX + WEIR_MUX_CLASSES_MAX * WEIR_LANE_CONTROLS,
	      "whoever keeps to the rule is told no");

/*
 * One that is gone once it has done that; the caller says what it is about, and that there is news.
 */
static int speaker_new(struct weir_node *node, uint8_t class, uint32_t chore,
		       struct weir_circuit **out)
{
	struct weir_circuit *conn;

	if (node->nr_refusals == WEIR_REFUSALS_MAX)
		return -EPROTO;
	conn = conn_alloc(&node->hub->self, node, class);
	if (!conn)
		return -ENOMEM;
	node->nr_refusals++;
	conn->is_closed = conn->is_finished = conn->fin_sent = true;
	conn->chores = chore;
	conn_attach(conn);
	*out = conn;
	return 0;
}

int weir_circuit_refuse(struct weir_node *node, uint8_t class, uint32_t remote_id, int status)
{
	struct weir_circuit *conn;
	int rc = speaker_new(node, class, WEIR_CHORE_REFUSE, &conn);

	if (rc)
		return rc;
	conn->remote_id = remote_id;
	conn->status = status;
	weir_circuit_news(conn);
	return 0;
}

int weir_circuit_say(struct weir_node *node, enum wire_mux_type what)
{
	struct weir_circuit *conn;
	int rc = speaker_new(node, 0, WEIR_CHORE_SAY, &conn);

	if (rc)
		return rc;
	conn->service = what;
	weir_circuit_news(conn);
	return 0;
}

/* Those that wait keep their order. */
static void ask_now(struct weir_circuit *conn)
{
	conn->is_asking = true;
	conn->node->nr_asking++;
	__atomic_fetch_or(&conn->chores, WEIR_CHORE_OPEN, __ATOMIC_ACQ_REL);
	weir_circuit_news(conn);
}

void weir_circuit_ask(struct weir_circuit *conn)
{
	weir_stake_asks(conn);
	if (conn->node->nr_asking < WIRE_OPENS_MAX)
		ask_now(conn);
	else
		weir_list_add_tail(&conn->node->askers, &conn->ask_link);
}

void weir_circuit_answered(struct weir_circuit *conn)
{
	struct weir_node *node = conn->node;

	if (!conn->is_asking)
		return;
	conn->is_asking = false;
	node->nr_asking--;
	if (weir_list_is_empty(&node->askers))
		return;
	conn = weir_list_entry(node->askers.next, struct weir_circuit, ask_link);
	weir_list_del(&conn->ask_link);
	ask_now(conn);
}

void weir_circuit_changed(struct weir_circuit *conn)
{
	if (conn->waiter)
		pthread_cond_signal(conn->waiter);
	pthread_cond_broadcast(&conn->owner->changed);
}

void weir_circuit_granted(struct weir_circuit *conn, const struct wire_mux *m)
{
	conn->landing = (struct weir_landing){ .address = m->position, .rkey = (uint32_t)m->length,
					       .size = m->position ? m->value : 0 };
	__atomic_store_n(&conn->remote_id, m->from, __ATOMIC_RELAXED);
	__atomic_store_n(&conn->granted, m->value, __ATOMIC_RELAXED);
	__atomic_store_n(&conn->is_open, true, __ATOMIC_RELEASE);
}

static void tell(struct weir_ring *ring, const int *fd, uint32_t armed)
{
	if (armed & WEIR_ARMED_FD)
		weir_fd_ring(__atomic_load_n(fd, __ATOMIC_ACQUIRE));
	if (armed & WEIR_ARMED_CALL)
		weir_futex_wake_shared(&ring->armed);
}

void weir_ring_tell(struct weir_ring *ring, const int *fd)
{
	tell(ring, fd, weir_ring_disarm(ring));
}

void weir_ring_tell_at(struct weir_ring *ring, const int *fd, uint64_t position)
{
	tell(ring, fd, weir_ring_disarm_at(ring, position));
}

void weir_circuit_tell(struct weir_circuit *conn)
{
	if (!conn->chunk)
		return;
	weir_ring_tell(&conn->door->in, &conn->fd);
	weir_ring_tell(&conn->door->out, &conn->room_fd);
}

/* The connection has come to its end: what its worker will not take is answered. */
static void orders_end(struct weir_circuit *conn, int status)
{
	if (!conn->door)
		return;
	weir_order_answer(&conn->door->order, WEIR_ORDER_GIVEN, status);
	weir_order_answer(&conn->door->loan, WEIR_ORDER_GIVEN, status);
}

void weir_circuit_finished(struct weir_circuit *conn)
{
	__atomic_store_n(&conn->is_finished, true, __ATOMIC_RELEASE);
	if (conn->door)
		__atomic_store_n(&conn->door->is_finished, 1, __ATOMIC_SEQ_CST);
	orders_end(conn, -ENOTCONN);
	weir_circuit_tell(conn);
}

void weir_circuit_fail(struct weir_circuit *conn, int status)
{
	int none = 0;

	if (__atomic_compare_exchange_n(&conn->status, &none, status, false, __ATOMIC_SEQ_CST,
					__ATOMIC_RELAXED) &&
	    conn->door)
		__atomic_store_n(&conn->door->status, status, __ATOMIC_SEQ_CST);
	orders_end(conn, status);
	weir_circuit_tell(conn);
}

void weir_circuit_release(struct weir_circuit *conn)
{
	struct weir_owner *owner = conn->owner;

	if (!conn->is_closed || !conn->is_finished || !conn->is_detached)
		return;
	if (conn->chunk)
		weir_owner_give_conn(owner);
	else
		conn->node->nr_refusals--;
	weir_list_del(&conn->node_link);
	weir_grants_drop(conn);
	weir_stake_give(conn);
	place_give(conn);
	weir_chunk_give(conn);
	if (conn->fd >= 0)
		close(conn->fd);
	if (conn->room_fd >= 0)
		close(conn->room_fd);
	weir_node_put(conn->node);
	free(conn);
	pthread_cond_broadcast(&owner->changed);
}

void weir_circuit_abort(struct weir_circuit *conn)
{
	weir_circuit_fail(conn, -ECONNRESET);
	weir_circuit_shut(conn);
}

void weir_circuit_shut(struct weir_circuit *conn)
{
	weir_list_del(&conn->offer_link);
	__atomic_store_n(&conn->is_closed, true, __ATOMIC_RELEASE);
	if (conn->is_detached)
		weir_circuit_release(conn);
	else
		weir_circuit_news(conn);
}
