/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * OPENs of other muxes. One for whose rings there is memory is answered at once. For another a
 * chunk has to be registered first, which a device may take milliseconds for: who takes in what
 * arrives for everybody does not wait for it, but leaves that to a mason, a thread of the owner's
 * that is there as long as something waits.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/mux/local/local.h"
#include "lib/base/thread.h"

/* @node: referenced. @deadline_ns: of whoever asked, as far as we know. hub->lock. */
struct opening {
	struct weir_list link;
	struct weir_node *node;
	uint8_t class;
	struct wire_mux message;
	uint64_t deadline_ns;
};

static struct weir_offer *offer_find(struct weir_hub *hub, uint32_t service)
{
	struct weir_list *at;

	for (at = hub->offers.next; at != &hub->offers; at = at->next) {
		struct weir_offer *offer = weir_list_entry(at, struct weir_offer, link);

		if (offer->service == service)
			return offer;
	}
	return NULL;
}

/* Return: 0, or what the opener is told. @lacking: receives who has no rings for it, or NULL. */
static int answer(struct weir_node *node, uint8_t class, const struct wire_mux *m,
		  struct weir_owner **lacking)
{
	struct weir_offer *offer = offer_find(node->hub, m->to);
	struct weir_circuit *conn;
	int rc;

	*lacking = NULL;
	if (!offer)
		return -ECONNREFUSED;
	if (offer->count >= offer->backlog)
		return -EAGAIN;
	rc = weir_circuit_new(offer->owner, node, class, 1, m->value, &conn);
	if (rc == -EAGAIN)
		*lacking = offer->owner;
	if (rc)
		return rc;
	weir_circuit_granted(conn, m);
	__atomic_fetch_or(&conn->chores, WEIR_CHORE_ACCEPT, __ATOMIC_ACQ_REL);
	weir_circuit_news(conn);
	weir_list_add_tail(&offer->conns, &conn->offer_link);
	offer->count++;
	weir_fd_ring(offer->fd);
	return 0;
}

static void opening_free(struct opening *o)
{
	o->node->nr_openings--;
	weir_node_put(o->node);
	free(o);
}

static void *mason_run(void *owner);

/* It waits for rings of @owner's. */
static int opening_leave(struct weir_owner *owner, struct opening *o)
{
	pthread_t thread;

	if (!owner->has_mason) {
		if (weir_thread_create(&thread, "weir-mason", mason_run, owner, NULL))
			return -ENOMEM;
		pthread_detach(thread);
		owner->has_mason = true;
	}
	weir_list_add_tail(&owner->openings, &o->link);
	return 0;
}

/* Return: as answer(). The service may be another owner's by now: then its mason has it. */
static int opening_serve(struct weir_owner *owner, struct opening *o, bool *is_left)
{
	struct weir_owner *lacking;
	int rc;

	do {
		rc = answer(o->node, o->class, &o->message, &lacking);
		if (lacking && lacking != owner) {
			rc = opening_leave(lacking, o);
			*is_left = !rc;
			return rc;
		}
		if (lacking)
			rc = weir_chunk_make(owner, o->deadline_ns);
	} while (lacking && !rc && !__atomic_load_n(&o->node->status, __ATOMIC_ACQUIRE));
	return rc;
}

/* Nobody hears of it by a node that is lost. */
static void opening_refuse(const struct opening *o, int status)
{
	int rc = 0;

	if (!__atomic_load_n(&o->node->status, __ATOMIC_ACQUIRE))
		rc = weir_circuit_refuse(o->node, o->class, o->message.from, status);
	if (rc)
		weir_node_fail(o->node, rc);
}

static void *mason_run(void *arg)
{
	struct weir_owner *owner = arg;
	struct weir_hub *hub = owner->hub;

	pthread_mutex_lock(&hub->lock);
	while (!weir_list_is_empty(&owner->openings)) {
		struct opening *o = weir_list_entry(owner->openings.next, struct opening, link);
		bool is_left = false;
		int rc = 0;

		weir_list_del(&o->link);
		if (!__atomic_load_n(&o->node->status, __ATOMIC_ACQUIRE))
			rc = opening_serve(owner, o, &is_left);
		if (rc)
			opening_refuse(o, rc);
		if (!is_left)
			opening_free(o);
	}
	owner->has_mason = false;
	pthread_cond_broadcast(&owner->changed);
	pthread_mutex_unlock(&hub->lock);
	return NULL;
}

static int opening_new(struct weir_owner *owner, struct weir_lane *lane, const struct wire_mux *m)
{
	struct opening *o = malloc(sizeof(*o));
	int rc;

	if (!o)
		return -ENOMEM;
	*o = (struct opening){ .node = lane->node, .class = lane->class, .message = *m,
			       .deadline_ns = weir_hub_deadline_ns(owner->hub) };
	weir_list_init(&o->link);
	o->node->refs++;
	o->node->nr_openings++;
	rc = opening_leave(owner, o);
	if (rc)
		opening_free(o);
	return rc;
}

int weir_opening_input(struct weir_lane *lane, const struct wire_mux *m)
{
	struct weir_node *node = lane->node;
	struct weir_owner *lacking;
	int rc = answer(node, lane->class, m, &lacking);

	/* Nobody who keeps to the rule has so many that are not answered. */
	if (lacking && node->nr_openings == WEIR_REFUSALS_MAX)
		return -EPROTO;
	if (lacking)
		rc = opening_new(lacking, lane, m);
	return rc ? weir_circuit_refuse(node, lane->class, m->from, rc) : 0;
}
