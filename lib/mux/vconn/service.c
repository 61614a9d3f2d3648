/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Offering a service, accepting its connections, and connecting to one. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/mux/local/local.h"

static bool has_service(const struct weir_mux_local *mux, uint32_t service)
{
	const struct weir_list *at;

	for (at = mux->services.next; at != &mux->services; at = at->next)
		if (weir_list_entry(at, struct weir_mux_service, link)->service == service)
			return true;
	return false;
}

int weir_mux_service_open(struct weir_mux_account *account, uint32_t service, unsigned int backlog,
			  int fd, struct weir_mux_service **out)
{
	struct weir_mux_service *svc = calloc(1, sizeof(*svc));
	struct weir_mux_local *mux = account->mux;
	int rc = 0;

	if (!svc) {
		close(fd);
		return -ENOMEM;
	}
	*svc = (struct weir_mux_service){ .listener = { &weir_mux_local_ops },
					  .mux = mux,
					  .account = account,
					  .service = service,
					  .backlog = backlog,
					  .fd = fd };
	weir_list_init(&svc->link);
	weir_list_init(&svc->conns);
	pthread_mutex_lock(&mux->lock);
	if (!backlog)
		rc = -EINVAL;
	else if (has_service(mux, service))
		rc = -EADDRINUSE;
	else
		weir_list_add_tail(&mux->services, &svc->link);
	if (rc)
		weir_mux_service_free(svc);
	else
		*out = svc;
	pthread_mutex_unlock(&mux->lock);
	return rc;
}

void weir_mux_service_free(struct weir_mux_service *svc)
{
	weir_list_del(&svc->link);
	if (svc->fd >= 0)
		close(svc->fd);
	free(svc);
}

int weir_mux_service_accept(struct weir_mux_service *svc, struct weir_mux_vconn **out)
{
	struct weir_mux_local *mux = svc->mux;
	struct weir_mux_vconn *conn;
	int rc = -EAGAIN;

	pthread_mutex_lock(&mux->lock);
	if (!weir_list_is_empty(&svc->conns)) {
		conn = weir_list_entry(svc->conns.next, struct weir_mux_vconn, service_link);
		weir_list_del(&conn->service_link);
		svc->count--;
		*out = conn;
		rc = 0;
		/*
		 * If the caller drained the descriptor before this call, it must become readable
		 * again.
		 */
		if (svc->count)
			weir_mux_fd_signal(svc->fd);
	}
	pthread_mutex_unlock(&mux->lock);
	return rc;
}

void weir_mux_service_close(struct weir_mux_service *svc)
{
	struct weir_mux_local *mux = svc->mux;

	pthread_mutex_lock(&mux->lock);
	while (!weir_list_is_empty(&svc->conns))
		weir_mux_vconn_close(
			weir_list_entry(svc->conns.next, struct weir_mux_vconn, service_link));
	weir_mux_service_free(svc);
	pthread_mutex_unlock(&mux->lock);
}

static int options_check(const struct weir_mux_local *mux, struct weir_mux_conn_options *options,
			 const struct weir_mux_conn_options *given, struct weir_error *error)
{
	*options = (struct weir_mux_conn_options){ .class_nr = mux->options.nr_classes - 1 };
	if (given)
		*options = *given;
	if (!options->weight)
		options->weight = 1;
	if (options->class_nr >= mux->options.nr_classes)
		return weir_error_set(error, -EINVAL, "there is no class %u: the mux has %u",
				      options->class_nr, mux->options.nr_classes);
	if (options->weight > WEIR_SCHED_WEIGHT_MAX)
		return weir_error_set(error, -EINVAL, "a weight of %u is too much: at most %u",
				      options->weight, WEIR_SCHED_WEIGHT_MAX);
	return 0;
}

static int explain_refusal(const struct weir_mux_vconn *conn, const char *peer, uint32_t service,
			   struct weir_error *error)
{
	switch (conn->status) {
	case -ECONNREFUSED:
		return weir_error_set(error, conn->status, "no program offers service %u at %s",
				      service, peer);
	case -EAGAIN:
		return weir_error_set(error, conn->status,
				      "service %u at %s has too many connections waiting to be "
				      "accepted: try again",
				      service, peer);
	case -EPERM:
		return weir_error_set(error, conn->status,
				      "the tenant that offers service %u at %s may not use "
				      "class %u",
				      service, peer, conn->class);
	case -EDQUOT:
		return weir_error_set(error, conn->status, "%s is at its limit of connections",
				      peer);
	case -ECONNRESET:
	case -ENOMEM:
		return weir_error_set(error, conn->status, "no connection to %s: %s", peer,
				      weir_strerror(conn->status));
	default:
		return weir_error_set(error, -EPROTO, "no connection to %s: it says %s", peer,
				      weir_strerror(conn->status));
	}
}

/* Waits until the connection is open or has failed. With mux->lock held. */
static int wait_open_answer(struct weir_mux_vconn *conn, uint64_t deadline_ns)
{
	pthread_cond_t changed;
	int rc = 0;

	weir_mux_cond_init(&changed);
	conn->waiter = &changed;
	while (!rc && !weir_mux_vconn_was_opened(conn) && !conn->status)
		rc = weir_mux_account_wait(conn->account, &changed, deadline_ns);
	conn->waiter = NULL;
	pthread_cond_destroy(&changed);
	return rc;
}

/* Sends OPEN and waits for the answer. With mux->lock held. */
static int request_open(struct weir_mux_vconn *conn, const char *peer, uint32_t service,
			uint64_t deadline_ns, struct weir_error *error)
{
	int rc;

	conn->service = service;
	weir_mux_vconn_send_open(conn);
	rc = wait_open_answer(conn, deadline_ns);
	if (!weir_list_is_empty(&conn->open_link)) {
		/* The OPEN was never sent, so no answer will come. */
		weir_list_del(&conn->open_link);
		weir_mux_vconn_peer_finished(conn);
	}
	if (rc)
		return weir_error_set(error, rc, "%s did not answer in time", peer);
	return weir_mux_vconn_was_opened(conn) ? 0 : explain_refusal(conn, peer, service, error);
}

/*
 * Retries until the account has rings. With mux->lock held; drops it while waiting. @remote is
 * referenced.
 */
static int make_vconn(struct weir_mux_account *account, struct weir_mux_remote *remote,
		      const struct weir_mux_conn_options *options, uint64_t deadline_ns,
		      struct weir_mux_vconn **conn)
{
	int rc;

	for (;;) {
		rc = __atomic_load_n(&remote->status, __ATOMIC_ACQUIRE);
		if (rc)
			return rc;
		rc = weir_mux_vconn_new(account, remote, (uint8_t)options->class_nr,
					(uint16_t)options->weight, options->ring_bytes, conn);
		if (rc != -EAGAIN)
			return rc;
		rc = weir_mux_ring_slab_add(account, deadline_ns);
		if (rc)
			return rc;
	}
}

int weir_mux_vconn_connect(struct weir_mux_account *account, const char *peer, uint32_t service,
			   const struct weir_mux_conn_options *given, uint64_t deadline_ns,
			   struct weir_mux_vconn **out, struct weir_error *error)
{
	struct weir_mux_local *mux = account->mux;
	struct weir_mux_conn_options options;
	struct weir_mux_vconn *conn = NULL;
	struct weir_mux_remote *remote;
	int rc = options_check(mux, &options, given, error);

	if (!rc)
		rc = weir_mux_remote_connect(account, peer, (uint8_t)options.class_nr, deadline_ns,
					     &remote, error);
	if (rc)
		return rc;
	pthread_mutex_lock(&mux->lock);
	rc = make_vconn(account, remote, &options, deadline_ns, &conn);
	if (rc)
		weir_error_set(error, rc, "no connection to %s: %s", peer, weir_strerror(rc));
	weir_mux_remote_put(remote);
	if (conn)
		rc = request_open(conn, peer, service, deadline_ns, error);
	if (conn && rc)
		weir_mux_vconn_close(conn);
	pthread_mutex_unlock(&mux->lock);
	if (!rc)
		*out = conn;
	return rc;
}
