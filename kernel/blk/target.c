// SPDX-License-Identifier: GPL-2.0-only
#include <linux/sched/mm.h>

#include "kernel/blk/target.h"
#include "kernel/blk/memory.h"

#define JOIN_MS 1000 /* between one try and the next */

static struct workqueue_struct *join_wq;

/* Return: 0, and the caller owes @session a weir_session_close(); or it is gone. */
static int connect(struct weir_blk_member *member, struct weir_session **session,
		   struct weir_error *error)
{
	struct weir_blk_volume *volume = member->volume;
	int rc = weir_session_new(&member->address, &volume->options, volume->key, session, error);

	if (rc)
		return rc;
	mutex_lock(&volume->sessions);
	member->coming = *session;
	if (volume->closing)
		weir_session_abandon(*session);
	mutex_unlock(&volume->sessions);
	rc = weir_session_connect(*session, error);
	mutex_lock(&volume->sessions);
	member->coming = NULL;
	mutex_unlock(&volume->sessions);
	if (rc)
		weir_session_close(*session);
	return rc;
}

/* It is the member's from now on, and the core is told so. As whoever holds @volume->tending. */
static int begin(struct weir_blk_member *member, struct weir_session *session,
		 struct weir_error *error)
{
	struct weir_blk_volume *volume = member->volume;
	u8 number = member - volume->member;

	mutex_lock(&volume->sessions);
	smp_store_release(&member->session, session); /* weir_members_poll() reads it */
	if (volume->closing)
		weir_session_abandon(session);
	mutex_unlock(&volume->sessions);
	spin_lock_bh(&volume->lock);
	weir_volume_donor_up(&volume->core, number);
	spin_unlock_bh(&volume->lock);
	return weir_memory_look_for_room(volume, number, error);
}

int weir_member_open(struct weir_blk_member *member, struct weir_error *error)
{
	struct weir_session *session;
	int rc = connect(member, &session, error);

	return rc ? rc : begin(member, session, error);
}

static void try_to_join(struct weir_blk_member *member)
{
	struct weir_blk_volume *volume = member->volume;
	struct weir_session *session;
	int rc;

	if (READ_ONCE(volume->closing) || READ_ONCE(member->session) ||
	    connect(member, &session, NULL))
		return;
	weir_session_patience(session, weir_blk_volume_patience_ms(volume));
	mutex_lock(&volume->tending);
	rc = begin(member, session, NULL);
	mutex_unlock(&volume->tending);
	if (!rc)
		pr_info("weir: %pISpc is there again, and empty\n", &member->address);
	weir_blk_volume_kick(volume);
}

static void join(struct work_struct *work)
{
	unsigned int flags = memalloc_noio_save();

	try_to_join(container_of(to_delayed_work(work), struct weir_blk_member, join));
	memalloc_noio_restore(flags);
}

void weir_member_init(struct weir_blk_member *member, struct weir_blk_volume *volume,
		      const struct sockaddr_storage *address)
{
	member->volume = volume;
	member->address = *address;
	INIT_DELAYED_WORK(&member->join, join);
}

void weir_member_join(struct weir_blk_member *member)
{
	queue_delayed_work(join_wq, &member->join, msecs_to_jiffies(JOIN_MS));
}

void weir_member_abandon(struct weir_blk_member *member)
{
	if (member->session)
		weir_session_abandon(member->session);
	if (member->coming)
		weir_session_abandon(member->coming);
}

void weir_member_add_stat(struct weir_stat *sum, const struct weir_stat *stat)
{
	sum->ios += stat->ios;
	sum->requests += stat->requests;
	sum->work_requests += stat->work_requests;
	sum->doorbells += stat->doorbells;
	sum->merged += stat->merged;
	sum->completions += stat->completions;
	sum->events += stat->events;
	sum->empty_polls += stat->empty_polls;
	sum->polled += stat->polled;
	sum->window_waits += stat->window_waits;
	sum->retries += stat->retries;
	sum->reconnects += stat->reconnects;
	sum->errors += stat->errors;
	sum->bytes_read += stat->bytes_read;
	sum->bytes_written += stat->bytes_written;
}

/* Who has pushed an io may be serving the session still: queue_rq() is under RCU. */
void weir_member_close(struct weir_blk_member *member)
{
	struct weir_blk_volume *volume = member->volume;
	struct weir_session *session = member->session;
	struct weir_stat stat;

	if (!session)
		return;
	weir_session_stat(session, &stat);
	mutex_lock(&volume->sessions);
	weir_member_add_stat(&member->past, &stat);
	WRITE_ONCE(member->session, NULL);
	member->is_silent = false;
	mutex_unlock(&volume->sessions);
	synchronize_rcu();
	weir_session_close(session);
}

int weir_members_poll(struct weir_blk_volume *volume)
{
	int found = 0;
	u8 i;

	rcu_read_lock();
	for (i = 0; i < volume->core.nr_donors; i++) {
		struct weir_session *session = READ_ONCE(volume->member[i].session);

		if (session)
			found += weir_session_poll(session);
	}
	rcu_read_unlock();
	return found;
}

int weir_members_init(void)
{
	join_wq = alloc_workqueue("weir_join", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	return join_wq ? 0 : -ENOMEM;
}

void weir_members_exit(void)
{
	if (join_wq)
		destroy_workqueue(join_wq);
}
