/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/client/request/dispatch.h"
#include "lib/base/error.h"
#include "lib/client/channel/pump.h"
#include "lib/client/channel/scq.h"
#include "lib/client/session.h"
#include "lib/base/thread.h"
#include "lib/client/session_thread.h"
#include "lib/base/yield.h"

#define EVENT_NS 20000 /* interval of the checks beside the shared CQs */

static pthread_mutex_t scqs_lock = PTHREAD_MUTEX_INITIALIZER; /* taken before any NIC's lock */

/* Down to scq_run(): with nic->lock held, which may be given up meanwhile. */

static void progress_session(struct weir_scq *scq, struct weir_session *session)
{
	scq->current = session;
	weir_pump_poll(session, weir_now_ns());
	weir_dispatch_locked(session);
	scq->current = NULL;
	weir_waitqueue_wake_all(&scq->left);
}

/* Handling one session may make others due without end; those wait for the next round. */
static void progress_due_sessions(struct weir_scq *scq)
{
	unsigned int turns = scq->users;

	for (; turns && !weir_list_is_empty(&scq->due); turns--) {
		struct weir_session *session =
			weir_list_entry(scq->due.next, struct weir_session, scq_due);

		weir_list_del(&session->scq_due);
		progress_session(scq, session);
	}
}

static void poll_cqs(struct weir_scq *scq, uint64_t now_ns)
{
	unsigned int i;

	weir_window_tick(&scq->nic->window, now_ns);
	for (i = 0; i < scq->nr_cqs; i++) {
		if (scq->cqs[i].in_flight)
			weir_session_links_poll(NULL, &scq->cqs[i], now_ns);
	}
	progress_due_sessions(scq);
}

/* Timers, the connection manager and kicks arrive by the session's descriptor. */
static void take_session_events(struct weir_scq *scq, struct weir_session *session)
{
	scq->current = session;
	weir_session_unlock(session);
	weir_pump_sleep(session, 0);
	weir_session_call_on_down(session);
	weir_session_lock(session);
	progress_session(scq, session);
}

/* Rotates to the next session; NULL if the thread does not drive it, or there is none. */
static struct weir_session *next_session(struct weir_scq *scq)
{
	struct weir_session *session;

	if (weir_list_is_empty(&scq->sessions))
		return NULL;
	session = weir_list_entry(scq->sessions.next, struct weir_session, scq);
	weir_list_del(&session->scq);
	weir_list_add_tail(&scq->sessions, &session->scq);
	return session->driver == WEIR_SESSION_SCQ_THREAD ? session : NULL;
}

/*
 * Polls the messages of each session, which is cheap, but takes the events of only one: system
 * calls for many sessions would take all of the thread's time. Sessions attached meanwhile wait for
 * the next round.
 */
static void visit_all_sessions(struct weir_scq *scq)
{
	struct weir_session *session;
	unsigned int turns;

	for (turns = scq->users; turns; turns--) {
		session = next_session(scq);
		if (session)
			progress_session(scq, session);
	}
	session = next_session(scq);
	if (session)
		take_session_events(scq, session);
}

static void *scq_run(void *arg)
{
	struct weir_scq *scq = arg;
	uint64_t now_ns = weir_now_ns(), event_ns = now_ns;

	weir_combine_lock(scq->nic);
	while (!scq->is_stopping) {
		poll_cqs(scq, now_ns);
		if (now_ns >= event_ns) {
			visit_all_sessions(scq);
			event_ns = now_ns + EVENT_NS;
		}
		weir_combine_unlock(scq->nic);
		weir_yield(&now_ns);
		weir_combine_lock(scq->nic);
	}
	weir_combine_unlock(scq->nic);
	return NULL;
}

static void scq_free(struct weir_scq *scq)
{
	unsigned int i;

	for (i = 0; i < scq->nr_cqs; i++)
		ibv_destroy_cq(scq->cqs[i].ibv);
	free(scq);
}

static int create_cqs(struct weir_scq *scq, const struct weir_session_tuning *t, uint32_t entries,
		      struct weir_error *error)
{
	for (; scq->nr_cqs < t->cqs; scq->nr_cqs++) {
		struct weir_cq *cq = &scq->cqs[scq->nr_cqs];

		*cq = (struct weir_cq){ .scq = scq, .wcs_max = t->poll_wcs_max };
		cq->ibv = ibv_create_cq(scq->nic->context, (int)entries, NULL, NULL,
					weir_nic_next_vector(scq->nic, t->comp_vectors));
		if (!cq->ibv)
			return weir_cq_explain(error, entries);
	}
	scq->entries = entries;
	return 0;
}

static int scq_create(struct weir_nic *nic, const struct weir_session_tuning *t, uint32_t entries,
		      struct weir_error *error)
{
	struct weir_scq *scq = calloc(1, sizeof(*scq));
	int rc;

	if (!scq)
		return weir_error_set(error, -ENOMEM, "out of memory");
	scq->nic = nic;
	weir_list_init(&scq->sessions);
	weir_list_init(&scq->due);
	rc = create_cqs(scq, t, entries, error);
	if (!rc)
		rc = weir_thread_create(&scq->thread, "weir-scq", scq_run, scq, error);
	if (rc)
		scq_free(scq);
	else
		nic->scq = scq;
	return rc;
}

/* After the last session has detached. */
static void scq_destroy(struct weir_scq *scq)
{
	weir_combine_lock(scq->nic);
	scq->is_stopping = true;
	weir_combine_unlock(scq->nic);
	pthread_join(scq->thread, NULL);
	scq->nic->scq = NULL;
	scq_free(scq);
}

/* Makes room for @entries more in each CQ. With nic->lock held. */
static int reserve_entries(struct weir_scq *scq, uint32_t entries, struct weir_error *error)
{
	uint32_t wanted = scq->taken + entries;
	unsigned int i;

	for (i = 0; i < scq->nr_cqs && wanted > scq->entries; i++) {
		errno = ibv_resize_cq(scq->cqs[i].ibv, (int)wanted);
		if (errno)
			return weir_cq_explain(error, wanted);
	}
	if (wanted > scq->entries)
		scq->entries = wanted;
	scq->taken = wanted;
	return 0;
}

/* With nic->lock held. */
static int add_session(struct weir_scq *scq, struct weir_session *session, struct weir_error *error)
{
	unsigned int i, channels = session->options.channels;
	int rc = reserve_entries(scq, weir_cq_entries(session, channels), error);

	if (rc)
		return rc;
	session->nr_cqs = channels < scq->nr_cqs ? channels : scq->nr_cqs;
	for (i = 0; i < session->nr_cqs; i++)
		session->cqs[i] = &scq->cqs[scq->next++ % scq->nr_cqs];
	weir_list_add_tail(&scq->sessions, &session->scq);
	scq->users++;
	return 0;
}

int weir_scq_attach(struct weir_session *session, struct weir_error *error)
{
	struct weir_nic *nic = session->nic;
	int rc = 0;

	pthread_mutex_lock(&scqs_lock);
	if (!nic->scq)
		rc = scq_create(nic, &session->tuning,
				weir_cq_entries(session, session->options.channels), error);
	if (!rc) {
		weir_combine_lock(nic);
		rc = add_session(nic->scq, session, error);
		weir_combine_unlock(nic);
		if (!nic->scq->users)
			scq_destroy(nic->scq);
	}
	pthread_mutex_unlock(&scqs_lock);
	return rc;
}

void weir_scq_detach(struct weir_session *session)
{
	struct weir_scq *scq = session->cqs[0]->scq;
	unsigned int users;

	pthread_mutex_lock(&scqs_lock);
	weir_session_lock(session);
	weir_list_del(&session->scq);
	weir_list_del(&session->scq_due);
	scq->taken -= weir_cq_entries(session, session->options.channels);
	users = --scq->users;
	weir_session_unlock(session);
	if (!users)
		scq_destroy(scq);
	pthread_mutex_unlock(&scqs_lock);
}

void weir_scq_start_driving(struct weir_session *session)
{
	weir_session_lock(session);
	session->driver = WEIR_SESSION_SCQ_THREAD;
	session->is_watched = true;
	weir_session_unlock(session);
}

void weir_scq_stop_driving(struct weir_session *session)
{
	struct weir_scq *scq = session->cqs[0]->scq;

	weir_session_lock(session);
	session->driver = WEIR_SESSION_SCQ_LEAVING;
	session->is_watched = false;
	while (scq->current == session)
		weir_waitqueue_wait(&scq->left, session->nic, UINT64_MAX);
	weir_list_del(&session->scq_due);
	weir_session_unlock(session);
}

void weir_scq_due(struct weir_session *session)
{
	struct weir_scq *scq = session->cqs[0]->scq;

	if (session->driver != WEIR_SESSION_SCQ_THREAD)
		weir_pump_kick(session);
	else if (weir_list_is_empty(&session->scq_due))
		weir_list_add_tail(&scq->due, &session->scq_due);
}
