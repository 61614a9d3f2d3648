/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "lib/base/yield.h"
#include "lib/client/session.h"
#include "lib/pool/pin.h"
#include "lib/volume/target.h"

static void on_down(void *arg, int status)
{
	struct weir_volume_target *target = arg;

	(void)status;
	weir_volume_kick(target->volume);
}

static int connect_by(struct weir_volume_target *target, const struct weir_key *key,
		      struct weir_session **session, struct weir_error *error)
{
	const struct weir_volume_options *options = &target->volume->options;
	const struct weir_session_options wanted = {
		.size = sizeof(wanted),
		.key = key,
		.device = options->device,
		.channels = options->channels,
		.timeout_ns = options->timeout_ns,
		.encryption = options->encryption,
		.tuning = options->tuning,
		.donor_identity = target->has_identity ? target->identity : NULL,
		.on_down = on_down,
		.arg = target,
	};
	int rc = weir_pool_pin(target->id, wanted.donor_identity, key, error);

	return rc ? rc : weir_session_open(target->address, &wanted, session, error);
}

/*
 * While keys are being replaced, some donors know the new key and others do not yet. Anybody in a
 * donor's place can refuse the new key, and a thief of the old key can then prove the old one. So a
 * donor that has once proven the new key is not asked for the old key again.
 */
static int connect_target(struct weir_volume_target *target, struct weir_session **session,
			  struct weir_error *error)
{
	const struct weir_volume_options *options = &target->volume->options;
	int rc = connect_by(target, options->key, session, error);
	bool is_old = rc == -EKEYREJECTED && options->old_key && !target->has_new_key &&
		      !connect_by(target, options->old_key, session, NULL);

	target->has_new_key |= !rc;
	__atomic_store_n(&target->has_old_key, is_old, __ATOMIC_RELAXED);
	return is_old ? 0 : rc;
}

unsigned int weir_volume_count_old_keys(struct weir_volume *v)
{
	unsigned int count = 0;

	weir_volume_lock(v);
	for (unsigned int i = 0; i < v->nr_targets; i++)
		count += v->targets[i].session &&
			 __atomic_load_n(&v->targets[i].has_old_key, __ATOMIC_RELAXED);
	weir_volume_unlock(v);
	return count;
}

/* Return: whether the thread is to connect. */
static bool begin_joining(struct weir_volume_target *target)
{
	bool joining;

	weir_volume_lock(target->volume);
	joining = target->is_joining;
	target->is_connecting = joining;
	weir_volume_unlock(target->volume);
	return joining;
}

/* @session: NULL: none. Return: whether the session is wanted. */
static bool end_joining(struct weir_volume_target *target, struct weir_session *session, int status,
			const struct weir_error *reason)
{
	struct weir_volume *v = target->volume;
	bool is_wanted, is_news;

	weir_volume_lock(v);
	is_news = target->connect_status != status;
	is_wanted = target->is_joining && session;
	if (is_wanted) {
		target->fresh = session;
		target->is_joining = false;
	}
	target->is_connecting = false;
	target->connect_status = status;
	target->reason = *reason;
	weir_volume_unlock(v);
	if (is_wanted || is_news)
		weir_volume_kick(v);
	return is_wanted;
}

/* Whether the donor is the process that is wanted: it may have started again. */
static bool is_wanted_incarnation(const struct weir_volume_target *target,
				  const struct weir_session *session)
{
	struct weir_session_info info = { 0 };

	return !target->incarnation || (!weir_session_info(session, &info, sizeof(info)) &&
					info.incarnation == target->incarnation);
}

/* Return: whether the target has a session now. */
static bool join(struct weir_volume_target *target)
{
	struct weir_session *session = NULL;
	struct weir_error reason = { "" };
	int rc = connect_target(target, &session, &reason);

	if (!rc && !is_wanted_incarnation(target, session))
		rc = weir_error_set(&reason, -ESTALE, "the donor has started again");
	if (end_joining(target, rc ? NULL : session, rc, &reason))
		return true;
	if (session)
		weir_session_close(session);
	return false;
}

static void *run(void *arg)
{
	struct weir_volume_target *target = arg;
	struct weir_volume *v = target->volume;

	while (!weir_volume_is_closing(v)) {
		uint32_t seen = __atomic_load_n(&target->wanted, __ATOMIC_SEQ_CST);

		if (!begin_joining(target))
			weir_volume_sleep(&target->wanted, seen, UINT64_MAX);
		else if (!join(target))
			weir_volume_sleep(&target->wanted, seen,
					  weir_now_ns() + WEIR_VOLUME_TICK_NS);
	}
	return NULL;
}

int weir_volume_target_start(struct weir_volume_target *target, struct weir_error *error)
{
	int rc;

	if (target->has_thread)
		return 0;
	rc = weir_thread_create(&target->thread, "weir-join", run, target, error);
	target->has_thread = !rc;
	return rc;
}

int weir_volume_target_open(struct weir_volume_target *target, struct weir_error *error)
{
	int rc = connect_target(target, &target->fresh, error);

	if (rc)
		return rc;
	weir_volume_target_adopt(target);
	return weir_volume_target_start(target, error);
}

void weir_volume_target_reconnect(struct weir_volume_target *target)
{
	struct weir_volume *v = target->volume;
	bool is_new;

	weir_volume_lock(v);
	is_new = !target->is_joining && !target->fresh;
	target->is_joining |= is_new;
	weir_volume_unlock(v);
	if (is_new)
		weir_volume_wake(&target->wanted);
}

bool weir_volume_target_adopt(struct weir_volume_target *target)
{
	struct weir_volume *v = target->volume;
	bool is_new;

	weir_volume_lock(v);
	is_new = target->fresh;
	if (is_new) {
		target->session = target->fresh;
		target->fresh = NULL;
		v->sessions++;
	}
	weir_volume_unlock(v);
	return is_new;
}

/* Threads that poll the session leave it soon. */
void weir_volume_target_drop(struct weir_volume_target *target)
{
	struct weir_volume *v = target->volume;
	struct weir_session *session;
	unsigned int pollers;
	uint64_t now_ns;

	weir_volume_lock(v);
	session = target->session;
	target->session = NULL;
	pollers = target->pollers;
	weir_volume_unlock(v);
	while (pollers) {
		weir_yield(&now_ns);
		weir_volume_lock(v);
		pollers = target->pollers;
		weir_volume_unlock(v);
	}
	weir_session_close(session);
}

void weir_volume_target_close(struct weir_volume_target *target)
{
	if (target->has_thread) {
		weir_volume_wake(&target->wanted);
		pthread_join(target->thread, NULL);
	}
	weir_volume_target_adopt(target);
	weir_volume_target_drop(target);
	free(target->address);
}

enum weir_extents_donor_state weir_volume_target_state(struct weir_volume_target *target)
{
	enum weir_session_state state;
	bool is_whole;

	if (!target->session)
		return WEIR_EXTENTS_DONOR_DOWN;
	weir_session_lock(target->session);
	state = weir_session_state(target->session);
	is_whole = weir_session_is_whole(target->session);
	weir_session_unlock(target->session);
	if (state != WEIR_SESSION_OPEN)
		return WEIR_EXTENTS_DONOR_DOWN;
	return is_whole ? WEIR_EXTENTS_DONOR_UP : WEIR_EXTENTS_DONOR_SLOW;
}
