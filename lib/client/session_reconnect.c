/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <sodium.h>

#include "core/link/reconnect.h"
#include "lib/base/clock.h"
#include "lib/client/request/dispatch.h"
#include "lib/base/error.h"
#include "lib/client/session_reconnect.h"
#include "lib/client/channel/pump.h"
#include "lib/client/session.h"
#include "lib/base/thread.h"

void weir_session_reconnect_give_up(struct weir_session *session, int status)
{
	unsigned int i;

	if (session->state == WEIR_SESSION_OPEN)
		weir_session_set_state(session, WEIR_SESSION_LOST);
	if (!session->down_status)
		session->down_status = status;
	for (i = 0; i < session->nr_links; i++)
		weir_session_link_fail(&session->links[i]);
	weir_pump_kick(session);
}

static struct weir_session_link *find_broken_link(struct weir_session *session)
{
	unsigned int i;

	for (i = 0; i < session->nr_links; i++) {
		if (session->links[i].core.state == WEIR_LINK_BROKEN)
			return &session->links[i];
	}
	return NULL;
}

/* Waits, unless the session closes. With nic->lock held, released while asleep. */
static void sleep_unless_closing(struct weir_session *session, uint64_t until_ns)
{
	while (!weir_session_is_closing(session) && weir_now_ns() < until_ns)
		weir_waitqueue_wait(&session->reconnect_wait, session->nic, until_ns);
}

/* Posts and arms for the other channels; the session's driver delivers the callbacks. */
static void poll_and_rearm(struct weir_session *session)
{
	weir_pump_poll(session, weir_now_ns());
	weir_pump_leave(session, false);
	weir_dispatch_later(session);
}

static int connect_broken_link(struct weir_session *session, uint16_t number, uint64_t deadline_ns)
{
	int rc;

	weir_session_unlock(session);
	rc = weir_session_connect(session, number, (struct sockaddr *)&session->address,
				  deadline_ns, NULL);
	weir_session_lock(session);
	if (!rc)
		return 0;
	/* The QP is gone; its completions must not accumulate in the CQ. */
	weir_session_links_poll(session, session->links[number].cq, weir_now_ns());
	poll_and_rearm(session);
	return rc;
}

/* With nic->lock held, released meanwhile. */
static void reconnect_link(struct weir_session *session, struct weir_session_link *link)
{
	uint64_t now_ns = weir_now_ns(),
		 deadline_ns = weir_after_ns(now_ns, session->options.timeout_ns);
	struct weir_reconnect attempts;
	int rc;

	weir_session_destroy_qp(session, link->number);
	poll_and_rearm(session);
	weir_reconnect_begin(&attempts, deadline_ns, now_ns);
	while ((rc = connect_broken_link(session, link->number, deadline_ns)) &&
	       link->core.state == WEIR_LINK_BROKEN &&
	       weir_reconnect_failed(&attempts, rc, randombytes_random(), weir_now_ns()))
		sleep_unless_closing(session, attempts.next_ns);
	if (rc) {
		weir_session_reconnect_give_up(session, rc);
		return;
	}
	session->counters->reconnects++;
	if (!link->number)
		weir_messages_flush(session);
	weir_pump_pull(session);
	weir_pump_kick(session); /* the session's driver arms the CQs for the posts above */
}

static void *run_reconnect_thread(void *arg)
{
	struct weir_session *session = arg;
	struct weir_session_link *link;

	weir_session_lock(session);
	while (!weir_session_is_closing(session)) {
		link = find_broken_link(session);
		if (link && session->state == WEIR_SESSION_OPEN)
			reconnect_link(session, link);
		else
			weir_waitqueue_wait(&session->reconnect_wait, session->nic, UINT64_MAX);
	}
	weir_session_unlock(session);
	return NULL;
}

void weir_session_reconnect_wake(struct weir_session *session)
{
	int rc;

	if (!session->has_reconnect_thread) {
		rc = weir_thread_create(&session->reconnect_thread, "weir-reconnect",
					run_reconnect_thread, session, NULL);
		if (rc)
			weir_session_reconnect_give_up(session, rc);
		session->has_reconnect_thread = !rc;
	}
	weir_waitqueue_wake_all(&session->reconnect_wait);
}

void weir_session_reconnect_stop(struct weir_session *session)
{
	if (!session->has_reconnect_thread)
		return;
	weir_session_lock(session);
	weir_waitqueue_wake_all(&session->reconnect_wait);
	weir_session_unlock(session);
	pthread_join(session->reconnect_thread, NULL);
	session->has_reconnect_thread = false;
}
