/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "fsd/client.h"
#include "fsd/data/file.h"
#include "fsd/inode.h"
#include "fsd/lock.h"

#define CHAIN_MAX 64 /* owners that wait for each other */

static bool same_owner(const struct fsd_lock *a, const struct fsd_lock *b)
{
	return a->client == b->client && a->owner == b->owner && a->flock == b->flock;
}

static bool overlap(const struct fsd_lock *a, const struct fsd_lock *b)
{
	return a->start <= b->end && b->start <= a->end;
}

static bool adjoin(const struct fsd_lock *a, const struct fsd_lock *b)
{
	return overlap(a, b) || (b->start && a->end == b->start - 1) ||
	       (a->start && b->end == a->start - 1);
}

/* The first lock from @lock on that conflicts with @wanted, or NULL. */
static struct fsd_lock *next_conflict(struct fsd_lock *lock, const struct fsd_lock *wanted)
{
	for (; lock; lock = TAILQ_NEXT(lock, entry)) {
		wanted->client->fsd->lock_steps++;
		if (lock->type != F_UNLCK && lock->flock == wanted->flock &&
		    overlap(lock, wanted) && !same_owner(lock, wanted) &&
		    (lock->type == F_WRLCK || wanted->type == F_WRLCK))
			break;
	}
	return lock;
}

static struct fsd_lock *conflict(const struct fsd_inode *inode, const struct fsd_lock *wanted)
{
	return next_conflict(TAILQ_FIRST(&inode->locks), wanted);
}

static int parse_lock(struct fsd_client *client, const struct wire_fs_lock *lock,
		      struct fsd_lock *out)
{
	if (lock->start > lock->end || lock->flags & ~(FS_LOCK_FLOCK | FS_LOCK_WAIT))
		return -EINVAL;
	if (lock->type != F_RDLCK && lock->type != F_WRLCK && lock->type != F_UNLCK)
		return -EINVAL;
	*out = (struct fsd_lock){
		.client = client,
		.owner = lock->owner,
		.start = lock->start,
		.end = lock->end,
		.type = lock->type,
		.pid = lock->pid,
		.flock = lock->flags & FS_LOCK_FLOCK,
	};
	if (out->flock) {
		out->start = 0;
		out->end = UINT64_MAX;
	}
	return 0;
}

int fsd_lock_get(struct fsd_client *client, struct fsd_inode *inode, struct wire_fs_lock *lock)
{
	struct fsd_lock wanted, *found;
	int rc = parse_lock(client, lock, &wanted);

	if (rc)
		return rc;
	found = wanted.type == F_UNLCK ? NULL : conflict(inode, &wanted);
	if (!found) {
		lock->type = F_UNLCK;
		return 0;
	}
	lock->owner = found->owner;
	lock->start = found->start;
	lock->end = found->end;
	lock->type = found->type;
	lock->pid = found->pid;
	return 0;
}

static void lock_free(struct fsd *fsd, struct fsd_lock *lock)
{
	if (!lock)
		return;
	lock_free(fsd, lock->spare);
	fsd_uncharge(fsd, sizeof(*lock));
	free(lock);
}

static struct fsd_lock *lock_new(struct fsd *fsd, enum fsd_meta_use use)
{
	struct fsd_lock *lock;

	if (fsd_charge_for(fsd, use, sizeof(*lock)))
		return NULL;
	lock = calloc(1, sizeof(*lock));
	if (!lock)
		fsd_uncharge(fsd, sizeof(*lock));
	return lock;
}

static void count_lock(struct fsd_inode *inode, const struct fsd_lock *lock)
{
	inode->nr_locks++;
	lock->client->nr_locks++;
}

/* A released lock stays in the list, as F_UNLCK, until its waiters have gone on from there. */
static void release_lock(struct fsd_inode *inode, struct fsd_lock *lock)
{
	inode->nr_locks--;
	lock->client->nr_locks--;
	lock->type = F_UNLCK;
}

static void free_released(struct fsd *fsd, struct fsd_inode *inode)
{
	struct fsd_lock *lock, *next;

	for (lock = TAILQ_FIRST(&inode->locks); lock; lock = next) {
		next = TAILQ_NEXT(lock, entry);
		if (lock->type != F_UNLCK)
			continue;
		TAILQ_REMOVE(&inode->locks, lock, entry);
		lock_free(fsd, lock);
	}
}

static bool may_grow(const struct fsd_inode *inode, const struct fsd_client *client, int more)
{
	return (int)inode->nr_locks + more <= FSD_FILE_LOCKS_MAX &&
	       (int)client->nr_locks + more <= FSD_CLIENT_LOCKS_MAX;
}

int fsd_lock_add(struct fsd *fsd, struct fsd_inode *inode, const struct fsd_lock *lock,
		 bool has_spare)
{
	struct fsd_lock *new, *spare = NULL;

	if (inode->nr_locks >= 2 * FSD_FILE_LOCKS_MAX ||
	    lock->client->nr_locks >= 2 * FSD_CLIENT_LOCKS_MAX)
		return -ENOLCK;
	new = lock_new(fsd, FSD_META_LOCK);
	if (has_spare)
		spare = lock_new(fsd, FSD_META_LOCK);
	if (!new || (has_spare && !spare)) {
		lock_free(fsd, new);
		lock_free(fsd, spare);
		return -ENOMEM;
	}
	*new = *lock;
	new->spare = spare;
	TAILQ_INSERT_TAIL(&inode->locks, new, entry);
	count_lock(inode, new);
	return 0;
}

/*
 * How many locks more the owner has when make_way() has made room for @new. 0, too, if an owner of
 * one lock unlocks any bytes: always allowed, at most doubling a bound.
 */
static int growth(const struct fsd_inode *inode, const struct fsd_lock *new)
{
	const struct fsd_lock *lock;
	int more = new->type != F_UNLCK, owned = 0;

	TAILQ_FOREACH(lock, &inode->locks, entry) {
		new->client->fsd->lock_steps++;
		if (lock->type == F_UNLCK || !same_owner(lock, new))
			continue;
		owned++;
		if (lock->type == new->type) {
			more -= adjoin(lock, new);
		} else if (overlap(lock, new)) {
			more += lock->start < new->start && lock->end > new->end;
			more -= lock->start >= new->start && lock->end <= new->end;
		}
	}
	return new->type == F_UNLCK && owned == 1 ? 0 : more;
}

/* A new lock, and the rest of a lock that the new one splits. */
enum { GROWTH_MAX = 2 };

/* A change that leaves no more locks than before is always allowed: an owner can unlock. */
static bool has_room(const struct fsd_inode *inode, const struct fsd_lock *wanted)
{
	int more = may_grow(inode, wanted->client, GROWTH_MAX) ? 0 : growth(inode, wanted);

	return more <= 0 || may_grow(inode, wanted->client, more);
}

/* Whether the next request will have few enough pairs of a lock and a waiting request before it. */
static bool has_pairs(const struct fsd_inode *inode, int more_locks, int more_waits)
{
	return ((int)inode->nr_locks + more_locks) * ((int)inode->nr_waits + more_waits) <=
	       FSD_FILE_PAIRS_MAX;
}

static bool may_lock(const struct fsd_inode *inode, const struct fsd_lock *wanted)
{
	int more = growth(inode, wanted);

	return more <= 0 || has_pairs(inode, more, 0);
}

/* What make_way() leaves: the owner's @nr locks, @lock being one; @released: another, or NULL. */
struct remains {
	struct fsd_lock *lock, *released;
	int nr;
	bool changed;
};

/* Splits @lock around @hole. Return: 0; -ENOLCK no memory: nothing changed. */
static int split_lock(struct fsd_inode *inode, struct fsd_lock *lock, const struct fsd_lock *hole,
		      struct fsd_lock **spare)
{
	struct fsd_lock *rest = *spare;

	if (!rest) {
		rest = lock->spare ? lock->spare : lock_new(lock->client->fsd, FSD_META_OPEN);
		lock->spare = NULL;
	}
	if (!rest)
		return -ENOLCK;
	*spare = NULL;
	*rest = *lock;
	rest->spare = NULL;
	rest->start = hole->end + 1;
	TAILQ_INSERT_AFTER(&inode->locks, lock, rest, entry);
	count_lock(inode, rest);
	return 0;
}

/*
 * Adjusts the owner's existing locks to @new: locks of the same type are merged into @new, locks of
 * the other type are cut. A lock that is split uses *@spare, or its own. That lock alone has bytes
 * of @new, so a failure changes nothing.
 */
static int make_way(struct fsd_inode *inode, struct fsd_lock *new, struct fsd_lock **spare,
		    struct remains *remains)
{
	struct fsd_lock *lock, *next;

	for (lock = TAILQ_FIRST(&inode->locks); lock; lock = next) {
		next = TAILQ_NEXT(lock, entry);
		new->client->fsd->lock_steps++;
		if (lock->type == F_UNLCK || !same_owner(lock, new))
			continue;
		if (lock->type == new->type && adjoin(lock, new)) {
			if (lock->start < new->start)
				new->start = lock->start;
			if (lock->end > new->end)
				new->end = lock->end;
		} else if (lock->type == new->type || !overlap(lock, new)) {
			remains->lock = lock;
			remains->nr++;
			continue;
		}
		if (lock->type != new->type && lock->start < new->start) {
			if (lock->end > new->end) {
				if (split_lock(inode, lock, new, spare))
					return -ENOLCK;
				remains->nr++;
			}
			lock->end = new->start - 1;
		} else if (lock->type != new->type && lock->end > new->end) {
			lock->start = new->end + 1;
		} else {
			release_lock(inode, lock);
			remains->released = lock;
		}
		remains->changed = true;
		if (lock->type != F_UNLCK) {
			remains->lock = lock;
			remains->nr++;
		}
	}
	return 0;
}

/* The only lock that an unlock leaves to its owner gets a spare, for one that is soon freed. */
static void keep_spare(struct fsd *fsd, const struct remains *remains)
{
	if (remains->nr != 1 || !remains->released || remains->lock->spare)
		return;
	remains->lock->spare = calloc(1, sizeof(*remains->lock));
	if (remains->lock->spare)
		fsd->meta_bytes += sizeof(*remains->lock);
}

static int apply_unlock(struct fsd *fsd, struct fsd_inode *inode, const struct fsd_lock *wanted,
			bool *changed)
{
	struct fsd_lock unlock = *wanted, *spare = NULL;
	struct remains remains = { 0 };
	int rc = make_way(inode, &unlock, &spare, &remains);

	keep_spare(fsd, &remains);
	*changed = remains.changed;
	return rc;
}

/*
 * Applies a lock that has no conflict. @changed: whether a lock of before was. An unlock may use
 * memory kept back from locks, and needs memory only to split one of several locks.
 */
static int apply_lock(struct fsd *fsd, struct fsd_inode *inode, const struct fsd_lock *wanted,
		      bool *changed)
{
	struct remains remains = { 0 };
	struct fsd_lock *lock, *spare;

	*changed = false;
	if (!has_room(inode, wanted))
		return -ENOLCK;
	if (wanted->type == F_UNLCK)
		return apply_unlock(fsd, inode, wanted, changed);
	lock = lock_new(fsd, FSD_META_LOCK);
	spare = lock_new(fsd, FSD_META_LOCK);
	if (!lock || !spare) {
		lock_free(fsd, lock);
		lock_free(fsd, spare);
		return -ENOLCK;
	}
	*lock = *wanted;
	(void)make_way(inode, lock, &spare, &remains); /* it has a spare */
	*changed = remains.changed;
	TAILQ_INSERT_TAIL(&inode->locks, lock, entry);
	count_lock(inode, lock);
	if (remains.nr)
		lock_free(fsd, spare);
	else
		lock->spare = spare;
	return 0;
}

void fsd_lock_reply(struct fsd_client *client, const struct fsd_inode *inode,
		    struct wire_fs_locked *locked)
{
	*locked = (struct wire_fs_locked){ .reply = fsd_client_reply(client, 0) };
	fsd_inode_attr(inode, &locked->attr);
	if (fsd_inode_is_file(inode))
		locked->last_byte = fsd_file_last_byte(client->fsd, inode);
}

static void wait_end(struct fsd_wait *wait, int status)
{
	struct fsd_client *client = wait->wanted.client;
	const struct fsd_host *host = &client->fsd->host;
	struct wire_fs_locked locked;

	TAILQ_REMOVE(&wait->inode->waits, wait, of_inode);
	TAILQ_REMOVE(&client->waits, wait, of_client);
	wait->inode->nr_waits--;
	client->nr_waits--;
	if (status) {
		fsd_client_answer(client, wait->call, status);
	} else {
		fsd_lock_reply(client, wait->inode, &locked);
		host->answer(host->arg, wait->call, &locked, sizeof(locked));
	}
	free(wait);
}

/*
 * Grants waiting locks after a lock was removed or weakened. First come, first served.
 *
 * No lock before a waiter's blocker conflicts with the waiter: locks only shrink, and new locks
 * come last, or behind the lock of which they are the rest. So a waiter looks for the next blocker
 * behind the last, and passes each lock once.
 */
static void wake_waiters(struct fsd *fsd, struct fsd_inode *inode)
{
	struct fsd_wait *wait, *next;
	bool changed;
	int rc;

	for (wait = TAILQ_FIRST(&inode->waits); wait; wait = next) {
		next = TAILQ_NEXT(wait, of_inode);
		wait->blocker = next_conflict(wait->blocker, &wait->wanted);
		if (wait->blocker)
			continue;
		rc = apply_lock(fsd, inode, &wait->wanted, &changed);
		wait_end(wait, rc);
		if (changed) /* perhaps the blocker of an earlier request */
			next = TAILQ_FIRST(&inode->waits);
	}
	free_released(fsd, inode);
}

/* Whether @wanted's owner would wait for itself through a chain of waiting owners. */
static bool deadlocks(const struct fsd_inode *inode, const struct fsd_lock *wanted)
{
	const struct fsd_lock *blocker = conflict(inode, wanted);
	struct fsd_wait *wait;

	for (int i = 0; i < CHAIN_MAX && blocker; i++) {
		if (same_owner(blocker, wanted))
			return true;
		TAILQ_FOREACH(wait, &blocker->client->waits, of_client) {
			wanted->client->fsd->lock_steps++;
			if (same_owner(&wait->wanted, blocker))
				break;
		}
		blocker = wait ? wait->blocker : NULL;
	}
	return false;
}

int fsd_lock_wait_add(struct fsd_inode *inode, const struct fsd_lock *wanted, uint64_t cancel,
		      void *call)
{
	struct fsd_client *client = wanted->client;
	struct fsd_lock *blocker = conflict(inode, wanted);
	struct fsd_wait *wait;

	if (!blocker)
		return -EINVAL;
	if (inode->nr_waits >= FSD_WAITS_MAX || client->nr_waits >= FSD_WAITS_MAX)
		return -ENOLCK;
	wait = calloc(1, sizeof(*wait));
	if (!wait)
		return -ENOMEM;
	wait->inode = inode;
	wait->wanted = *wanted;
	wait->blocker = blocker;
	wait->cancel = cancel;
	wait->call = call;
	inode->nr_waits++;
	client->nr_waits++;
	TAILQ_INSERT_TAIL(&inode->waits, wait, of_inode);
	TAILQ_INSERT_TAIL(&client->waits, wait, of_client);
	return 0;
}

/*
 * flock(2) releases the old lock before it waits for the new lock. Otherwise two owners could
 * deadlock.
 */
static void give_up_flock(struct fsd *fsd, struct fsd_inode *inode, const struct fsd_lock *wanted)
{
	struct fsd_lock nothing = *wanted;
	bool changed;

	nothing.type = F_UNLCK;
	if (!apply_lock(fsd, inode, &nothing, &changed))
		wake_waiters(fsd, inode);
}

int fsd_lock_set(struct fsd_client *client, struct fsd_inode *inode,
		 const struct wire_fs_lock *lock, void *call, bool *later)
{
	struct fsd *fsd = client->fsd;
	struct fsd_lock wanted;
	bool changed;
	int rc = parse_lock(client, lock, &wanted);

	if (rc)
		return rc;
	if (wanted.type == F_UNLCK || !conflict(inode, &wanted)) {
		if (!may_lock(inode, &wanted))
			return -ENOLCK;
		rc = apply_lock(fsd, inode, &wanted, &changed);
		if (!rc)
			wake_waiters(fsd, inode);
		return rc;
	}
	if (!(lock->flags & FS_LOCK_WAIT) || !call)
		return -EAGAIN;
	if (!wanted.flock && deadlocks(inode, &wanted))
		return -EDEADLK;
	if (!has_pairs(inode, 0, 1))
		return -ENOLCK;
	rc = fsd_lock_wait_add(inode, &wanted, lock->cancel, call);
	if (rc)
		return rc;
	*later = true;
	if (wanted.flock)
		give_up_flock(fsd, inode, &wanted);
	return 0;
}

void fsd_lock_cancel(struct fsd_client *client, struct fsd_inode *inode, uint64_t cancel)
{
	struct fsd_wait *wait;

	TAILQ_FOREACH(wait, &client->waits, of_client) {
		if (wait->inode == inode && wait->cancel == cancel) {
			wait_end(wait, -EINTR);
			return;
		}
	}
}

void fsd_lock_drop(struct fsd_client *client, struct fsd_inode *inode)
{
	struct fsd_wait *wait, *next_wait;
	struct fsd_lock *lock;

	for (wait = TAILQ_FIRST(&inode->waits); wait; wait = next_wait) {
		next_wait = TAILQ_NEXT(wait, of_inode);
		if (wait->wanted.client == client)
			wait_end(wait, -EINTR);
	}
	TAILQ_FOREACH(lock, &inode->locks, entry) {
		if (lock->client != client)
			continue;
		release_lock(inode, lock);
	}
	wake_waiters(client->fsd, inode);
}

void fsd_lock_abandon(struct fsd *fsd, struct fsd_inode *inode)
{
	struct fsd_lock *lock;
	struct fsd_wait *wait;

	while ((lock = TAILQ_FIRST(&inode->locks))) {
		TAILQ_REMOVE(&inode->locks, lock, entry);
		lock_free(fsd, lock);
	}
	while ((wait = TAILQ_FIRST(&inode->waits))) {
		TAILQ_REMOVE(&inode->waits, wait, of_inode);
		free(wait);
	}
}
