/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lanes are lent and taken back here, with nic->lock held. lane_use.c has the rest. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/client/channel/lanes.h"
#include "lib/client/channel/pump.h"
#include "lib/client/channel/session_link_fastpath.h"
#include "lib/client/request/dispatch.h"
#include "lib/client/request/prepare.h"
#include "lib/client/session.h"

#define ROUND_NS 200000 /* the longest wait for a completion, while all wait for the lanes */
#define DRAIN_NS 2000000 /* and for all that is in flight */

static pthread_mutex_t unused_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_lane_set *unused_sets;

static struct weir_lane_set *get_set(void)
{
	struct weir_lane_set *set;

	pthread_mutex_lock(&unused_lock);
	set = unused_sets;
	if (set)
		unused_sets = set->next;
	pthread_mutex_unlock(&unused_lock);
	if (set)
		return set;
	set = aligned_alloc(__alignof__(*set), sizeof(*set));
	return set ? memset(set, 0, sizeof(*set)) : NULL;
}

static void put_set(struct weir_lane_set *set)
{
	pthread_mutex_lock(&unused_lock);
	set->next = unused_sets;
	unused_sets = set;
	pthread_mutex_unlock(&unused_lock);
}

void weir_lanes_fini(struct weir_session *session)
{
	struct weir_lane_set *set = session->lanes.set;
	unsigned int i, j;

	if (!set)
		return;
	for (i = 0; i < set->count; i++) {
		for (j = 0; j < WEIR_LANE_WRS; j++) {
			free(set->lane[i].requests[j]);
			set->lane[i].requests[j] = NULL;
		}
	}
	put_set(set);
}

static bool make_set(struct weir_session *session)
{
	struct weir_lane_set *set = session->lanes.set;
	unsigned int i;

	if (set)
		return true;
	set = get_set();
	if (!set)
		return false;
	for (i = 0; i < session->options.channels; i++) {
		struct weir_session_lane *lane = &set->lane[i];

		weir_spinlock_lock(&lane->lock);
		lane->link = &session->links[i];
		weir_latency_init(&lane->sampler, session->sampler.random + i);
		weir_spinlock_unlock(&lane->lock);
	}
	__atomic_store_n(&set->count, session->options.channels, __ATOMIC_RELAXED);
	session->lanes.set = set;
	return true;
}

/* Replaces the requests that the engine has got. */
static bool fill_up(struct weir_session *session, struct weir_session_lane *lane, uint32_t wrs)
{
	uint32_t i;

	for (i = 0; i < wrs; i++) {
		if (!lane->requests[i])
			lane->requests[i] = weir_prepare_get(session, true);
		if (!lane->requests[i])
			return false;
	}
	return true;
}

static bool link_is_still(const struct weir_session_link *link)
{
	return !link->core.is_posting && !link->core.is_probed && !link->core.in_flight.count;
}

static bool links_are_still(const struct weir_session *session)
{
	unsigned int i;

	for (i = 0; i < session->options.channels; i++) {
		if (!link_is_still(&session->links[i]))
			return false;
	}
	return true;
}

static bool links_may_be_lent(const struct weir_session *session)
{
	unsigned int i;

	for (i = 0; i < session->options.channels; i++) {
		if (!session->links[i].has_own_cq)
			return false;
	}
	return weir_session_is_whole(session);
}

static void lend(struct weir_session *session, struct weir_session_lane *lane, uint16_t channel,
		 const struct weir_lane_share *share)
{
	weir_spinlock_lock(&lane->lock);
	lane->is_given_up = false;
	lane->refused = 0;
	lane->nr_wcs = 0;
	lane->loan = (struct weir_loan){ 0 };
	if (fill_up(session, lane, share->wrs))
		weir_lane_lend(&session->engine, &lane->core, channel, share);
	weir_spinlock_unlock(&lane->lock);
}

/* A thread that sees the hint sees the set as lent. */
static void set_hint(struct weir_session_lanes *lanes, enum weir_lanes_hint hint)
{
	if (lanes->set)
		__atomic_store_n(&lanes->set->are_lent, hint == WEIR_LANES_LENT, __ATOMIC_RELAXED);
	__atomic_store_n(&lanes->hint, (uint8_t)hint, __ATOMIC_RELEASE);
}

static void lend_all(struct weir_session *session, const struct weir_lane_share *share)
{
	struct weir_session_lanes *lanes = &session->lanes;
	unsigned int i;

	weir_list_add_tail(&session->nic->lent, &lanes->link);
	session->nic->is_lent = true;
	for (i = 0; i < lanes->set->count; i++)
		lend(session, &lanes->set->lane[i], (uint16_t)i, share);
	set_hint(lanes, WEIR_LANES_LENT);
}

/* Conditions that stay as they are while the engine finishes its requests. */
static bool may_wait_to_lend(const struct weir_session *session)
{
	return session->options.channels > 1 && weir_session_has_thread(session) &&
	       session->state == WEIR_SESSION_OPEN && links_may_be_lent(session) &&
	       !session->engine.window->learner && !weir_session_has_callbacks(session);
}

static bool may_lend_now(const struct weir_session *session, struct weir_lane_share *share)
{
	return links_are_still(session) && !weir_inbox_may_have(&session->nic->combine.inbox) &&
	       weir_lane_may_lend(&session->engine, session->options.channels, share);
}

/*
 * The session's thread sleeps while lanes are lent, or keeps off: so messages and timers must wake
 * it.
 */
static void arm(struct weir_session *session)
{
	session->is_watched = false;
	weir_pump_leave(session, true);
}

static bool may_lend(struct weir_session *session, struct weir_lane_share *share)
{
	if (!may_lend_now(session, share))
		return false;
	arm(session);
	return may_lend_now(session, share) && may_wait_to_lend(session);
}

/*
 * Finishes the engine's requests, while threads that submit wait. Return: true if the lanes may be
 * lent now.
 */
static bool drain(struct weir_session *session, struct weir_lane_share *share)
{
	struct weir_nic *nic = session->nic;
	uint64_t now_ns = weir_now_ns(), begun_ns = now_ns, until_ns = now_ns + ROUND_NS;
	uint64_t seen = session->counters->completions;

	session->is_watched = false; /* the session's thread keeps off */
	set_hint(&session->lanes, WEIR_LANES_SOON);
	for (; now_ns < until_ns && now_ns < begun_ns + DRAIN_NS; now_ns = weir_now_ns()) {
		weir_combine_drain_inbox(nic);
		weir_pump_poll_sends(session, now_ns);
		weir_pump_pull(session);
		if (session->counters->completions != seen)
			until_ns = now_ns + ROUND_NS;
		seen = session->counters->completions;
		if (weir_combine_has_more(&nic->combine) || !may_wait_to_lend(session))
			break;
		if (may_lend(session, share))
			return true;
	}
	set_hint(&session->lanes, WEIR_LANES_NONE);
	arm(session);
	weir_dispatch_later(session);
	return false;
}

/* Whether threads want the lock, and it is time to lend. */
static bool is_chance(struct weir_session *session)
{
	uint32_t crowd = __atomic_load_n(&session->nic->crowd, __ATOMIC_RELAXED);

	if (!crowd)
		return false;
	__atomic_store_n(&session->nic->crowd, crowd - 1, __ATOMIC_RELAXED);
	return weir_loans_is_chance(&session->lanes.loans, session->counters->requests,
				    session->counters->work_requests, weir_now_ns());
}

void weir_lanes_offer(struct weir_session *session)
{
	struct weir_lane_share share;

	if (!may_wait_to_lend(session) || !is_chance(session))
		return;
	if (make_set(session) && (may_lend(session, &share) || drain(session, &share)))
		lend_all(session, &share);
	else
		weir_loans_failed(&session->lanes.loans);
}

static void publish_latencies(struct weir_session *session, struct weir_session_lane *lane)
{
	uint32_t i;

	for (i = 0; i < lane->nr_timed; i++)
		weir_histogram_add(&session->stats_shm->latency[lane->timed[i].kind],
				   lane->timed[i].ns);
	lane->nr_timed = 0;
}

static void publish_counts(struct weir_session *session, struct weir_session_lane *lane)
{
	struct weir_counters *c = session->counters;
	uint64_t requests = lane->count.requests;

	c->requests += requests;
	c->work_requests += requests;
	c->doorbells += lane->count.doorbells;
	c->unlocked += lane->count.doorbells;
	c->completions += lane->count.completions;
	c->chains += lane->count.chains;
	c->inlined += lane->count.inlined;
	c->bytes_read += lane->count.bytes_read;
	c->bytes_written += lane->count.bytes_written;
	memset(&lane->count, 0, sizeof(lane->count));
	publish_latencies(session, lane);
}

static void give_claims(struct weir_lane_set *set, const struct weir_session_lane *lane)
{
	uint32_t i;

	for (i = 0; i < lane->core.posted; i++) {
		const struct weir_req *req = &lane->requests[weir_lane_slot(&lane->core, i)]->req;

		weir_claims_give(&set->claims, req->remote, req->length, weir_req_modifies(req));
	}
}

/* The engine gets the requests in flight. No lane is lent any more. */
static void take_back(struct weir_session *session, struct weir_session_lane *lane)
{
	uint64_t now_ns = lane->core.posted ? weir_now_ns() : 0;
	uint32_t i;

	give_claims(session->lanes.set, lane);
	for (i = 0; i < lane->core.posted; i++) {
		struct weir_request **slot = &lane->requests[weir_lane_slot(&lane->core, i)];

		weir_prepare_date(*slot, now_ns);
		weir_prepare_count(*slot);
		weir_list_add_tail(&session->live_requests, &(*slot)->link);
		*slot = NULL;
	}
	i = lane->core.posted - lane->refused;
	lane->late = weir_lane_return(&session->engine, &lane->core, now_ns);
	if (!i)
		return;
	lane->link->cq->in_flight += i;
	lane->late = weir_in_flight_append(&lane->link->core.in_flight, lane->late, i);
}

/* Tells the engine what failed, once it has all lanes back. */
static void catch_up(struct weir_session *session, struct weir_session_lane *lane)
{
	uint64_t now_ns = session->nic->window.now_ns;
	int i;

	weir_session_link_give_back(session, lane->late);
	for (i = 0; i < lane->nr_wcs; i++)
		weir_session_link_handle_wc(session, lane->link->cq, &lane->wc[i], now_ns);
	lane->nr_wcs = 0;
	weir_session_links_publish_window(session);
	weir_combine_activate(&session->nic->combine, &session->active);
}

/* From here on no thread posts. */
static struct weir_loan close_lanes(struct weir_session *session, bool was_lent[])
{
	struct weir_lane_set *set = session->lanes.set;
	struct weir_loan result = { 0 };
	unsigned int i;

	set_hint(&session->lanes, WEIR_LANES_NONE);
	for (i = 0; i < set->count; i++) {
		struct weir_session_lane *lane = &set->lane[i];

		weir_spinlock_lock(&lane->lock);
		publish_counts(session, lane);
		weir_loan_add(&result, &lane->loan);
		was_lent[i] = weir_lane_close(&lane->core);
		weir_spinlock_unlock(&lane->lock);
	}
	return result;
}

/* Requests in flight keep their claims until no thread posts on any lane. */
static void recall(struct weir_session *session)
{
	struct weir_session_lanes *lanes = &session->lanes;
	struct weir_session_lane *lane = lanes->set->lane;
	bool was_lent[WEIR_CHANNEL_MAX], has_late[WEIR_CHANNEL_MAX];
	struct weir_loan result;
	unsigned int i;

	weir_list_del(&lanes->link);
	session->is_watched = false; /* its thread looks after lanes only, if anything */
	result = close_lanes(session, was_lent);
	/* No thread calls for a watch from here on. A call may have been taken for another. */
	__atomic_store_n(&lanes->is_watched, false, __ATOMIC_SEQ_CST);
	weir_loans_ended(&lanes->loans, &result, session->counters->requests,
			 session->counters->work_requests, weir_now_ns());
	for (i = 0; i < lanes->set->count; i++) {
		has_late[i] = was_lent[i] && (lane[i].core.posted || lane[i].nr_wcs);
		if (was_lent[i])
			take_back(session, &lane[i]);
	}
	for (i = 0; i < lanes->set->count; i++) {
		if (has_late[i])
			catch_up(session, &lane[i]);
	}
}

void weir_lanes_recall(struct weir_nic *nic)
{
	while (!weir_list_is_empty(&nic->lent))
		recall(weir_list_entry(nic->lent.next, struct weir_session, lanes.link));
	nic->is_lent = false;
}
