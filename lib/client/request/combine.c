/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sessions with requests to post are active. A combiner posts one chain at a time and then
 * gives the lock back, so that another thread may continue. If none does, the combiner continues.
 */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/client/request/dispatch.h"
#include "lib/base/futex.h"
#include "lib/client/channel/pump.h"
#include "lib/client/request/request.h"
#include "lib/client/request/combine.h"
#include "lib/client/session.h"

/* A combining thread delivers its own completions in its first chains only. */
#define OWN_ROUNDS_MAX 16

/* Down to run_combiner(): with nic->lock held. */
static void admit_to_session(struct weir_nic *nic, struct weir_request *request)
{
	struct weir_session *session = request->session;

	weir_combine_activate(&nic->combine, &session->active);
	weir_request_admit(request);
}

void weir_combine_drain_inbox(struct weir_nic *nic)
{
	struct weir_inbox_node *node = weir_inbox_take(&nic->combine.inbox), *next;

	for (; node; node = next) {
		struct weir_request *request = container_of(node, struct weir_request, node);

		next = node->next;
		if (request->session)
			admit_to_session(nic, request);
		else
			weir_session_link_end_post(
				container_of(request, struct weir_session_link, returned));
	}
}

static void poll_and_dispatch(struct weir_session *session, uint64_t now_ns)
{
	weir_pump_poll_sends(session, now_ns);
	weir_pump_leave_to_waiters(session);
	weir_dispatch_locked(session);
}

/* Lends the lanes of @session, if threads want the lock. The caller unlocks next. */
static inline void offer_lanes(struct weir_nic *nic, struct weir_session *session)
{
	if (__atomic_load_n(&nic->crowd, __ATOMIC_RELAXED))
		weir_lanes_offer(session);
}

/*
 * Serves one session, if any is active. May give the lock up meanwhile. Return: true if the caller
 * holds the lock.
 */
static bool run_first_session(struct weir_nic *nic, const struct weir_session *mine)
{
	struct weir_list *link = weir_combine_next(&nic->combine);
	struct weir_session *session;
	enum weir_pump_step step;

	if (!link)
		return true;
	session = weir_list_entry(link, struct weir_session, active);
	step = weir_pump_chain(session);
	if (step == WEIR_PUMP_UNLOCKED)
		return false;
	if (step == WEIR_PUMP_MORE) {
		weir_combine_activate(&nic->combine, link);
	} else if (session == mine) {
		poll_and_dispatch(session, weir_now_ns());
		offer_lanes(nic, session);
	} else {
		weir_pump_leave_to_waiters(session);
		weir_dispatch_later(session);
		offer_lanes(nic, session);
	}
	return true;
}

static void wake_words(uint32_t *const words[], unsigned int count)
{
	while (count)
		weir_futex_wake(words[--count], INT_MAX);
}

void weir_combine_wake(struct weir_nic *nic, uint32_t *word)
{
	unsigned int i;

	for (i = 0; i < nic->nr_wakes; i++) {
		if (nic->wakes[i] == word)
			return;
	}
	if (i == WEIR_WAKES_MAX) {
		wake_words(nic->wakes, i);
		nic->nr_wakes = 0;
	}
	nic->wakes[nic->nr_wakes++] = word;
}

static void unlock_and_wake(struct weir_nic *nic)
{
	unsigned int count = nic->nr_wakes;
	uint32_t *words[WEIR_WAKES_MAX];

	memcpy(words, nic->wakes, count * sizeof(*words));
	nic->nr_wakes = 0;
	weir_mutex_unlock(&nic->lock);
	wake_words(words, count);
}

void weir_combine_release(struct weir_nic *nic)
{
	if (nic->nr_wakes)
		unlock_and_wake(nic);
	else
		weir_mutex_unlock(&nic->lock);
}

/* Gives the lock back. Return: as weir_combine_may_leave(). */
static bool unlock_and_may_leave(struct weir_nic *nic)
{
	bool has_more = weir_combine_has_more(&nic->combine);

	weir_combine_release(nic);
	return weir_combine_may_leave(&nic->combine.inbox, has_more);
}

/* Serves while there is work and no other thread does. Gives the lock back. */
static void run_combiner(struct weir_nic *nic, const struct weir_session *mine)
{
	int rounds = 0;

	do {
		if (run_first_session(nic, rounds++ < OWN_ROUNDS_MAX ? mine : NULL) &&
		    unlock_and_may_leave(nic))
			return;
	} while (weir_combine_trylock(nic));
}

void weir_combine_lock(struct weir_nic *nic)
{
	weir_mutex_lock(&nic->lock);
	weir_lanes_recall(nic);
	weir_combine_drain_inbox(nic);
}

bool weir_combine_lock_unless_lent(struct weir_session *session)
{
	struct weir_nic *nic = session->nic;

	if (weir_lanes_are_lent(session))
		return false;
	weir_mutex_lock(&nic->lock);
	if (weir_lanes_are_lent(session)) { /* while the caller waited for the lock */
		weir_combine_unlock(nic);
		return false;
	}
	weir_lanes_recall(nic);
	weir_combine_drain_inbox(nic);
	return true;
}

void weir_combine_unlock(struct weir_nic *nic)
{
	if (!unlock_and_may_leave(nic) && weir_combine_trylock(nic))
		run_combiner(nic, NULL);
}

void weir_combine_posted(struct weir_nic *nic, struct weir_session *session)
{
	poll_and_dispatch(session, nic->window.now_ns);
	run_combiner(nic, session);
}

void weir_combine_ended(struct weir_nic *nic, struct weir_session *session)
{
	if (weir_session_has_callbacks(session))
		weir_dispatch_locked(session);
	if (weir_combine_has_more(&nic->combine) || nic->nr_wakes) {
		run_combiner(nic, session);
		return;
	}
	offer_lanes(nic, session);
	if (!unlock_and_may_leave(nic) && weir_combine_trylock(nic))
		run_combiner(nic, session);
}

/* Bypasses the inbox, which the holder of the lock has just drained. */
void weir_combine_admit(struct weir_nic *nic, struct weir_request *request,
			struct weir_session *session)
{
	admit_to_session(nic, request);
	run_combiner(nic, session);
}

void weir_combine_enqueue(struct weir_nic *nic, struct weir_inbox_node *newest,
			  struct weir_inbox_node *oldest, struct weir_session *session)
{
	weir_inbox_push_all(&nic->combine.inbox, newest, oldest);
	weir_combine_serve(nic, session);
}

void weir_combine_serve(struct weir_nic *nic, struct weir_session *session)
{
	if (weir_dispatch_nic != nic && weir_combine_trylock(nic))
		run_combiner(nic, session);
}
