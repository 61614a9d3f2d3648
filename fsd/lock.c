/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "fsd/client.h"
#include "fsd/data/file.h"
#include "fsd/inode.h"
#include "fsd/lock.h"

#define WAITS_MAX 1024 /* per client */
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

/* The lock that conflicts with @wanted, or NULL. */
static struct fsd_lock *conflict(const struct fsd_inode *inode, const struct fsd_lock *wanted)
{
	struct fsd_lock *lock;

	TAILQ_FOREACH(lock, &inode->locks, entry) {
		if (lock->flock == wanted->flock && overlap(lock, wanted) &&
		    !same_owner(lock, wanted) && (lock->type == F_WRLCK || wanted->type == F_WRLCK))
			return lock;
	}
	return NULL;
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
	fsd_uncharge(fsd, sizeof(*lock));
	free(lock);
}

static struct fsd_lock *lock_new(struct fsd *fsd)
{
	struct fsd_lock *lock;

	if (fsd_charge(fsd, sizeof(*lock)))
		return NULL;
	lock = calloc(1, sizeof(*lock));
	if (!lock)
		fsd_uncharge(fsd, sizeof(*lock));
	return lock;
}

int fsd_lock_add(struct fsd *fsd, struct fsd_inode *inode, const struct fsd_lock *lock)
{
	struct fsd_lock *new = lock_new(fsd);

	if (!new)
		return -ENOLCK;
	*new = *lock;
	TAILQ_INSERT_TAIL(&inode->locks, new, entry);
	return 0;
}

/*
 * Adjusts the owner's existing locks to @new: locks of the same type are merged into @new, locks of
 * the other type are cut. A hole cut into a lock splits the lock and uses *@spare.
 */
static void make_way(struct fsd *fsd, struct fsd_inode *inode, struct fsd_lock *new,
		     struct fsd_lock **spare)
{
	struct fsd_lock *lock, *next;

	for (lock = TAILQ_FIRST(&inode->locks); lock; lock = next) {
		next = TAILQ_NEXT(lock, entry);
		if (!same_owner(lock, new) || !adjoin(lock, new))
			continue;
		if (lock->type == new->type) {
			if (lock->start < new->start)
				new->start = lock->start;
			if (lock->end > new->end)
				new->end = lock->end;
		} else if (!overlap(lock, new)) {
			continue;
		} else if (lock->start < new->start) {
			if (lock->end > new->end) {
				**spare = *lock;
				(*spare)->start = new->end + 1;
				TAILQ_INSERT_AFTER(&inode->locks, lock, *spare, entry);
				*spare = NULL;
			}
			lock->end = new->start - 1;
			continue;
		} else if (lock->end > new->end) {
			lock->start = new->end + 1;
			continue;
		}
		TAILQ_REMOVE(&inode->locks, lock, entry);
		lock_free(fsd, lock);
	}
}

/* Applies a lock that has no conflict. */
static int apply_lock(struct fsd *fsd, struct fsd_inode *inode, const struct fsd_lock *wanted)
{
	struct fsd_lock *lock = lock_new(fsd), *spare = lock_new(fsd);
	int rc = -ENOLCK;

	if (lock && spare) {
		*lock = *wanted;
		make_way(fsd, inode, lock, &spare);
		if (lock->type != F_UNLCK) {
			TAILQ_INSERT_TAIL(&inode->locks, lock, entry);
			lock = NULL;
		}
		rc = 0;
	}
	if (lock)
		lock_free(fsd, lock);
	if (spare)
		lock_free(fsd, spare);
	return rc;
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
	client->nr_waits--;
	if (status) {
		fsd_client_answer(client, wait->call, status);
	} else {
		fsd_lock_reply(client, wait->inode, &locked);
		host->answer(host->arg, wait->call, &locked, sizeof(locked));
	}
	free(wait);
}

/* Grants waiting locks after a lock was removed or weakened. First come, first served. */
static void wake_waiters(struct fsd *fsd, struct fsd_inode *inode)
{
	struct fsd_wait *wait = TAILQ_FIRST(&inode->waits);

	while (wait) {
		if (conflict(inode, &wait->wanted)) {
			wait = TAILQ_NEXT(wait, of_inode);
			continue;
		}
		wait_end(wait, apply_lock(fsd, inode, &wait->wanted));
		/* The grant may have weakened the owner's previous lock: start again. */
		wait = TAILQ_FIRST(&inode->waits);
	}
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
			if (same_owner(&wait->wanted, blocker))
				break;
		}
		blocker = wait ? conflict(wait->inode, &wait->wanted) : NULL;
	}
	return false;
}

int fsd_lock_wait_add(struct fsd_inode *inode, const struct fsd_lock *wanted, uint64_t cancel,
		      void *call)
{
	struct fsd_client *client = wanted->client;
	struct fsd_wait *wait;

	if (client->nr_waits >= WAITS_MAX)
		return -ENOLCK;
	wait = calloc(1, sizeof(*wait));
	if (!wait)
		return -ENOMEM;
	wait->inode = inode;
	wait->wanted = *wanted;
	wait->cancel = cancel;
	wait->call = call;
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

	nothing.type = F_UNLCK;
	if (!apply_lock(fsd, inode, &nothing))
		wake_waiters(fsd, inode);
}

int fsd_lock_set(struct fsd_client *client, struct fsd_inode *inode,
		 const struct wire_fs_lock *lock, void *call, bool *later)
{
	struct fsd *fsd = client->fsd;
	struct fsd_lock wanted;
	int rc = parse_lock(client, lock, &wanted);

	if (rc)
		return rc;
	if (wanted.type == F_UNLCK || !conflict(inode, &wanted)) {
		rc = apply_lock(fsd, inode, &wanted);
		if (!rc)
			wake_waiters(fsd, inode);
		return rc;
	}
	if (!(lock->flags & FS_LOCK_WAIT) || !call)
		return -EAGAIN;
	if (!wanted.flock && deadlocks(inode, &wanted))
		return -EDEADLK;
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
	struct fsd_lock *lock, *next_lock;

	for (wait = TAILQ_FIRST(&client->waits); wait; wait = next_wait) {
		next_wait = TAILQ_NEXT(wait, of_client);
		if (wait->inode == inode)
			wait_end(wait, -EINTR);
	}
	for (lock = TAILQ_FIRST(&inode->locks); lock; lock = next_lock) {
		next_lock = TAILQ_NEXT(lock, entry);
		if (lock->client != client)
			continue;
		TAILQ_REMOVE(&inode->locks, lock, entry);
		lock_free(client->fsd, lock);
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
