/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The giver hands a contended lock directly to the oldest waiter, and pays for a wake-up if waiters
 * sleep.
 */
#include "sim/cpu/lock.h"
#include "sim/nic/profile.h"

void sim_lock_init(struct sim_lock *lock, bool sleeps)
{
	*lock = (struct sim_lock){ .sleeps = sleeps };
	weir_list_init(&lock->waiters);
}

bool sim_lock_try(struct sim_lock *lock, struct sim_thread *self)
{
	sim_thread_run(self, self->host->profile->lock_ps);
	if (lock->owner)
		return false;
	lock->owner = self;
	lock->takes++;
	return true;
}

void sim_lock_take(struct sim_lock *lock, struct sim_thread *self)
{
	if (sim_lock_try(lock, self))
		return;
	lock->takes++;
	lock->contended++;
	lock->nr_waiters++;
	weir_list_add_tail(&lock->waiters, &self->wait_link);
	if (lock->sleeps)
		sim_thread_call(self, 0);
	while (lock->owner != self) {
		if (lock->sleeps)
			sim_thread_sleep(self, SIM_NEVER);
		else
			sim_thread_spin(self, SIM_NEVER);
	}
}

void sim_lock_give(struct sim_lock *lock, struct sim_thread *self)
{
	const struct sim_profile *p = self->host->profile;
	struct sim_thread *next;

	if (weir_list_is_empty(&lock->waiters)) {
		lock->owner = NULL;
		return;
	}
	next = weir_list_entry(lock->waiters.next, struct sim_thread, wait_link);
	weir_list_del(&next->wait_link);
	lock->nr_waiters--;
	lock->owner = next;
	if (!lock->sleeps) {
		sim_thread_poke(next, p->handoff_ps + lock->nr_waiters * p->handoff_waiter_ps);
		return;
	}
	sim_thread_wake(next);
	sim_thread_call(self, p->wake_call_ps);
}
