/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The thread sleeps in a wait for changes of the map, for a third of a lease at most. While the
 * store does not answer, the donor goes on as it is, and the thread tries again.
 *
 * The end of a lease does not end the memory. A donor whose lease is over registers again as the
 * same incarnation while it serves a group: the coordinator decides, group by group, who leaves.
 * Once the donor serves nowhere, it starts again.
 */
#include "lib/pool/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/thread.h"
#include "lib/pool/codec.h"
#include "lib/pool/lead.h"

#define KEY_MAX (WEIR_POOL_NAME_MAX + 16)
#define TRIES_MAX 8

/**
 * struct weir_pool_agent - a donor in its pool
 * @client: the thread's view of the pool
 * @control: for weir_pool_agent_stop(), while the thread waits in @client
 * @self: what is registered
 * @pool_id: the joined pool's number: another pool may get its name
 * @lease: holds the donor's key, and the leader's while this donor leads; atomic
 * @kept_ns: last time that the lease was kept
 * @map: the map that was read last
 * @lead: the coordinator
 * @on_restart, @log: callbacks of the donor
 * @thread: keeps the lease and coordinates
 * @stops: the thread shall end; atomic
 * @is_silent: the store does not answer
 * @is_full: the store has refused a change for want of room, and none has been made since
 */
struct weir_pool_agent {
	struct weir_pool_client *client, *control;
	struct weir_pool_donor self;
	uint64_t pool_id, lease, kept_ns;
	struct weir_pool_map map;
	struct weir_pool_lead lead;
	void (*on_restart)(void *arg);
	struct weir_log log;
	pthread_t thread;
	bool stops, is_silent, is_full;
};

static bool stops(const struct weir_pool_agent *a)
{
	return __atomic_load_n(&a->stops, __ATOMIC_ACQUIRE);
}

/*
 * Whether the key may become this donor's: free, or of this address before it started again. Two
 * hosts may have donors at the same loopback address, but their domains differ by default.
 */
static int check_name(struct weir_pool_agent *a, struct weir_error *error)
{
	uint16_t index = weir_pool_map_donor(&a->map, a->self.id);
	const struct weir_pool_donor *old;

	if (index == WEIR_POOL_NO_DONOR)
		return 0;
	old = &a->map.donor[index];
	if (!old->incarnation || (!strcmp(old->address, a->self.address) &&
				  !strcmp(old->domain, a->self.domain)))
		return 0;
	return weir_error_set(error, -EBUSY,
			      "pool %s has a donor %s already, at %s in domain %s: choose another "
			      "--name, or wait %u s if that donor is dead",
			      a->map.name, a->self.id, old->address, old->domain,
			      a->map.lease_ms / 1000 + 1);
}

static int put_donor(struct weir_pool_agent *a, uint64_t expected, struct weir_error *error)
{
	char key[KEY_MAX], *value = weir_pool_codec_donor(&a->self);
	struct weir_pool_put put = {
		.key = key, .value = value, .expected = expected, .lease = a->lease
	};
	int rc;

	if (!value)
		return weir_error_set(error, -ENOMEM, "out of memory");
	snprintf(key, sizeof(key), "donor/%s", a->self.id);
	rc = weir_pool_store_put(weir_pool_client_store(a->client), &put, NULL, error);
	free(value);
	return rc;
}

/* Registers the donor under a new lease. */
static int join(struct weir_pool_agent *a, struct weir_error *error)
{
	uint64_t lease;
	int rc = weir_pool_client_read(a->client, &a->map, error);

	if (!rc)
		rc = check_name(a, error);
	if (!rc)
		rc = weir_pool_store_grant(weir_pool_client_store(a->client), a->map.lease_ms,
					   &lease, error);
	if (rc)
		return rc;
	__atomic_store_n(&a->lease, lease, __ATOMIC_RELEASE);
	rc = -EAGAIN;
	for (unsigned int i = 0; i < TRIES_MAX && rc == -EAGAIN; i++) {
		uint16_t index = weir_pool_map_donor(&a->map, a->self.id);

		rc = put_donor(a, index == WEIR_POOL_NO_DONOR ? 0 : a->map.donor[index].stored,
			       error);
		if (rc == -EAGAIN && !weir_pool_client_read(a->client, &a->map, error))
			rc = check_name(a, error) ? -EBUSY : -EAGAIN;
	}
	if (!rc)
		rc = weir_pool_client_read(a->client, &a->map, error);
	return rc;
}

/* Return: whether the donor must start again. */
static bool must_restart(struct weir_pool_agent *a)
{
	uint16_t self = weir_pool_map_donor(&a->map, a->self.id);

	if (a->map.id != a->pool_id) {
		weir_log_line(&a->log, WEIR_LOG_ERROR,
			      "left pool=%s id=W401: somebody has made another pool of this name",
			      a->map.name);
		return true;
	}
	return self != WEIR_POOL_NO_DONOR &&
	       weir_pool_map_may_restart(&a->map, self, a->self.incarnation);
}

/* The lease is over: the others may have gone on without this donor. */
static int rejoin(struct weir_pool_agent *a, bool *restarts, struct weir_error *error)
{
	int rc = weir_pool_client_read(a->client, &a->map, error);
	uint16_t self = weir_pool_map_donor(&a->map, a->self.id);

	if (rc)
		return rc;
	*restarts = a->map.id != a->pool_id || self == WEIR_POOL_NO_DONOR ||
		    !weir_pool_map_is_serving(&a->map, self, a->self.incarnation);
	if (*restarts)
		return 0;
	rc = join(a, error);
	if (!rc)
		weir_log_line(&a->log, WEIR_LOG_WARNING,
			      "rejoined pool=%s id=W402: the lease was over; groups still use "
			      "this memory",
			      a->map.name);
	return rc;
}

/* Keeps the lease, unless this was done a moment ago: a busy map wakes the thread often. */
static int keep(struct weir_pool_agent *a, bool *restarts, struct weir_error *error)
{
	uint64_t now_ns = weir_now_ns();
	int rc;

	if (now_ns - a->kept_ns < a->map.lease_ms / 6 * WEIR_NS_PER_MS)
		return 0;
	rc = weir_pool_store_keep(weir_pool_client_store(a->client), a->lease, error);
	if (rc == -ESTALE)
		rc = rejoin(a, restarts, error);
	if (!rc)
		a->kept_ns = now_ns;
	return rc;
}

/* Keeps the lease, reads the map, and leads. */
static int work(struct weir_pool_agent *a, bool *restarts, struct weir_error *error)
{
	unsigned int changes = 0;
	int rc = keep(a, restarts, error);

	if (!rc && !*restarts)
		rc = weir_pool_client_read(a->client, &a->map, error);
	if (rc || *restarts)
		return rc;
	*restarts = must_restart(a);
	if (*restarts)
		return 0;
	rc = weir_pool_lead_run(&a->lead, a->client, &a->map, a->self.id, a->lease, a->is_silent,
				&changes, error);
	if (changes)
		weir_log_line(&a->log, WEIR_LOG_INFO, "coordinated pool=%s changes=%u", a->map.name,
			      changes);
	if (changes && rc != -ENOSPC)
		a->is_full = false;
	return rc;
}

/* When the coordinator has something to do. */
static uint64_t deadline_ns(const struct weir_pool_agent *a)
{
	return a->lead.token ? weir_pool_coordinator_deadline_ns(&a->lead.coordinator, &a->map,
								 weir_now_ns()) :
			       WEIR_POOL_NEVER;
}

static void *run_agent(void *arg)
{
	struct weir_pool_agent *a = arg;
	struct weir_error error = { "" };
	bool restarts = false, has_failed;

	while (!stops(a)) {
		int rc = work(a, &restarts, &error);

		if (stops(a))
			break;
		if (restarts) {
			weir_log_line(
				&a->log, WEIR_LOG_WARNING,
				"out pool=%s incarnation=%016" PRIx64
				" id=W403: the pool has gone on without this memory; starting "
				"again, empty",
				a->map.name, a->self.incarnation);
			a->on_restart(a->log.arg);
			break;
		}
		if (rc == -ENOSPC && !a->is_full)
			weir_log_line(&a->log, WEIR_LOG_WARNING, "pool frozen pool=%s id=W409: %s",
				      a->map.name, error.text);
		a->is_full |= rc == -ENOSPC;
		has_failed = rc && rc != -ENOSPC;
		if (has_failed && !a->is_silent)
			weir_log_line(&a->log, WEIR_LOG_WARNING,
				      "pool unreachable pool=%s id=W404: %s", a->map.name,
				      error.text);
		else if (!has_failed && a->is_silent)
			weir_log_line(&a->log, WEIR_LOG_INFO, "pool reachable pool=%s",
				      a->map.name);
		a->is_silent = has_failed;
		weir_pool_client_rest(a->client, &a->map, rc, deadline_ns(a));
	}
	return NULL;
}

static int fill_self(struct weir_pool_donor *self, const struct weir_pool_agent_options *options,
		     struct weir_error *error)
{
	const struct {
		const char *what, *text;
		char *to;
	} names[] = {
		{ "name", options->name, self->id },
		{ "domain", options->domain, self->domain },
		{ "address", options->address, self->address },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!weir_pool_map_is_name(names[i].text))
			return weir_error_set(error, -EINVAL,
					      "%s '%s': expected up to 63 letters, digits and "
					      ". _ - :",
					      names[i].what, names[i].text);
		memcpy(names[i].to, names[i].text, strlen(names[i].text) + 1);
	}
	self->bytes = options->bytes;
	self->incarnation = options->incarnation;
	self->has_identity = options->identity;
	if (self->has_identity)
		memcpy(self->identity, options->identity, sizeof(self->identity));
	return 0;
}

static void free_agent(struct weir_pool_agent *a)
{
	if (a->lease)
		(void)weir_pool_store_revoke(weir_pool_client_store(a->control), a->lease, NULL);
	weir_pool_client_close(a->client);
	weir_pool_client_close(a->control);
	free(a);
}

int weir_pool_agent_start(const struct weir_pool_agent_options *options,
			  struct weir_pool_agent **agent, struct weir_error *error)
{
	struct weir_pool_agent *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return weir_error_set(error, -ENOMEM, "out of memory");
	a->on_restart = options->on_restart;
	a->log = (struct weir_log){ options->on_log, options->arg };
	rc = fill_self(&a->self, options, error);
	if (!rc)
		rc = weir_pool_client_open(options->pool, &a->client, error);
	if (!rc)
		rc = weir_pool_client_open(options->pool, &a->control, error);
	if (!rc)
		rc = join(a, error);
	if (!rc) {
		a->pool_id = a->map.id;
		weir_log_line(&a->log, WEIR_LOG_INFO,
			      "in pool pool=%s name=%s domain=%s incarnation=%016" PRIx64,
			      a->map.name, a->self.id, a->self.domain, a->self.incarnation);
		rc = weir_thread_create(&a->thread, "weir-pool", run_agent, a, error);
	}
	if (rc) {
		free_agent(a);
		return rc;
	}
	*agent = a;
	return 0;
}

void weir_pool_agent_stop(struct weir_pool_agent *a)
{
	if (!a)
		return;
	__atomic_store_n(&a->stops, true, __ATOMIC_RELEASE);
	/* The end of the lease is a change of the map, which wakes the thread. */
	(void)weir_pool_store_revoke(weir_pool_client_store(a->control),
				     __atomic_load_n(&a->lease, __ATOMIC_ACQUIRE), NULL);
	pthread_join(a->thread, NULL);
	free_agent(a);
}
