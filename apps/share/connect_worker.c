/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connects, which may take as long as the timeout, in threads of their own, so that the clerk goes
 * on meanwhile. They are a party's, few, and at a pace: what a user asks for in vain, in however
 * many processes, takes no more of the daemon than that.
 */
#include "apps/share/connect_rate.h"
#include "apps/share/daemon.h"

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct call {
	struct weir_list link;
	struct tenant *tenant;
	uint64_t deadline_ns; /* from when it was asked for: waiting here is part of connecting */
	struct weir_share_ask ask;
};

/**
 * struct desk - where the calls of a party wait for a dialer
 * @link: in share->desks; it stays as long as the daemon, as the party does
 * @party: as terms say
 * @paid_ns: see pace_take()
 * @is_pacing: a dialer waits for that; @changed: or for him
 *
 * share->lock.
 */
struct desk {
	struct weir_list link;
	struct share *share;
	uint64_t party;
	struct weir_list calls;
	unsigned int nr_dialers;
	uint64_t paid_ns;
	bool is_pacing;
	pthread_cond_t changed;
};

/* It has been answered, or nobody wants it any more. With share->lock held. */
static void call_free(struct call *call)
{
	call->tenant->connecting--;
	pthread_cond_broadcast(&call->tenant->share->changed);
	free(call);
}

/* The class that it may use, of those that there are. */
static int options_fill(struct tenant *tenant, const struct weir_share_ask *ask,
			struct weir_conn_options *options, struct weir_error *error)
{
	const unsigned int last = tenant->share->hub->options.nr_classes - 1;
	unsigned int first;

	pthread_mutex_lock(&tenant->share->lock);
	first = tenant_class(tenant);
	pthread_mutex_unlock(&tenant->share->lock);
	*options = (struct weir_conn_options){ ask->class_nr, ask->weight, (uint32_t)ask->length };
	if (ask->class_nr == WEIR_SHARE_CLASS_DEFAULT)
		options->class_nr = last;
	if (options->class_nr < first)
		return weir_fail(error, -EPERM, "class %u is not for this tenant: %u is the most "
				 "urgent that weir share's configuration allows", ask->class_nr,
				 first);
	return 0;
}

void tenant_settle(struct tenant *tenant, struct weir_circuit *conn,
		   struct weir_share_answer *answer)
{
	struct weir_hub *hub = tenant->share->hub;
	int rc = -ECONNRESET;

	pthread_mutex_lock(&tenant->share->lock);
	if (!tenant->is_gone)
		rc = tenant_put(tenant, conn);
	if (!rc) {
		/*
		 * In its place the tenant may name it, and have it closed, once the lock is free.
		 */
		answer->nr = conn->nr;
		answer->chunk = conn->chunk->number;
		answer->slot = conn->slot;
		answer->ring_bytes = conn->size;
	}
	pthread_mutex_unlock(&tenant->share->lock);
	answer->status = rc;
	if (!rc)
		return;
	pthread_mutex_lock(&hub->lock);
	weir_circuit_abort(conn);
	pthread_mutex_unlock(&hub->lock);
	weir_fail((struct weir_error *)answer->text, rc, "%s", weir_strerror(rc));
}

static bool is_late(const struct call *call)
{
	return weir_now_ns() >= call->deadline_ns;
}

static void dial(const struct call *call)
{
	const struct weir_share_ask *ask = &call->ask;
	struct tenant *tenant = call->tenant;
	struct weir_share_answer answer = { .number = ask->number };
	struct weir_conn_options options;
	struct weir_error error = { "" };
	struct weir_circuit *conn;

	answer.status = options_fill(tenant, ask, &options, &error);
	if (!answer.status && is_late(call))
		answer.status = weir_fail(&error, -ETIMEDOUT, "%s was not asked in time: too many "
					  "connects were waiting", ask->peer);
	if (!answer.status)
		answer.status = weir_circuit_connect(&tenant->owner, ask->peer, ask->service,
						     &options, call->deadline_ns, &conn, &error);
	if (answer.status)
		memcpy(answer.text, error.text, sizeof(answer.text));
	else
		tenant_settle(tenant, conn, &answer);
	tenant_answer(tenant, &answer, NULL, 0);
}

/* Until it is time for another. One dialer of a desk looks at the clock, the others wait for it. */
static void wait_pace(struct desk *desk, uint64_t due_ns)
{
	const struct timespec until = weir_timespec(due_ns);
	struct share *share = desk->share;

	desk->is_pacing = true;
	pthread_mutex_unlock(&share->lock);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	pthread_mutex_lock(&share->lock);
	desk->is_pacing = false;
}

/* Whether one has been paid for; false: it has waited, and what waits may be another. */
static bool pay(struct desk *desk)
{
	uint64_t due_ns;

	if (desk->is_pacing) {
		pthread_cond_wait(&desk->changed, &desk->share->lock);
		return false;
	}
	due_ns = pace_take(&desk->paid_ns, weir_now_ns());
	if (due_ns)
		wait_pace(desk, due_ns);
	return !due_ns;
}

/* The next, when it is time; NULL: nothing waits. With share->lock held. */
static struct call *take(struct desk *desk)
{
	struct call *first, *call = NULL;

	while (!call && !weir_list_is_empty(&desk->calls)) {
		first = weir_list_entry(desk->calls.next, struct call, link);
		/* What is late is only told so, which costs nothing. */
		if (!is_late(first) && !pay(desk))
			continue;
		call = first;
		weir_list_del(&call->link);
	}
	pthread_cond_signal(&desk->changed); /* the next of those who waited for the clock */
	return call;
}

/* As long as something waits. */
static void *dialer_run(void *arg)
{
	struct desk *desk = arg;
	struct share *share = desk->share;
	struct call *call;

	pthread_mutex_lock(&share->lock);
	while ((call = take(desk)) != NULL) {
		pthread_mutex_unlock(&share->lock);
		dial(call);
		pthread_mutex_lock(&share->lock);
		call_free(call);
	}
	desk->nr_dialers--;
	share->nr_dialers--;
	pthread_cond_broadcast(&share->changed);
	pthread_mutex_unlock(&share->lock);
	return NULL;
}

/* With share->lock held; NULL: no memory. */
static struct desk *desk_of(struct tenant *tenant)
{
	struct share *share = tenant->share;
	struct weir_list *at;
	struct desk *desk;

	for (at = share->desks.next; at != &share->desks; at = at->next) {
		desk = weir_list_entry(at, struct desk, link);
		if (desk->party == tenant->terms.party)
			return desk;
	}
	desk = calloc(1, sizeof(*desk));
	if (!desk)
		return NULL;
	desk->share = share;
	desk->party = tenant->terms.party;
	weir_list_init(&desk->calls);
	pthread_cond_init(&desk->changed, NULL);
	weir_list_add_tail(&share->desks, &desk->link);
	return desk;
}

/* One dialer more, if there may be; with share->lock held. */
static int desk_staff(struct desk *desk)
{
	pthread_t thread;

	if (desk->nr_dialers == SHARE_DIALERS_MAX)
		return 0;
	if (weir_thread_create(&thread, "weir-dialer", dialer_run, desk, NULL))
		return desk->nr_dialers ? 0 : -ENOMEM;
	pthread_detach(thread);
	desk->nr_dialers++;
	desk->share->nr_dialers++;
	return 0;
}

int desk_ask(struct tenant *tenant, const struct weir_share_ask *ask)
{
	struct share *share = tenant->share;
	struct desk *desk = NULL;
	struct call *call;
	int rc = -EAGAIN;

	pthread_mutex_lock(&share->lock);
	call = tenant->connecting < SHARE_CONNECTS_MAX ? malloc(sizeof(*call)) : NULL;
	if (call) {
		desk = desk_of(tenant);
		rc = desk ? desk_staff(desk) : -ENOMEM;
	}
	if (call && !rc) {
		call->tenant = tenant;
		call->deadline_ns = weir_hub_deadline_ns(share->hub);
		call->ask = *ask;
		call->ask.peer[sizeof(ask->peer) - 1] = '\0';
		tenant->connecting++;
		weir_list_init(&call->link);
		weir_list_add_tail(&desk->calls, &call->link);
	} else {
		free(call);
	}
	pthread_mutex_unlock(&share->lock);
	return rc;
}

static void desk_leave(struct desk *desk, const struct tenant *tenant)
{
	struct weir_list *at;

	for (at = desk->calls.next; at != &desk->calls;) {
		struct call *call = weir_list_entry(at, struct call, link);

		at = at->next;
		if (call->tenant == tenant) {
			weir_list_del(&call->link);
			call_free(call);
		}
	}
}

void desks_leave(struct tenant *tenant)
{
	struct weir_list *at;

	for (at = tenant->share->desks.next; at != &tenant->share->desks; at = at->next)
		desk_leave(weir_list_entry(at, struct desk, link), tenant);
}

void desks_free(struct share *share)
{
	while (!weir_list_is_empty(&share->desks)) {
		struct desk *desk = weir_list_entry(share->desks.next, struct desk, link);

		weir_list_del(&desk->link);
		pthread_cond_destroy(&desk->changed);
		free(desk);
	}
}
