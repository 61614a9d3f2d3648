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

int weir_fail(struct weir_error *error, int status, const char *format, ...)
{
	va_list args;

	if (error) {
		va_start(args, format);
		vscnprintf(error->text, sizeof(error->text), format, args);
		va_end(args);
	}
	return status;
}
EXPORT_SYMBOL_GPL(weir_fail);

static void act(struct weir_session *session, const struct weir_action *action)
{
	switch (action->type) {
	case WEIR_ACTION_POST:
		weir_link_post(&session->links[action->channel], action->wr);
		break;
	case WEIR_ACTION_DONE:
		weir_io_part_done(container_of(action->req, struct weir_part, req));
		break;
	case WEIR_ACTION_WAKE:
		weir_session_feed(container_of(action->engine, struct weir_session, engine));
		break;
	case WEIR_ACTION_FAIL:
		weir_link_fail(&session->links[action->channel]);
		break;
	}
}

static void set_tick(struct weir_session *session)
{
	u64 deadline_ns = min(weir_engine_deadline_ns(&session->engine), session->keepalive.due_ns);
	u64 now_ns;

	if (deadline_ns >= session->tick_ns)
		return;
	session->tick_ns = deadline_ns;
	now_ns = ktime_get_ns();
	mod_delayed_work(weir_wq, &session->tick, deadline_ns <= now_ns ? 0 :
			 nsecs_to_jiffies(deadline_ns - now_ns) + 1);
}

bool weir_session_pull(struct weir_session *session)
{
	struct weir_action action;

	while (weir_engine_next(&session->engine, &action)) {
		act(session, &action);
		if (action.type == WEIR_ACTION_POST &&
		    !weir_list_is_empty(&session->engine.backlog.ready))
			return true;
	}
	set_tick(session);
	return false;
}

/* Who comes late himself first takes what has come meanwhile. */
static void tick(struct work_struct *work)
{
	struct weir_session *session =
		container_of(to_delayed_work(work), struct weir_session, tick);
	u64 now_ns = ktime_get_ns();

	weir_nic_lock(session->nic);
	session->tick_ns = WEIR_NEVER;
	while (weir_conns_poll(session, now_ns))
		;
	weir_engine_expired(&session->engine, now_ns);
	weir_keepalive_look(session, now_ns);
	weir_session_feed(session);
	weir_nic_unlock_and_tell(session->nic);
}

void weir_session_lose(struct weir_session *session, int why)
{
	unsigned int i;

	if (session->lost)
		return;
	WRITE_ONCE(session->lost, true);
	session->why = why;
	session->keepalive.due_ns = WEIR_NEVER;
	for (i = 0; i < session->options.channels; i++) {
		struct weir_link *link = &session->links[i];

		weir_link_fail(link);
		if (link->state != WEIR_LINK_CLOSED)
			mod_delayed_work(weir_connect_wq, &link->mend, 0);
		wake_up(&link->wait);
	}
}

static void became_quiet(struct percpu_ref *ios)
{
	complete_all(&container_of(ios, struct weir_session, ios)->quiet);
}

/*
 * What another session's end woke it for, it will not do: it leaves the window's line, and wakes
 * whoever is next there. After that nobody feeds it any more.
 */
static void leave_line(struct weir_session *session)
{
	struct weir_nic *nic = session->nic;

	weir_nic_lock(nic);
	while (session->engine.window && weir_session_pull(session))
		;
	weir_list_del(&session->fed);
	weir_nic_unlock_and_tell(nic);
}

void weir_session_uproot(struct weir_session *session)
{
	unsigned int i;

	weir_nic_lock(session->nic);
	WRITE_ONCE(session->stopping, true);
	weir_session_lose(session, -ECANCELED);
	weir_nic_unlock(session->nic);

	mutex_lock(&session->end_mutex);
	if (!percpu_ref_is_dying(&session->ios))
		percpu_ref_kill(&session->ios);
	wait_for_completion(&session->quiet);
	for (i = 0; i < session->options.channels; i++) {
		struct weir_link *link = &session->links[i];

		cancel_delayed_work_sync(&link->mend);
		weir_conn_free(link->conn);
		link->conn = NULL;
	}
	cancel_delayed_work_sync(&session->tick);
	leave_line(session);
	weir_mail_fini(&session->mail);
	if (session->copies.nic)
		weir_copies_fini(&session->copies);
	mutex_unlock(&session->end_mutex);
}

static int engine_init(struct weir_session *session)
{
	struct weir_nic *nic = session->nic;
	u32 nr_wrs = session->options.channels * session->options.depth;
	u32 batching = session->options.batching;
	bool chain = batching == WEIR_BATCHING_HYBRID || batching == WEIR_BATCHING_DOORBELL;
	const struct weir_engine_config config = {
		.fragment_bytes = min_t(u64, FRAGMENT_BYTES, nic->window.bytes_min),
		.chain_max = chain ? WEIR_BATCH_MAX : 1,
		.sge_max = nic->sge_max,
		.merge = batching == WEIR_BATCHING_HYBRID || batching == WEIR_BATCHING_MERGE,
		.patience_ns = session->timeout_ns / 2,
		.seed = get_random_u64(),
	};

	session->wrs = kvcalloc(nr_wrs, sizeof(*session->wrs), GFP_KERNEL);
	if (!session->wrs)
		return -ENOMEM;
	return weir_engine_init(&session->engine, &config, &nic->window, session->wrs, nr_wrs);
}

int weir_session_attach(struct weir_session *session, struct ib_device *device,
			struct weir_error *error)
{
	int rc;

	if (session->nic && session->nic->device == device)
		return 0;
	if (session->nic)
		return weir_fail(error, -EHOSTUNREACH,
				 "the way to %s is by another device now", session->peer);
	if (device->attrs.max_send_sge < WEIR_SGE_MAX)
		return weir_fail(error, -ENODEV, "%s takes only %u pieces of memory at a time",
				 device->name, device->attrs.max_send_sge);
	rc = weir_nic_get(device, session, session->options.window_bytes, &session->nic);
	if (!rc)
		rc = engine_init(session);
	if (!rc && session->options.mr == WEIR_MR_PRE)
		rc = weir_copies_init(&session->copies, session->nic,
				      session->options.window_bytes);
	if (!rc)
		rc = weir_mail_init(&session->mail, session);
	return rc ? weir_fail(error, rc, "cannot set up the session (%d)", rc) : 0;
}

static int fill_options(struct weir_options *filled, const struct weir_options *given,
			struct weir_error *error)
{
	struct weir_options *o = filled;

	memset(o, 0, sizeof(*o));
	if (given)
		*o = *given;
	o->channels = o->channels ?: 2;
	o->depth = o->depth ?: 128;
	o->timeout_ms = o->timeout_ms ?: WEIR_TIMEOUT_MS;
	o->window_bytes = o->window_bytes ?: 8u << 20;
	if (o->channels > WEIR_CHANNEL_MAX)
		return weir_fail(error, -EINVAL, "%u channels: at most %u", o->channels,
				 WEIR_CHANNEL_MAX);
	if (o->depth < 16 || o->depth > 1024)
		return weir_fail(error, -EINVAL, "depth %u: 16 to 1024", o->depth);
	if (o->timeout_ms < 100 || o->timeout_ms > 600000)
		return weir_fail(error, -EINVAL, "timeout %u ms: 100 to 600000", o->timeout_ms);
	if (o->window_bytes < WINDOW_BYTES_MIN)
		return weir_fail(error, -EINVAL, "window %llu: at least %u", o->window_bytes,
				 WINDOW_BYTES_MIN);
	if (o->polling > WEIR_POLL_HYBRID || o->polling == WEIR_POLL_BUSY)
		return weir_fail(error, -EINVAL, "no way of polling has number %u", o->polling);
	if (o->batching >= WEIR_BATCHINGS_NR)
		return weir_fail(error, -EINVAL, "no way of batching has number %u", o->batching);
	if (o->mr >= WEIR_MRS_NR)
		return weir_fail(error, -EINVAL, "no way of registering has number %u", o->mr);
	return 0;
}

static struct weir_session *session_alloc(const struct weir_options *options,
					  const struct sockaddr_storage *donor)
{
	struct weir_session *session = kzalloc(sizeof(*session), GFP_KERNEL);
	u16 i;

	if (!session)
		return NULL;
	session->options = *options;
	session->timeout_ns = options->timeout_ms * (u64)NSEC_PER_MSEC;
	session->donor = *donor;
	snprintf(session->peer, sizeof(session->peer), "%pISpc", donor);
	for (i = 0; i < WEIR_CHANNEL_MAX; i++)
		weir_link_init(&session->links[i], session, i);
	weir_list_init(&session->fed);
	mutex_init(&session->end_mutex);
	INIT_DELAYED_WORK(&session->tick, tick);
	session->tick_ns = session->keepalive.due_ns = WEIR_NEVER;
	session->stat.keep_bytes = WIRE_KEEP_ALL;
	init_completion(&session->quiet);
	if (!percpu_ref_init(&session->ios, became_quiet, 0, GFP_KERNEL))
		return session;
	kfree(session);
	return NULL;
}

/* Nothing of it is on the device. */
static void session_free(struct weir_session *session)
{
	if (session->nic)
		weir_nic_put(session->nic, session);
	percpu_ref_exit(&session->ios);
	kvfree(session->wrs);
	kfree(session);
}

int weir_session_new(const struct sockaddr_storage *donor, const struct weir_options *options,
		     struct key *key, struct weir_session **out, struct weir_error *error)
{
	struct weir_session *session;
	struct weir_options filled;
	int rc;

	rc = fill_options(&filled, options, error);
	if (rc)
		return rc;
	session = session_alloc(&filled, donor);
	if (!session)
		return weir_fail(error, -ENOMEM, "out of memory");
	rc = weir_secret_init(&session->secret, key, error);
	if (rc)
		session_free(session);
	else
		*out = session;
	return rc;
}
EXPORT_SYMBOL_GPL(weir_session_new);

int weir_session_connect(struct weir_session *session, struct weir_error *error)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < session->options.channels; i++)
		rc = weir_link_connect(&session->links[i], error);
	return rc;
}
EXPORT_SYMBOL_GPL(weir_session_connect);

void weir_session_abandon(struct weir_session *session)
{
	struct weir_nic *nic;
	unsigned int i;

	WRITE_ONCE(session->stopping, true);
	for (i = 0; i < session->options.channels; i++)
		wake_up(&session->links[i].wait);
	nic = smp_load_acquire(&session->nic); /* weir_nic_get() releases */
	if (!nic)
		return;
	weir_nic_lock(nic);
	weir_session_lose(session, -ECANCELED);
	weir_nic_unlock(nic);
}
EXPORT_SYMBOL_GPL(weir_session_abandon);

void weir_session_close(struct weir_session *session)
{
	if (session->nic)
		weir_session_uproot(session);
	weir_secret_fini(&session->secret);
	session_free(session);
}
EXPORT_SYMBOL_GPL(weir_session_close);

void weir_session_serve(struct weir_session *session)
{
	weir_nic_serve(session->nic);
}
EXPORT_SYMBOL_GPL(weir_session_serve);

static enum weir_session_state state_of(const struct weir_session *session)
{
	unsigned int i;

	if (session->lost)
		return WEIR_SESSION_LOST;
	for (i = 0; i < session->options.channels; i++) {
		if (session->links[i].state != WEIR_LINK_UP)
			return WEIR_SESSION_MENDING;
	}
	return WEIR_SESSION_UP;
}

void weir_session_stat(struct weir_session *session, struct weir_stat *stat)
{
	weir_nic_lock(session->nic);
	session->stat.state = state_of(session);
	session->stat.window_waits = session->engine.waits;
	*stat = session->stat;
	weir_nic_unlock(session->nic);
}
EXPORT_SYMBOL_GPL(weir_session_stat);
