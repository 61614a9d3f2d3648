// SPDX-License-Identifier: GPL-2.0-only
#include <linux/ktime.h>
#include <linux/random.h>
#include <linux/sched/mm.h>

#include "kernel/weir/conn.h"
#include "kernel/weir/reconnect.h"
#include "kernel/weir/session.h"

/* Between attempts; many clients of one donor break at once, and should not come back at once. */
#define PAUSE_MS_MIN 10
#define PAUSE_MS_MAX 1000

struct workqueue_struct *weir_connect_wq;

/* What the donor says when it lets channel 0 in for the first time counts for the session. */
static int agree(struct weir_session *session, const struct wire_welcome *welcome,
		 struct weir_error *error)
{
	if (!session->id) {
		session->id = welcome->session_id;
		session->incarnation = welcome->incarnation;
	}
	if (welcome->session_id == session->id && welcome->incarnation == session->incarnation)
		return 0;
	return weir_fail(error, -ESTALE, "%s is not the donor it was", session->peer);
}

/* The moment in which a connection becomes everybody's. With nic->lock held. */
static int link_up(struct weir_link *link, struct weir_conn *conn,
		   const struct wire_welcome *welcome, struct weir_error *error)
{
	struct weir_session *session = link->session;
	int rc;

	if (!weir_session_is_mendable(session) || conn->gone)
		return weir_fail(error, -EAGAIN, "%s ended the connection", session->peer);
	rc = agree(session, welcome, error);
	if (!rc && !link->number)
		rc = weir_mail_up(&session->mail, welcome);
	if (!rc)
		rc = weir_engine_channel_up(&session->engine, link->number, session->options.depth);
	if (rc)
		return rc;
	weir_window_tick(&session->nic->window, ktime_get_ns());
	link->conn = conn;
	link->unsignalled = 0;
	session->stat.reconnects += link->state == WEIR_LINK_BROKEN;
	link->state = WEIR_LINK_UP;
	weir_keepalive_begin(session, ktime_get_ns());
	if (!link->number)
		weir_mail_go_on(&session->mail);
	weir_session_feed(session);
	return 0;
}

static int connect(struct weir_link *link, struct weir_error *error)
{
	struct weir_nic *nic = link->session->nic;
	struct weir_conn *old = link->conn, *conn;
	struct wire_welcome welcome;
	int rc;

	rc = weir_conn_open(link, &conn, &welcome, error);
	if (rc)
		return rc;
	nic = link->session->nic; /* found with the first */
	weir_nic_lock(nic);
	rc = link_up(link, conn, &welcome, error);
	weir_nic_unlock_and_tell(nic);
	/* The old one only now: its end would tell the donor that we have left. */
	weir_conn_free(rc ? conn : old);
	return rc;
}

int weir_link_connect(struct weir_link *link, struct weir_error *error)
{
	unsigned int flags;
	int rc;

	if (!weir_session_enter(link->session))
		return weir_fail(error, -ECANCELED, "the session has ended");
	flags = memalloc_noio_save();
	rc = connect(link, error);
	memalloc_noio_restore(flags);
	weir_session_leave(link->session);
	return rc;
}

/* After it the device has let go of all that was posted. */
static void bury(struct weir_link *link)
{
	struct weir_nic *nic = link->session->nic;

	weir_conn_bury(link->conn);
	weir_nic_lock(nic);
	weir_link_forget(link, ktime_get_ns());
	link->state = WEIR_LINK_BROKEN;
	weir_nic_unlock_and_tell(nic);
}

/* For good; what waits for it ends. */
static void end(struct weir_link *link)
{
	struct weir_nic *nic = link->session->nic;

	weir_nic_lock(nic);
	link->state = WEIR_LINK_DOWN;
	weir_engine_channel_down(&link->session->engine, link->number);
	weir_session_feed(link->session);
	weir_nic_unlock_and_tell(nic);
	weir_conn_free(link->conn);
	link->conn = NULL;
}

/* Where trying again is useless: the donor has ended, or has forgotten us, or is another. */
static bool is_final(int status)
{
	return status == -ESTALE || status == -ECONNREFUSED || status == -EKEYREJECTED ||
	       status == -EPROTONOSUPPORT || status == -ECANCELED || status == -ENODEV;
}

static void try_later(struct weir_link *link)
{
	link->pause_ms = clamp(2 * link->pause_ms, PAUSE_MS_MIN, PAUSE_MS_MAX);
	mod_delayed_work(weir_connect_wq, &link->mend,
			 msecs_to_jiffies(link->pause_ms / 2 +
					  get_random_u32() % (link->pause_ms / 2)));
}

/* Its first link to find out says so. */
static void give_up(struct weir_session *session, int why)
{
	bool is_news;

	weir_nic_lock(session->nic);
	is_news = !session->lost;
	weir_session_lose(session, why);
	weir_nic_unlock(session->nic);
	if (is_news)
		pr_err("weir: %s is lost (%d), and what it held with it\n", session->peer, why);
}

static void mend(struct weir_link *link)
{
	struct weir_session *session = link->session;
	struct weir_error error;
	int rc;

	/* Others wait for what is in flight there: to connect comes after all that is to be buried. */
	if (READ_ONCE(link->state) == WEIR_LINK_FAILING) {
		bury(link);
		mod_delayed_work(weir_connect_wq, &link->mend, 0);
		return;
	}
	if (link->state != WEIR_LINK_BROKEN)
		return;
	if (!weir_session_is_mendable(session)) {
		end(link);
		return;
	}
	rc = weir_link_connect(link, &error);
	if (!rc)
		pr_info("weir: %s: channel %u is connected anew\n", session->peer, link->number);
	else if (is_final(rc) || ktime_get_ns() >= link->give_up_ns)
		give_up(session, rc);
	else
		try_later(link);
}

/* A device that is told to destroy a QP may allocate for that, too. */
void weir_mend(struct work_struct *work)
{
	unsigned int flags = memalloc_noio_save();

	mend(container_of(to_delayed_work(work), struct weir_link, mend));
	memalloc_noio_restore(flags);
}

int weir_mend_init(void)
{
	weir_connect_wq = alloc_workqueue("weir_connect", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	return weir_connect_wq ? 0 : -ENOMEM;
}

void weir_mend_exit(void)
{
	destroy_workqueue(weir_connect_wq);
}
