// SPDX-License-Identifier: GPL-2.0-only
#include <linux/ktime.h>
#include <linux/random.h>
#include <linux/sched/mm.h>

#include "kernel/weir/conn.h"
#include "kernel/weir/reconnect.h"
#include "kernel/weir/session.h"

struct workqueue_struct *kweir_connect_wq;

/* The first WELCOME on channel 0 defines the donor for the session. */
static int accept_welcome(struct kweir_session *session,
			  const struct wire_handshake_welcome *welcome, struct kweir_error *error)
{
	if (!session->id) {
		session->id = welcome->session_id;
		session->incarnation = welcome->incarnation;
	}
	if (welcome->session_id == session->id && welcome->incarnation == session->incarnation)
		return 0;
	return kweir_fail(error, -ESTALE, "%s is no longer the same donor", session->peer);
}

/* Publishes a new connection. With nic->lock held. */
static int link_up(struct kweir_link *link, struct kweir_conn *conn,
		   const struct wire_handshake_welcome *welcome, struct kweir_error *error)
{
	struct kweir_session *session = link->session;
	int rc;

	if (!kweir_session_may_reconnect(session) || conn->gone)
		return kweir_fail(error, -EAGAIN, "%s ended the connection", session->peer);
	rc = accept_welcome(session, welcome, error);
	if (!rc && !link->number)
		rc = kweir_control_link_up(&session->control, welcome);
	if (!rc)
		rc = weir_engine_channel_up(&session->engine, link->number, session->options.depth);
	if (rc)
		return rc;
	weir_window_tick(&session->nic->window, ktime_get_ns());
	link->conn = conn;
	session->stat.reconnects += link->core.state == WEIR_LINK_BROKEN;
	weir_link_up(&link->core);
	weir_keepalive_start(&session->keepalive, session->stat.work_requests, ktime_get_ns());
	if (!link->number)
		kweir_control_read_early(&session->control);
	kweir_session_schedule(session);
	return 0;
}

static int connect(struct kweir_link *link, struct kweir_error *error)
{
	struct kweir_nic *nic = link->session->nic;
	struct kweir_conn *old = link->conn, *conn;
	struct wire_handshake_welcome welcome;
	int rc;

	rc = kweir_conn_open(link, &conn, &welcome, error);
	if (rc)
		return rc;
	nic = link->session->nic; /* found by the first connection */
	kweir_nic_lock(nic);
	rc = link_up(link, conn, &welcome, error);
	kweir_nic_unlock_and_complete(nic);
	/* The old connection ends only now: an earlier end would tell the donor that the session
	 * has left. */
	kweir_conn_free(rc ? conn : old);
	return rc;
}

int kweir_link_connect(struct kweir_link *link, struct kweir_error *error)
{
	unsigned int flags;
	int rc;

	if (!kweir_session_enter(link->session))
		return kweir_fail(error, -ECANCELED, "the session has ended");
	flags = memalloc_noio_save();
	rc = connect(link, error);
	memalloc_noio_restore(flags);
	kweir_session_leave(link->session);
	return rc;
}

/* Afterwards the device holds none of the posted memory. */
static void destroy_qp(struct kweir_link *link)
{
	struct kweir_nic *nic = link->session->nic;

	kweir_conn_destroy_qp(link->conn);
	kweir_nic_lock(nic);
	kweir_link_forget(link, ktime_get_ns());
	weir_link_settle(&link->core, true, true);
	kweir_nic_unlock_and_complete(nic);
}

/* Ends the link for good; everything that waits for the link ends, too. */
static void end(struct kweir_link *link)
{
	struct kweir_nic *nic = link->session->nic;

	kweir_nic_lock(nic);
	weir_link_settle(&link->core, true, false);
	weir_engine_channel_down(&link->session->engine, link->number);
	kweir_session_schedule(link->session);
	kweir_nic_unlock_and_complete(nic);
	kweir_conn_free(link->conn);
	link->conn = NULL;
}

/* -ENODEV here means that the device has been removed. */
static bool may_try_again(struct kweir_link *link, int status, u64 now_ns)
{
	return status != -ENODEV &&
	       weir_reconnect_failed(&link->attempts, status, get_random_u32(), now_ns);
}

/* The first link to notice reports the loss. */
static void give_up(struct kweir_session *session, int why)
{
	bool is_news;

	kweir_nic_lock(session->nic);
	is_news = !session->lost;
	kweir_session_lose(session, why);
	kweir_nic_unlock(session->nic);
	if (is_news)
		pr_err("weir: %s is lost (%d), with all regions held there\n", session->peer, why);
}

static void reconnect(struct kweir_link *link)
{
	struct kweir_session *session = link->session;
	struct kweir_error error;
	u64 now_ns;
	int rc;

	/* Destroying the failed QP comes before connecting: other requests wait for the WRs in
	 * flight there. */
	if (READ_ONCE(link->core.state) == WEIR_LINK_FAILING) {
		destroy_qp(link);
		mod_delayed_work(kweir_connect_wq, &link->reconnect, 0);
		return;
	}
	if (link->core.state != WEIR_LINK_BROKEN)
		return;
	if (!kweir_session_may_reconnect(session)) {
		end(link);
		return;
	}
	rc = kweir_link_connect(link, &error);
	now_ns = ktime_get_ns();
	if (!rc)
		pr_info("weir: %s: channel %u is connected again\n", session->peer, link->number);
	else if (may_try_again(link, rc, now_ns))
		mod_delayed_work(kweir_connect_wq, &link->reconnect,
				 nsecs_to_jiffies(link->attempts.next_ns - now_ns));
	else
		give_up(session, rc);
}

/* A device may allocate memory to destroy a QP, too. */
void kweir_reconnect_work(struct work_struct *work)
{
	unsigned int flags = memalloc_noio_save();

	reconnect(container_of(to_delayed_work(work), struct kweir_link, reconnect));
	memalloc_noio_restore(flags);
}

int kweir_reconnect_init(void)
{
	kweir_connect_wq = alloc_workqueue("weir_connect", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	return kweir_connect_wq ? 0 : -ENOMEM;
}

void kweir_reconnect_exit(void)
{
	destroy_workqueue(kweir_connect_wq);
}
