// SPDX-License-Identifier: GPL-2.0-only
#include <linux/inet.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "kernel/weir/conn.h"
#include "kernel/weir/io.h"
#include "kernel/weir/reconnect.h"
#include "kernel/weir/session.h"

#define FRAGMENT_BYTES (1u << 20)
#define WINDOW_BYTES_MIN (64u << 10)

int kweir_fail(struct kweir_error *error, int status, const char *format, ...)
{
	va_list args;

	if (error) {
		va_start(args, format);
		vscnprintf(error->text, sizeof(error->text), format, args);
		va_end(args);
	}
	return status;
}
EXPORT_SYMBOL_GPL(kweir_fail);

static void run_action(struct kweir_session *session, const struct weir_action *action)
{
	switch (action->type) {
	case WEIR_ACTION_POST:
		kweir_link_post(&session->links[action->channel], action->wr);
		break;
	case WEIR_ACTION_DONE:
		kweir_io_part_done(container_of(action->req, struct kweir_part, req));
		break;
	case WEIR_ACTION_WAKE:
		kweir_session_schedule(container_of(action->engine, struct kweir_session, engine));
		break;
	case WEIR_ACTION_FAIL:
		kweir_link_fail(&session->links[action->channel]);
		break;
	}
}

static void set_tick(struct kweir_session *session)
{
	u64 deadline_ns = min(weir_engine_deadline_ns(&session->engine), session->keepalive.due_ns);
	u64 now_ns;

	if (deadline_ns >= session->tick_ns)
		return;
	session->tick_ns = deadline_ns;
	now_ns = ktime_get_ns();
	mod_delayed_work(kweir_wq, &session->tick,
			 deadline_ns <= now_ns ? 0 : nsecs_to_jiffies(deadline_ns - now_ns) + 1);
}

bool kweir_session_pull(struct kweir_session *session)
{
	struct weir_action action;

	while (weir_engine_next(&session->engine, &action)) {
		run_action(session, &action);
		if (action.type == WEIR_ACTION_POST &&
		    weir_backlog_has_ready(&session->engine.backlog))
			return true;
	}
	set_tick(session);
	return false;
}

/* A late tick takes new completions before checking deadlines. */
static void tick(struct work_struct *work)
{
	struct kweir_session *session =
		container_of(to_delayed_work(work), struct kweir_session, tick);
	u64 now_ns = ktime_get_ns();

	kweir_nic_lock(session->nic);
	session->tick_ns = WEIR_NEVER;
	while (kweir_conns_poll(session, now_ns))
		;
	weir_engine_expired(&session->engine, now_ns);
	kweir_keepalive_check(session, now_ns);
	kweir_session_schedule(session);
	kweir_nic_unlock_and_complete(session->nic);
}

void kweir_session_lose(struct kweir_session *session, int why)
{
	unsigned int i;

	if (session->lost)
		return;
	WRITE_ONCE(session->lost, true);
	session->why = why;
	weir_keepalive_stop(&session->keepalive);
	for (i = 0; i < session->options.channels; i++) {
		struct kweir_link *link = &session->links[i];

		kweir_link_fail(link);
		if (link->core.state != WEIR_LINK_CLOSED)
			mod_delayed_work(kweir_connect_wq, &link->reconnect, 0);
		wake_up(&link->wait);
	}
}

static void ios_drained(struct percpu_ref *ios)
{
	complete_all(&container_of(ios, struct kweir_session, ios)->quiet);
}

/*
 * Another session's end may have woken @session, which now ignores the wake-up: the session leaves
 * the window's queue and wakes the next waiter. Afterwards no thread makes the session active.
 */
static void unschedule(struct kweir_session *session)
{
	struct kweir_nic *nic = session->nic;

	kweir_nic_lock(nic);
	while (session->engine.window && kweir_session_pull(session))
		;
	weir_list_del(&session->active);
	kweir_nic_unlock_and_complete(nic);
}

void kweir_session_force_close(struct kweir_session *session)
{
	unsigned int i;

	kweir_nic_lock(session->nic);
	WRITE_ONCE(session->is_stopping, true);
	kweir_control_close(&session->control);
	kweir_session_lose(session, -ECANCELED);
	kweir_nic_unlock(session->nic);

	mutex_lock(&session->end_mutex);
	if (!percpu_ref_is_dying(&session->ios))
		percpu_ref_kill(&session->ios);
	wait_for_completion(&session->quiet);
	for (i = 0; i < session->options.channels; i++) {
		struct kweir_link *link = &session->links[i];

		cancel_delayed_work_sync(&link->reconnect);
		kweir_conn_free(link->conn);
		link->conn = NULL;
	}
	cancel_delayed_work_sync(&session->tick);
	unschedule(session);
	kweir_control_fini(&session->control);
	if (session->bounce.nic)
		kweir_bounce_fini(&session->bounce);
	mutex_unlock(&session->end_mutex);
}

static int engine_init(struct kweir_session *session)
{
	struct kweir_nic *nic = session->nic;
	u32 nr_wrs = session->options.channels * session->options.depth;
	u32 batching = session->options.batching;
	bool chain = batching == KWEIR_BATCHING_HYBRID || batching == KWEIR_BATCHING_DOORBELL;
	const struct weir_engine_config config = {
		.fragment_bytes = min_t(u64, FRAGMENT_BYTES, nic->window.bytes_min),
		.chain_max = chain ? WEIR_BATCH_MAX : 1,
		.sge_max = nic->sge_max,
		.merge = batching == KWEIR_BATCHING_HYBRID || batching == KWEIR_BATCHING_MERGE,
		.stall_timeout_ns = session->timeout_ns / 2,
		.seed = get_random_u64(),
	};

	session->wrs = kvcalloc(nr_wrs, sizeof(*session->wrs), GFP_KERNEL);
	if (!session->wrs)
		return -ENOMEM;
	return weir_engine_init(&session->engine, &config, &nic->window, session->wrs, nr_wrs);
}

int kweir_session_attach(struct kweir_session *session, struct ib_device *device,
			 struct kweir_error *error)
{
	int rc;

	if (session->nic && session->nic->device == device)
		return 0;
	if (session->nic)
		return kweir_fail(error, -EHOSTUNREACH,
				  "the route to %s now leads through another device",
				  session->peer);
	if (device->attrs.max_send_sge < WEIR_SGE_MAX)
		return kweir_fail(error, -ENODEV, "%s takes only %u pieces of memory at a time",
				  device->name, device->attrs.max_send_sge);
	rc = kweir_nic_get(device, session, session->options.window_bytes, &session->nic);
	if (!rc)
		rc = engine_init(session);
	if (!rc && session->options.mr == KWEIR_MR_PRE)
		rc = kweir_bounce_init(&session->bounce, session->nic,
				       session->options.window_bytes);
	if (!rc)
		rc = kweir_control_init(&session->control, session);
	return rc ? kweir_fail(error, rc, "cannot set up the session (%d)", rc) : 0;
}

static int fill_options(struct kweir_options *filled, const struct kweir_options *given,
			struct kweir_error *error)
{
	struct kweir_options *o = filled;

	memset(o, 0, sizeof(*o));
	if (given)
		*o = *given;
	o->channels = o->channels ?: 2;
	o->depth = o->depth ?: 128;
	o->timeout_ms = o->timeout_ms ?: KWEIR_TIMEOUT_MS;
	o->window_bytes = o->window_bytes ?: 8u << 20;
	if (o->channels > WEIR_CHANNEL_MAX)
		return kweir_fail(error, -EINVAL, "%u channels: at most %u", o->channels,
				  WEIR_CHANNEL_MAX);
	if (o->depth < 16 || o->depth > 1024)
		return kweir_fail(error, -EINVAL, "depth %u: 16 to 1024", o->depth);
	if (o->timeout_ms < 100 || o->timeout_ms > 600000)
		return kweir_fail(error, -EINVAL, "timeout %u ms: 100 to 600000", o->timeout_ms);
	if (o->window_bytes < WINDOW_BYTES_MIN)
		return kweir_fail(error, -EINVAL, "window %llu: at least %u", o->window_bytes,
				  WINDOW_BYTES_MIN);
	if (o->polling > WEIR_POLL_HYBRID || o->polling == WEIR_POLL_BUSY)
		return kweir_fail(error, -EINVAL, "unknown polling mode %u", o->polling);
	if (o->batching >= KWEIR_BATCHINGS_NR)
		return kweir_fail(error, -EINVAL, "unknown batching mode %u", o->batching);
	if (o->mr >= KWEIR_MRS_NR)
		return kweir_fail(error, -EINVAL, "unknown memory registration mode %u", o->mr);
	return 0;
}

static struct kweir_session *session_alloc(const struct kweir_options *options,
					   const struct sockaddr_storage *donor)
{
	struct kweir_session *session = kzalloc(sizeof(*session), GFP_KERNEL);
	u16 i;

	if (!session)
		return NULL;
	session->options = *options;
	session->timeout_ns = options->timeout_ms * (u64)NSEC_PER_MSEC;
	session->donor = *donor;
	snprintf(session->peer, sizeof(session->peer), "%pISpc", donor);
	for (i = 0; i < WEIR_CHANNEL_MAX; i++)
		kweir_link_init(&session->links[i], session, i);
	weir_list_init(&session->active);
	mutex_init(&session->end_mutex);
	INIT_DELAYED_WORK(&session->tick, tick);
	session->tick_ns = WEIR_NEVER;
	weir_keepalive_init(&session->keepalive, KWEIR_KEEPALIVE_QUIET_NS, session->timeout_ns);
	session->stat.keep_bytes = WIRE_CONTROL_KEEP_ALL;
	init_completion(&session->quiet);
	if (!percpu_ref_init(&session->ios, ios_drained, 0, GFP_KERNEL))
		return session;
	kfree(session);
	return NULL;
}

/* The session has nothing left on the device. */
static void session_free(struct kweir_session *session)
{
	if (session->nic)
		kweir_nic_put(session->nic, session);
	percpu_ref_exit(&session->ios);
	kvfree(session->wrs);
	kfree(session);
}

int kweir_session_new(const struct sockaddr_storage *donor, const struct kweir_options *options,
		      struct key *key, struct kweir_session **out, struct kweir_error *error)
{
	struct kweir_session *session;
	struct kweir_options filled;
	int rc;

	rc = fill_options(&filled, options, error);
	if (rc)
		return rc;
	session = session_alloc(&filled, donor);
	if (!session)
		return kweir_fail(error, -ENOMEM, "out of memory");
	rc = kweir_secret_init(&session->secret, key, error);
	if (rc)
		session_free(session);
	else
		*out = session;
	return rc;
}
EXPORT_SYMBOL_GPL(kweir_session_new);

int kweir_session_connect(struct kweir_session *session, struct kweir_error *error)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < session->options.channels; i++)
		rc = kweir_link_connect(&session->links[i], error);
	return rc;
}
EXPORT_SYMBOL_GPL(kweir_session_connect);

void kweir_session_abandon(struct kweir_session *session)
{
	struct kweir_nic *nic;
	unsigned int i;

	WRITE_ONCE(session->is_stopping, true);
	for (i = 0; i < session->options.channels; i++)
		wake_up(&session->links[i].wait);
	nic = smp_load_acquire(&session->nic); /* pairs with the release in kweir_nic_get() */
	if (!nic)
		return;
	kweir_nic_lock(nic);
	kweir_control_close(&session->control);
	kweir_session_lose(session, -ECANCELED);
	kweir_nic_unlock(nic);
}
EXPORT_SYMBOL_GPL(kweir_session_abandon);

void kweir_session_close(struct kweir_session *session)
{
	if (session->nic)
		kweir_session_force_close(session);
	kweir_secret_fini(&session->secret);
	session_free(session);
}
EXPORT_SYMBOL_GPL(kweir_session_close);

void kweir_session_serve(struct kweir_session *session)
{
	kweir_nic_serve(session->nic);
}
EXPORT_SYMBOL_GPL(kweir_session_serve);

static enum kweir_session_state state_of(const struct kweir_session *session)
{
	unsigned int i;

	if (session->lost)
		return KWEIR_SESSION_LOST;
	for (i = 0; i < session->options.channels; i++) {
		if (session->links[i].core.state != WEIR_LINK_UP)
			return KWEIR_SESSION_RECONNECTING;
	}
	return KWEIR_SESSION_UP;
}

void kweir_session_stat(struct kweir_session *session, struct kweir_stat *stat)
{
	kweir_nic_lock(session->nic);
	session->stat.state = state_of(session);
	session->stat.window_waits = session->engine.waits;
	*stat = session->stat;
	kweir_nic_unlock(session->nic);
}
EXPORT_SYMBOL_GPL(kweir_session_stat);
