// SPDX-License-Identifier: GPL-2.0-only
#include <linux/sched/mm.h>

#include "kernel/blk/target.h"
#include "kernel/blk/memory.h"
#include "kernel/blk/pool/pool.h"

static struct workqueue_struct *join_wq;

/* Return: 0, and the caller owes @session a kweir_session_close(); or an errno without a session.
 */
static int connect_target(struct weir_blk_target *target, struct kweir_session **session,
			  struct kweir_error *error)
{
	struct weir_blk_volume *volume = target->volume;
	int rc = kweir_session_new(&target->address, &volume->options, volume->key, session, error);

	if (rc)
		return rc;
	mutex_lock(&volume->sessions);
	target->coming = *session;
	if (volume->closing)
		kweir_session_abandon(*session);
	mutex_unlock(&volume->sessions);
	rc = kweir_session_connect(*session, error);
	mutex_lock(&volume->sessions);
	target->coming = NULL;
	mutex_unlock(&volume->sessions);
	if (rc)
		kweir_session_close(*session);
	return rc;
}

/* Gives @session to the target and tells the core. With @volume->maintenance held. */
static int use_session(struct weir_blk_target *target, struct kweir_session *session,
		       struct kweir_error *error)
{
	struct weir_blk_volume *volume = target->volume;
	u8 number = target - volume->target;

	mutex_lock(&volume->sessions);
	smp_store_release(&target->session, session); /* weir_blk_targets_poll() reads it */
	if (volume->closing)
		kweir_session_abandon(session);
	mutex_unlock(&volume->sessions);
	spin_lock_bh(&volume->lock);
	if (volume->pool)
		target->is_failed = false;
	else
		weir_borrow_session(&volume->borrow, number, WEIR_EXTENTS_DONOR_UP);
	spin_unlock_bh(&volume->lock);
	return volume->pool ? 0 : weir_blk_memory_query_room(volume, number, error);
}

int weir_blk_target_open(struct weir_blk_target *target, struct kweir_error *error)
{
	struct kweir_session *session;
	int rc = connect_target(target, &session, error);

	return rc ? rc : use_session(target, session, error);
}

/* A pool's donor that has started again has other memory: it is another donor. */
static int connect_wanted(struct weir_blk_target *target, struct kweir_session **session)
{
	u64 wanted = READ_ONCE(target->incarnation);
	struct kweir_error error = {};
	int rc = connect_target(target, session, &error);
	bool is_news;

	if (rc == -EKEYREJECTED && target->volume->pool)
		weir_blk_pool_refused(target->volume, &error);
	if (!rc && wanted && kweir_session_incarnation(*session) != wanted) {
		kweir_session_close(*session);
		rc = -ESTALE;
	}
	is_news = rc && rc != READ_ONCE(target->connect_status);
	WRITE_ONCE(target->connect_status, rc);
	if (is_news)
		weir_blk_volume_kick(target->volume);
	return rc;
}

static void try_to_connect(struct weir_blk_target *target)
{
	struct weir_blk_volume *volume = target->volume;
	struct kweir_session *session;
	int rc;

	if (READ_ONCE(volume->closing) || READ_ONCE(target->session) ||
	    connect_wanted(target, &session))
		return;
	kweir_session_set_answer_timeout(session, weir_blk_volume_answer_ms(volume));
	mutex_lock(&volume->maintenance);
	rc = use_session(target, session, NULL);
	mutex_unlock(&volume->maintenance);
	if (!rc && !volume->pool)
		pr_info("weir: %pISpc is connected again, without data\n", &target->address);
	weir_blk_volume_kick(volume);
}

static void join(struct work_struct *work)
{
	unsigned int flags = memalloc_noio_save();

	try_to_connect(container_of(to_delayed_work(work), struct weir_blk_target, join));
	memalloc_noio_restore(flags);
}

void weir_blk_target_init(struct weir_blk_target *target, struct weir_blk_volume *volume,
			  const struct sockaddr_storage *address)
{
	target->volume = volume;
	if (address)
		target->address = *address;
	INIT_DELAYED_WORK(&target->join, join);
}

void weir_blk_target_connect_soon(struct weir_blk_target *target, unsigned int ms)
{
	queue_delayed_work(join_wq, &target->join, msecs_to_jiffies(ms));
}

bool weir_blk_target_stop_connecting(struct weir_blk_target *target)
{
	cancel_delayed_work(&target->join);
	if (!work_busy(&target->join.work))
		return true;
	mutex_lock(&target->volume->sessions);
	if (target->coming)
		kweir_session_abandon(target->coming);
	mutex_unlock(&target->volume->sessions);
	return false;
}

void weir_blk_target_abandon(struct weir_blk_target *target)
{
	if (target->session)
		kweir_session_abandon(target->session);
	if (target->coming)
		kweir_session_abandon(target->coming);
}

void weir_blk_target_add_stat(struct kweir_stat *sum, const struct kweir_stat *stat)
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

/* queue_rq() runs under RCU: a submitter may still serve the session after its io has ended. */
void weir_blk_target_close(struct weir_blk_target *target)
{
	struct weir_blk_volume *volume = target->volume;
	struct kweir_session *session = target->session;
	struct kweir_stat stat;

	if (!session)
		return;
	kweir_session_stat(session, &stat);
	mutex_lock(&volume->sessions);
	weir_blk_target_add_stat(&target->past, &stat);
	WRITE_ONCE(target->session, NULL);
	mutex_unlock(&volume->sessions);
	synchronize_rcu();
	kweir_session_close(session);
}

int weir_blk_targets_poll(struct weir_blk_volume *volume)
{
	int found = 0;
	u8 i;

	rcu_read_lock();
	for (i = 0; i < volume->core.nr_donors; i++) {
		struct kweir_session *session = READ_ONCE(volume->target[i].session);

		if (session)
			found += kweir_session_poll(session);
	}
	rcu_read_unlock();
	return found;
}

int weir_blk_targets_init(void)
{
	join_wq = alloc_workqueue("weir_join", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	return join_wq ? 0 : -ENOMEM;
}

void weir_blk_targets_exit(void)
{
	if (join_wq)
		destroy_workqueue(join_wq);
}
