/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who does a node's work: whoever has node->serving. The worker is there for it; but who leaves
 * news and holds no lock does what there is to do himself, if nobody is at it: as in core/base/inbox.h,
 * whose protocol this is. To wake the worker takes longer than most of that, and so does the way
 * back.
 *
 * Whoever stops looks at the inbox again. So who leaves news while somebody is at it need do no
 * more; if nobody is, he serves, or wakes the worker if it sleeps. That says that it sleeps before
 * it stops, and looks after that.
 */
#include "lib/mux/tx/post.h"

#define PASSES_MAX 8 /* of who stands in for the worker, before he leaves the rest to it */
#define PASSES_SOME 2 /* of who looks for something else first, and then comes again */
#define BULK_BYTES WIRE_PIECE_MAX /* in flight of lower levels: he does so after one */
#define NODES_MAX 16 /* served one after the other; further ones by their workers */

void weir_node_wake(struct weir_node *node)
{
	if (__atomic_exchange_n(&node->asleep, 0, __ATOMIC_SEQ_CST))
		weir_fd_ring(node->bell);
}

bool weir_node_begin(struct weir_node *node)
{
	return !__atomic_exchange_n(&node->serving, 1, __ATOMIC_SEQ_CST);
}

void weir_node_stop(struct weir_node *node)
{
	__atomic_store_n(&node->serving, 0, __ATOMIC_SEQ_CST);
}

void weir_circuit_leave(struct weir_circuit *conn)
{
	if (!__atomic_exchange_n(&conn->has_news, 1, __ATOMIC_SEQ_CST))
		weir_inbox_push(&conn->node->inbox, &conn->news);
}

void weir_circuit_news(struct weir_circuit *conn)
{
	struct weir_node *node = conn->node;

	weir_circuit_leave(conn);
	if (!__atomic_load_n(&node->serving, __ATOMIC_SEQ_CST))
		weir_node_wake(node);
}

/*
 * Most devices are not done with what has been posted; some are. What is left to be waited for is
 * the worker's, unless it will hear of it as it sleeps: @waits.
 * Return: whether there may be more to do than that many times.
 */
static bool stand_in(struct weir_node *node, unsigned int *passes, bool *waits)
{
	const bool is_short = *passes <= PASSES_SOME;
	uint64_t next_ns = UINT64_MAX;

	while (*passes && weir_node_work(node, weir_now_ns(), &next_ns))
		*passes = is_short && node->sched.low_bytes >= BULK_BYTES ? 0 : *passes - 1;
	*waits = next_ns < node->rises_ns ||
		 (node->posted && !__atomic_load_n(&node->is_armed, __ATOMIC_RELAXED));
	return !*passes;
}

/* Return: the same. */
static bool serve(struct weir_node *node, unsigned int passes)
{
	bool has_more = false, waits = false, is_ended;

	do {
		if (!weir_node_begin(node))
			return false;
		is_ended = node->is_ended;
		if (!is_ended)
			has_more = stand_in(node, &passes, &waits);
		weir_node_stop(node);
	} while (!is_ended && !has_more && !waits && !weir_inbox_is_empty(&node->inbox));
	if (waits)
		weir_node_wake(node);
	return has_more;
}

void weir_node_serve(struct weir_node *node)
{
	if (serve(node, PASSES_MAX))
		weir_node_wake(node);
}

/* With hub->lock held: whose there is something to do, each with a reference. Return: how many. */
static unsigned int nodes_take(struct weir_hub *hub, struct weir_node **nodes)
{
	struct weir_list *at;
	unsigned int n = 0;

	for (at = hub->nodes.next; at != &hub->nodes; at = at->next) {
		struct weir_node *node = weir_list_entry(at, struct weir_node, link);

		if (!node->has_more && !weir_inbox_may_hold(&node->inbox))
			continue;
		if (n == NODES_MAX) {
			weir_node_wake(node);
			continue;
		}
		node->has_more = false;
		node->refs++;
		nodes[n++] = node;
	}
	return n;
}

bool weir_hub_serve(struct weir_hub *hub)
{
	struct weir_node *nodes[NODES_MAX];
	bool more[NODES_MAX], any = false;
	unsigned int i, n;

	pthread_mutex_lock(&hub->lock);
	n = nodes_take(hub, nodes);
	pthread_mutex_unlock(&hub->lock);
	for (i = 0; i < n; i++)
		more[i] = serve(nodes[i], PASSES_SOME);
	pthread_mutex_lock(&hub->lock);
	for (i = 0; i < n; i++) {
		nodes[i]->has_more |= more[i];
		any |= more[i];
		weir_node_put(nodes[i]);
	}
	pthread_mutex_unlock(&hub->lock);
	return any;
}
