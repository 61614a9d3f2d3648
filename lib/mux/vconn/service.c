/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Services: offering one, and connecting to one. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/mux/local/local.h"

static bool is_offered(const struct weir_hub *hub, uint32_t service)
{
	const struct weir_list *at;

	for (at = hub->offers.next; at != &hub->offers; at = at->next)
		if (weir_list_entry(at, struct weir_offer, link)->service == service)
			return true;
	return false;
}

int weir_offer_open(struct weir_owner *owner, uint32_t service, unsigned int backlog, int fd,
		    struct weir_offer **out)
{
	struct weir_offer *offer = calloc(1, sizeof(*offer));
	struct weir_hub *hub = owner->hub;
	int rc = 0;

	if (!offer) {
		close(fd);
		return -ENOMEM;
	}
	*offer = (struct weir_offer){ .listener = { &weir_local_host }, .hub = hub,
				      .owner = owner, .service = service, .backlog = backlog,
				      .fd = fd };
	weir_list_init(&offer->link);
	weir_list_init(&offer->conns);
	pthread_mutex_lock(&hub->lock);
	if (!backlog)
		rc = -EINVAL;
	else if (is_offered(hub, service))
		rc = -EADDRINUSE;
	else
		weir_list_add_tail(&hub->offers, &offer->link);
	if (rc)
		weir_offer_free(offer);
	else
		*out = offer;
	pthread_mutex_unlock(&hub->lock);
	return rc;
}

void weir_offer_free(struct weir_offer *offer)
{
	weir_list_del(&offer->link);
	if (offer->fd >= 0)
		close(offer->fd);
	free(offer);
}

int weir_offer_accept(struct weir_offer *offer, struct weir_circuit **out)
{
	struct weir_hub *hub = offer->hub;
	struct weir_circuit *conn;
	int rc = -EAGAIN;

	pthread_mutex_lock(&hub->lock);
	if (!weir_list_is_empty(&offer->conns)) {
		conn = weir_list_entry(offer->conns.next, struct weir_circuit, offer_link);
		weir_list_del(&conn->offer_link);
		offer->count--;
		*out = conn;
		rc = 0;
		/* Who has silenced it before he asked hears of the others. */
		if (offer->count)
			weir_fd_ring(offer->fd);
	}
	pthread_mutex_unlock(&hub->lock);
	return rc;
}

void weir_offer_close(struct weir_offer *offer)
{
	struct weir_hub *hub = offer->hub;

	pthread_mutex_lock(&hub->lock);
	while (!weir_list_is_empty(&offer->conns))
		weir_circuit_shut(weir_list_entry(offer->conns.next, struct weir_circuit,
						  offer_link));
	weir_offer_free(offer);
	pthread_mutex_unlock(&hub->lock);
}

static int options_check(const struct weir_hub *hub, struct weir_conn_options *options,
			 const struct weir_conn_options *given, struct weir_error *error)
{
	*options = (struct weir_conn_options){ .class_nr = hub->options.nr_classes - 1 };
	if (given)
		*options = *given;
	if (!options->weight)
		options->weight = 1;
	if (options->class_nr >= hub->options.nr_classes)
		return weir_fail(error, -EINVAL, "there is no class %u: the mux has %u",
				 options->class_nr, hub->options.nr_classes);
	if (options->weight > WEIR_SCHED_WEIGHT_MAX)
		return weir_fail(error, -EINVAL, "a weight of %u is too much: at most %u",
				 options->weight, WEIR_SCHED_WEIGHT_MAX);
	return 0;
}

static int explain(const struct weir_circuit *conn, const char *peer, uint32_t service,
		   struct weir_error *error)
{
	switch (conn->status) {
	case -ECONNREFUSED:
		return weir_fail(error, conn->status, "nobody offers service %u at %s", service,
				 peer);
	case -EAGAIN:
		return weir_fail(error, conn->status,
				 "too many wait to be accepted by service %u at %s: try again",
				 service, peer);
	case -EPERM:
		return weir_fail(error, conn->status, "who offers service %u at %s may not use "
				 "class %u", service, peer, conn->class);
	case -EDQUOT:
		return weir_fail(error, conn->status, "%s has as many connections as it may",
				 peer);
	case -ECONNRESET:
	case -ENOMEM:
		return weir_fail(error, conn->status, "no connection to %s: %s", peer,
				 weir_strerror(conn->status));
	default:
		return weir_fail(error, -EPROTO, "no connection to %s: it says %s", peer,
				 weir_strerror(conn->status));
	}
}

/* Waits until the connection is open, or has failed. With hub->lock held. */
static int wait_answer(struct weir_circuit *conn, uint64_t deadline_ns)
{
	pthread_cond_t changed;
	int rc = 0;

	weir_cond_init(&changed);
	conn->waiter = &changed;
	while (!rc && !conn->is_open && !conn->status)
		rc = weir_owner_wait(conn->owner, &changed, deadline_ns);
	conn->waiter = NULL;
	pthread_cond_destroy(&changed);
	return rc;
}

/* Asks for the connection. With hub->lock held. */
static int ask(struct weir_circuit *conn, const char *peer, uint32_t service, uint64_t deadline_ns,
	       struct weir_error *error)
{
	int rc;

	conn->service = service;
	weir_circuit_ask(conn);
	rc = wait_answer(conn, deadline_ns);
	if (!weir_list_is_empty(&conn->ask_link)) {
		/* What was never asked is not answered. */
		weir_list_del(&conn->ask_link);
		weir_circuit_finished(conn);
	}
	if (rc)
		return weir_fail(error, rc, "%s did not answer in time", peer);
	return conn->is_open ? 0 : explain(conn, peer, service, error);
}

/* With hub->lock held, which it leaves in between. @node is referenced. */
static int circuit_make(struct weir_owner *owner, struct weir_node *node,
			const struct weir_conn_options *options, uint64_t deadline_ns,
			struct weir_circuit **conn)
{
	int rc;

	for (;;) {
		rc = __atomic_load_n(&node->status, __ATOMIC_ACQUIRE);
		if (rc)
			return rc;
		rc = weir_circuit_new(owner, node, (uint8_t)options->class_nr,
				      (uint16_t)options->weight, options->ring_bytes, conn);
		if (rc != -EAGAIN)
			return rc;
		rc = weir_chunk_make(owner, deadline_ns);
		if (rc)
			return rc;
	}
}

int weir_circuit_connect(struct weir_owner *owner, const char *peer, uint32_t service,
			 const struct weir_conn_options *given, uint64_t deadline_ns,
			 struct weir_circuit **out, struct weir_error *error)
{
	struct weir_hub *hub = owner->hub;
	struct weir_conn_options options;
	struct weir_circuit *conn = NULL;
	struct weir_node *node;
	int rc = options_check(hub, &options, given, error);

	if (!rc)
		rc = weir_hub_dial(owner, peer, (uint8_t)options.class_nr, deadline_ns, &node,
				   error);
	if (rc)
		return rc;
	pthread_mutex_lock(&hub->lock);
	rc = circuit_make(owner, node, &options, deadline_ns, &conn);
	if (rc)
		weir_fail(error, rc, "no connection to %s: %s", peer, weir_strerror(rc));
	weir_node_put(node);
	if (conn)
		rc = ask(conn, peer, service, deadline_ns, error);
	if (conn && rc)
		weir_circuit_shut(conn);
	pthread_mutex_unlock(&hub->lock);
	if (!rc)
		*out = conn;
	return rc;
}
