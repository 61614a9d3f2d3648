/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * OPEN messages of other muxes. If the service's account has free rings, the poller answers at
 * once. Otherwise a slab must be registered first, which takes some devices milliseconds. The
 * poller serves everybody and must not wait, so the account starts a thread, which exits when no
 * OPEN is pending.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/mux/local/local.h"
#include "lib/base/thread.h"

/* @remote is referenced. @deadline_ns: estimate of the opener's deadline. Guarded by mux->lock. */
struct mux_pending_open {
	struct weir_list link;
	struct weir_mux_remote *remote;
	uint8_t class;
	struct wire_mux_control message;
	uint64_t deadline_ns;
};

static struct weir_mux_service *find_service(struct weir_mux_local *mux, uint32_t service)
{
	struct weir_list *at;

	for (at = mux->services.next; at != &mux->services; at = at->next) {
		struct weir_mux_service *svc = weir_list_entry(at, struct weir_mux_service, link);

		if (svc->service == service)
			return svc;
	}
	return NULL;
}

/*
 * Return: 0, or the status for REFUSE. @lacking: receives the account without free rings, or
 * NULL.
 */
static int answer_open(struct weir_mux_remote *remote, uint8_t class,
		       const struct wire_mux_control *m, struct weir_mux_account **lacking)
{
	struct weir_mux_service *svc = find_service(remote->mux, m->to);
	struct weir_mux_vconn *conn;
	int rc;

	*lacking = NULL;
	if (!svc)
		return -ECONNREFUSED;
	if (svc->count >= svc->backlog)
		return -EAGAIN;
	rc = weir_mux_vconn_new(svc->account, remote, class, 1, m->value, &conn);
	if (rc == -EAGAIN)
		*lacking = svc->account;
	if (rc)
		return rc;
	weir_mux_vconn_set_window(conn, m);
	__atomic_fetch_or(&conn->ctrls, WEIR_MUX_CTRL_ACCEPT, __ATOMIC_SEQ_CST);
	weir_mux_vconn_notify(conn);
	weir_list_add_tail(&svc->conns, &conn->service_link);
	svc->count++;
	weir_mux_fd_signal(svc->fd);
	return 0;
}

static void free_pending(struct mux_pending_open *o)
{
	o->remote->nr_pending_opens--;
	weir_mux_remote_put(o->remote);
	free(o);
}

static void *answer_pending_opens(void *account);

/* Queues @o until @account has rings. */
static int queue_pending(struct weir_mux_account *account, struct mux_pending_open *o)
{
	pthread_t thread;

	if (!account->has_open_thread) {
		if (weir_thread_create(&thread, "weir-openings", answer_pending_opens, account,
				       NULL))
			return -ENOMEM;
		pthread_detach(thread);
		account->has_open_thread = true;
	}
	weir_list_add_tail(&account->pending_opens, &o->link);
	return 0;
}

/*
 * Retries until rings are there. If the service now belongs to another account, the OPEN moves
 * to the other's queue and @is_left is set. Return: as answer_open().
 */
static int serve_pending(struct weir_mux_account *account, struct mux_pending_open *o,
			 bool *is_left)
{
	struct weir_mux_account *lacking;
	int rc;

	do {
		rc = answer_open(o->remote, o->class, &o->message, &lacking);
		if (lacking && lacking != account) {
			rc = queue_pending(lacking, o);
			*is_left = !rc;
			return rc;
		}
		if (lacking)
			rc = weir_mux_ring_slab_add(account, o->deadline_ns);
	} while (lacking && !rc && !__atomic_load_n(&o->remote->status, __ATOMIC_ACQUIRE));
	return rc;
}

/* Sends REFUSE, unless the remote is lost. */
static void refuse_pending(const struct mux_pending_open *o, int status)
{
	int rc = 0;

	if (!__atomic_load_n(&o->remote->status, __ATOMIC_ACQUIRE))
		rc = weir_mux_vconn_refuse(o->remote, o->class, o->message.from, status);
	if (rc)
		weir_mux_remote_fail(o->remote, rc);
}

static void *answer_pending_opens(void *arg)
{
	struct weir_mux_account *account = arg;
	struct weir_mux_local *mux = account->mux;

	pthread_mutex_lock(&mux->lock);
	while (!weir_list_is_empty(&account->pending_opens)) {
		struct mux_pending_open *o =
			weir_list_entry(account->pending_opens.next, struct mux_pending_open, link);
		bool is_left = false;
		int rc = 0;

		weir_list_del(&o->link);
		if (!__atomic_load_n(&o->remote->status, __ATOMIC_ACQUIRE))
			rc = serve_pending(account, o, &is_left);
		if (rc)
			refuse_pending(o, rc);
		if (!is_left)
			free_pending(o);
	}
	account->has_open_thread = false;
	pthread_cond_broadcast(&account->changed);
	pthread_mutex_unlock(&mux->lock);
	return NULL;
}

static int new_pending(struct weir_mux_account *account, struct weir_mux_qp *qp,
		       const struct wire_mux_control *m)
{
	struct mux_pending_open *o = malloc(sizeof(*o));
	int rc;

	if (!o)
		return -ENOMEM;
	*o = (struct mux_pending_open){ .remote = qp->remote,
					.class = qp->class,
					.message = *m,
					.deadline_ns = weir_mux_local_deadline_ns(account->mux) };
	weir_list_init(&o->link);
	o->remote->refs++;
	o->remote->nr_pending_opens++;
	rc = queue_pending(account, o);
	if (rc)
		free_pending(o);
	return rc;
}

int weir_mux_pending_open_input(struct weir_mux_qp *qp, const struct wire_mux_control *m)
{
	struct weir_mux_remote *remote = qp->remote;
	struct weir_mux_account *lacking;
	int rc = answer_open(remote, qp->class, m, &lacking);

	/* A peer within WIRE_MUX_OPENS_MAX never has so many unanswered. */
	if (lacking && remote->nr_pending_opens == WEIR_MUX_REFUSALS_MAX)
		return -EPROTO;
	if (lacking)
		rc = new_pending(lacking, qp, m);
	return rc ? weir_mux_vconn_refuse(remote, qp->class, m->from, rc) : 0;
}
