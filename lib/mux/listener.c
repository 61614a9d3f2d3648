/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Services: offering one, and connecting to one. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/mux/mux.h"

static bool is_offered(const struct weir_mux *mux, uint32_t service)
{
	const struct weir_list *at;

	for (at = mux->listeners.next; at != &mux->listeners; at = at->next)
		if (weir_list_entry(at, struct weir_listener, link)->service == service)
			return true;
	return false;
}

int weir_mux_listen(struct weir_mux *mux, uint32_t service, unsigned int backlog,
		    struct weir_listener **out)
{
	struct weir_listener *listener;
	int rc = 0;

	if (!backlog)
		return -EINVAL;
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return -ENOMEM;
	*listener = (struct weir_listener){ .mux = mux, .service = service, .backlog = backlog,
					    .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	weir_list_init(&listener->link);
	weir_list_init(&listener->conns);
	pthread_mutex_lock(&mux->lock);
	if (listener->fd < 0)
		rc = -ENOMEM;
	else if (is_offered(mux, service))
		rc = -EADDRINUSE;
	else
		weir_list_add_tail(&mux->listeners, &listener->link);
	pthread_mutex_unlock(&mux->lock);
	if (rc)
		weir_listener_free(listener);
	else
		*out = listener;
	return rc;
}

void weir_listener_free(struct weir_listener *listener)
{
	weir_list_del(&listener->link);
	if (listener->fd >= 0)
		close(listener->fd);
	free(listener);
}

int weir_listener_accept(struct weir_listener *listener, struct weir_conn **out)
{
	struct weir_mux *mux = listener->mux;
	struct weir_conn *conn;
	int rc = -EAGAIN;

	pthread_mutex_lock(&mux->lock);
	if (weir_list_is_empty(&listener->conns)) {
		weir_eventfd_take(listener->fd);
	} else {
		conn = weir_list_entry(listener->conns.next, struct weir_conn, listener_link);
		weir_list_del(&conn->listener_link);
		listener->count--;
		*out = conn;
		rc = 0;
	}
	pthread_mutex_unlock(&mux->lock);
	return rc;
}

int weir_listener_fd(const struct weir_listener *listener)
{
	return listener->fd;
}

void weir_listener_close(struct weir_listener *listener)
{
	struct weir_mux *mux = listener->mux;

	pthread_mutex_lock(&mux->lock);
	while (!weir_list_is_empty(&listener->conns))
		weir_conn_shut(weir_list_entry(listener->conns.next, struct weir_conn,
					       listener_link));
	weir_listener_free(listener);
	pthread_mutex_unlock(&mux->lock);
}

static int options_check(const struct weir_mux *mux, struct weir_conn_options *options,
			 const struct weir_conn_options *given, struct weir_error *error)
{
	*options = (struct weir_conn_options){ .class_nr = mux->options.nr_classes - 1 };
	if (given)
		*options = *given;
	if (!options->weight)
		options->weight = 1;
	if (options->class_nr >= mux->options.nr_classes)
		return weir_fail(error, -EINVAL, "there is no class %u: the mux has %u",
				 options->class_nr, mux->options.nr_classes);
	if (options->weight > WEIR_SCHED_WEIGHT_MAX)
		return weir_fail(error, -EINVAL, "a weight of %u is too much: at most %u",
				 options->weight, WEIR_SCHED_WEIGHT_MAX);
	return 0;
}

static int explain(const struct weir_conn *conn, const char *peer, uint32_t service,
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

/* Asks for the connection and waits for the answer. With mux->lock held. */
static int ask(struct weir_conn *conn, const char *peer, uint32_t service, uint64_t deadline_ns,
	       struct weir_error *error)
{
	const struct timespec until = weir_timespec(deadline_ns);
	struct weir_mux *mux = conn->mux;

	conn->service = service;
	__atomic_fetch_or(&conn->chores, WEIR_CHORE_OPEN, __ATOMIC_ACQ_REL);
	weir_conn_news(conn);
	while (!conn->is_open && !conn->status)
		if (pthread_cond_timedwait(&mux->changed, &mux->lock, &until) == ETIMEDOUT)
			return weir_fail(error, -ETIMEDOUT, "%s did not answer in time", peer);
	return conn->is_open ? 0 : explain(conn, peer, service, error);
}

int weir_mux_connect(struct weir_mux *mux, const char *peer, uint32_t service,
		     const struct weir_conn_options *given, struct weir_conn **out,
		     struct weir_error *error)
{
	uint64_t deadline_ns = weir_after_ns(weir_now_ns(), mux->options.timeout_ns);
	struct weir_conn_options options;
	struct weir_conn *conn = NULL;
	struct weir_node *node;
	int rc = options_check(mux, &options, given, error);

	if (!rc)
		rc = weir_mux_dial(mux, peer, (uint8_t)options.class_nr, &node, error);
	if (rc)
		return rc;
	pthread_mutex_lock(&mux->lock);
	rc = __atomic_load_n(&node->status, __ATOMIC_ACQUIRE);
	if (!rc)
		rc = weir_conn_new(node, (uint8_t)options.class_nr, (uint16_t)options.weight,
				   &conn);
	if (rc)
		weir_fail(error, rc, "no connection to %s: %s", peer, weir_strerror(rc));
	weir_node_put(node);
	if (conn)
		rc = ask(conn, peer, service, deadline_ns, error);
	if (conn && rc)
		weir_conn_shut(conn);
	pthread_mutex_unlock(&mux->lock);
	if (!rc)
		*out = conn;
	return rc;
}
