/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <signal.h>

#include "lib/deliver.h"
#include "lib/error.h"
#include "lib/pump.h"
#include "lib/session.h"
#include "lib/thread.h"

/*
 * While callers poll for themselves the thread does not arm the CQ of receives, or every
 * answer would wake it for nothing. It naps instead, and looks.
 */
#define NAP_MS 1

void weir_thread_tell_down(struct weir_session *session)
{
	int status;
	bool due;

	weir_session_lock(session);
	due = session->down_due;
	session->down_due = false;
	status = session->down_status ? session->down_status : -ENOTCONN;
	weir_session_unlock(session);
	if (due)
		session->options.on_down(session->options.arg, status);
}

/* Whether somebody polls, or has polled, for what the thread would be woken for. */
static bool may_nap(struct weir_session *session)
{
	bool spun = __atomic_exchange_n(&session->spun, false, __ATOMIC_ACQ_REL);

	return (spun || __atomic_load_n(&session->spinners, __ATOMIC_ACQUIRE)) &&
	       !session->sleepers;
}

static void *thread_run(void *arg)
{
	struct weir_session *session = arg;
	bool nap = false, stopping = false;

	while (!stopping) {
		weir_pump_step(session, nap ? NAP_MS : -1, false);
		weir_thread_tell_down(session);
		weir_session_lock(session);
		stopping = session->stopping;
		nap = may_nap(session);
		if (!nap)
			weir_pump_leave(session, true); /* before it sleeps for good */
		weir_deliver(session);
	}
	return NULL;
}

int weir_thread_create(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg,
		       struct weir_error *error)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return weir_fail(error, -ENOMEM, "no thread: %s", weir_strerror(-rc));
	pthread_setname_np(*thread, name);
	return 0;
}

/* The first step arms the CQs: what came in the meantime has raised no event. */
int weir_thread_start(struct weir_session *session, struct weir_error *error)
{
	int rc;

	weir_pump_step(session, 0, true);
	if (session->options.no_thread)
		return 0;
	session->has_thread = true;
	rc = weir_thread_create(&session->thread, "weir-session", thread_run, session, error);
	if (rc)
		session->has_thread = false;
	return rc;
}

void weir_thread_stop(struct weir_session *session)
{
	weir_session_lock(session);
	session->stopping = true;
	session->down_due = false;
	weir_session_unlock(session);
	if (!session->has_thread)
		return;
	weir_pump_kick(session);
	pthread_join(session->thread, NULL);
	session->has_thread = false;
}
