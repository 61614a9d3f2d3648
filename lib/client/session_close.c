/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Closing a session: unposted requests are canceled, posted requests may complete for a while, and
 * the donor learns that the session closes. Then the QPs are failed, which flushes the rest. No
 * request is left when the QPs are destroyed.
 */
#include "lib/base/clock.h"
#include "lib/client/request/dispatch.h"
#include "lib/client/session_reconnect.h"
#include "lib/client/channel/pump.h"
#include "lib/client/session.h"
#include "lib/client/session_thread.h"

/* Time for posted requests to complete. */
#define CLOSE_GRACE_NS (1 * WEIR_NS_PER_S)
#define SCQ_POLL_MS 1

/* The following functions: with nic->lock held. */
static void cancel_unposted(struct weir_session *session)
{
	struct weir_list *at;

	for (at = session->live_requests.next; at != &session->live_requests; at = at->next)
		weir_engine_cancel(&session->engine,
				   &weir_list_entry(at, struct weir_request, link)->req);
	weir_pump_pull(session);
}

/* A shared CQ raises no events. */
static int sleep_ms(const struct weir_session *session, uint64_t deadline_ns)
{
	int ms = weir_poll_ms(deadline_ns);

	return session->options.polling == WEIR_POLLING_SCQ && ms > SCQ_POLL_MS ? SCQ_POLL_MS : ms;
}

/* Polls until @is_over returns true, or until @deadline_ns. */
static void poll_until(struct weir_session *session, bool (*is_over)(const struct weir_session *),
		       uint64_t deadline_ns)
{
	while (!is_over(session) && weir_now_ns() < deadline_ns) {
		weir_session_unlock(session);
		weir_pump_step(session, sleep_ms(session, deadline_ns), true);
		weir_session_lock(session);
	}
}

/* An accepted message is sent even if the session closes. */
static bool has_nothing_under_way(const struct weir_session *session)
{
	return weir_session_is_down(session) ||
	       (weir_engine_is_idle(&session->engine) && weir_messages_are_sent(session));
}

static void fail_links(struct weir_session *session)
{
	unsigned int i;

	for (i = 0; i < session->nr_links; i++)
		weir_session_link_fail(&session->links[i]);
	weir_pump_poll(session, weir_now_ns());
}

/*
 * For a device that never delivers its flushes. Requests are done only once the device, without the
 * QPs, can no longer touch memory.
 */
static void forget_wrs(struct weir_session *session)
{
	unsigned int i;

	for (i = 0; i < session->nr_links; i++) {
		weir_session_destroy_qp(session, (uint16_t)i);
		weir_session_link_forget(&session->links[i]);
	}
	weir_pump_poll(session, weir_now_ns());
}

void weir_session_close(struct weir_session *session)
{
	uint64_t deadline_ns;

	if (!session)
		return;
	weir_session_thread_stop(session);
	weir_session_reconnect_stop(session);
	deadline_ns = weir_now_ns() + CLOSE_GRACE_NS;
	weir_session_lock(session);
	weir_calls_down(session, -ECANCELED);
	cancel_unposted(session);
	weir_messages_close(session);
	weir_pump_poll(session, weir_now_ns());
	weir_pump_leave(session, true); /* arms for the message */
	poll_until(session, has_nothing_under_way, deadline_ns);
	fail_links(session);
	poll_until(session, weir_session_is_down, deadline_ns + CLOSE_GRACE_NS);
	if (!weir_session_is_down(session))
		forget_wrs(session);
	weir_dispatch(session);

	weir_session_lock(session);
	while (session->dispatching || session->posting)
		weir_waitqueue_wait(&session->idle, session->nic, UINT64_MAX);
	weir_pump_pull(session);
	weir_session_unlock(session);
	weir_session_free(session);
}
