/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Locks, held at the donor. Programs on several clients synchronise through locks: a change of a
 * lock first commits this client's writes, and a grant corrects the kernel's pages and size.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/fuse/kernel_cache.h"
#include "apps/mount/fuse/ops.h"

/* A lock request until it is granted or refused. */
struct waiter {
	struct mount *mount;
	struct inode *inode;
	fuse_req_t req;
	uint64_t cancel;
	bool locks; /* false: an unlock */
	struct wire_fs_locked locked; /* once granted */
};

static struct wire_fs_lock make_lock(uint64_t ino, uint64_t owner, const struct flock *lock)
{
	return (struct wire_fs_lock){
		.head = { .ino = ino },
		.owner = owner,
		.start = (uint64_t)lock->l_start,
		.end = lock->l_len ? (uint64_t)lock->l_start + (uint64_t)lock->l_len - 1 :
				     UINT64_MAX,
		.type = (uint32_t)lock->l_type,
		.pid = (uint32_t)lock->l_pid,
	};
}

void op_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock)
{
	struct donor_message q;
	struct wire_fs_lock *get = call_begin(&q, FS_GETLK, ino, sizeof(*get), req);
	struct wire_fs_head head = *(struct wire_fs_head *)get;
	struct donor_reply reply;
	struct wire_fs_lock found;
	int rc;

	*get = make_lock(ino, fi->lock_owner, lock);
	get->head = head;
	rc = call(mount_of(req), &q, &reply, sizeof(found));
	if (rc) {
		op_reply(req, rc);
		return;
	}
	memcpy(&found, call_reply_body(&reply), sizeof(found));
	lock->l_type = (short)found.type;
	lock->l_whence = SEEK_SET;
	lock->l_start = (off_t)found.start;
	lock->l_len = found.end > INT64_MAX ? 0 : (off_t)(found.end - found.start + 1);
	lock->l_pid = (pid_t)found.pid;
	fuse_reply_lock(req, lock);
}

static void reply_granted(struct waiter *w)
{
	fuse_reply_err(w->req, 0);
	inode_put(w->inode, 1);
	free(w);
}

static void refresh_and_grant(struct deferred_work *work)
{
	struct waiter *w;

	memcpy(&w, work->arg, sizeof(w));
	kernel_cache_refresh(w->inode, &w->locked);
	reply_granted(w);
	deferred_work_free(work);
}

/* The holder of a lock must see what the last holder wrote. */
static void granted(struct waiter *w)
{
	inode_learn(w->inode, &w->locked.attr, SHARING_NO_PHASE);
	if (!w->locks || w->mount->sealed || !atomic_load(&w->mount->share.shared) ||
	    !kernel_cache_is_stale(w->inode, &w->locked) ||
	    deferred_work_add(w->mount, refresh_and_grant, &w, sizeof(w)))
		reply_granted(w);
}

static void end_wait(struct waiter *w, int status, const void *reply)
{
	if (!status) {
		memcpy(&w->locked, reply, sizeof(w->locked));
		granted(w);
		return;
	}
	op_reply(w->req, status);
	inode_put(w->inode, 1);
	free(w);
}

#define LOCKED_BODY (sizeof(struct wire_fs_locked) - sizeof(struct wire_fs_reply))

static void answered(void *arg, int status, const void *reply, size_t length)
{
	struct waiter *w = arg;

	fuse_req_interrupt_func(w->req, NULL, NULL);
	end_wait(w, call_status(status, reply, length, LOCKED_BODY), reply);
}

/* Held while a request is sent, so that its cancel cannot reach the donor first. */
static pthread_mutex_t sending = PTHREAD_MUTEX_INITIALIZER;

static void cancel(struct deferred_work *work)
{
	struct wire_fs_lock lock;

	memcpy(&lock, work->arg, sizeof(lock));
	pthread_mutex_lock(&sending);
	pthread_mutex_unlock(&sending);
	call_without_reply(work->mount, &lock, sizeof(lock));
	deferred_work_free(work);
}

/* Called on a signal. libfuse holds the request, but the reply may arrive concurrently. */
static void interrupted(fuse_req_t req, void *arg)
{
	struct waiter *w = arg;
	const struct wire_fs_lock lock = {
		.head = { .op = FS_CANCELLK, .ino = w->inode->ino },
		.cancel = w->cancel,
	};

	(void)req;
	(void)deferred_work_add(w->mount, cancel, &lock, sizeof(lock));
}

/* Requests a lock without a timeout. */
static void wait_for_lock(struct waiter *w, const struct wire_fs_lock *lock)
{
	int rc;

	pthread_mutex_lock(&sending);
	fuse_req_interrupt_func(w->req, interrupted, w);
	rc = call_later(w->mount, lock, sizeof(*lock), UINT64_MAX, answered, w);
	pthread_mutex_unlock(&sending);
	if (rc)
		answered(w, rc, NULL, 0);
}

static void set_lock(fuse_req_t req, struct inode *inode, const struct wire_fs_lock *lock)
{
	static atomic_ullong cancels;
	struct waiter *w = malloc(sizeof(*w));
	struct donor_message q;
	struct donor_reply reply;
	struct wire_fs_lock *set = call_begin(&q, FS_SETLK, inode->ino, sizeof(*set), req);
	struct wire_fs_head head = set->head;

	if (!w) {
		op_reply(req, -ENOMEM);
		return;
	}
	*w = (struct waiter){
		.mount = mount_of(req),
		.inode = inode,
		.req = req,
		.cancel = atomic_fetch_add(&cancels, 1) + 1,
		.locks = lock->type != F_UNLCK,
	};
	*set = *lock;
	set->head = head;
	set->cancel = w->cancel;

	inode_ref(inode);
	inode_commit_ahead(inode);
	if (lock->flags & FS_LOCK_WAIT)
		wait_for_lock(w, set);
	else
		end_wait(w, call(w->mount, &q, &reply, LOCKED_BODY), reply.bytes);
}

void op_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock,
	      int sleep)
{
	struct inode *inode = file_inode(fi);
	struct wire_fs_lock set = make_lock(ino, fi->lock_owner, lock);

	set.flags = sleep ? FS_LOCK_WAIT : 0;
	pthread_mutex_lock(&inode->lock);
	inode->posix_locks = true;
	pthread_mutex_unlock(&inode->lock);
	set_lock(req, inode, &set);
}

void op_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op)
{
	struct wire_fs_lock set = {
		.head = { .ino = ino },
		.owner = fi->lock_owner,
		.end = UINT64_MAX,
		.flags = FS_LOCK_FLOCK | (op & LOCK_NB ? 0 : FS_LOCK_WAIT),
	};

	switch (op & ~LOCK_NB) {
	case LOCK_SH:
		set.type = F_RDLCK;
		break;
	case LOCK_EX:
		set.type = F_WRLCK;
		break;
	case LOCK_UN:
		set.type = F_UNLCK;
		set.flags = FS_LOCK_FLOCK;
		break;
	default:
		op_reply(req, -EINVAL);
		return;
	}
	set_lock(req, file_inode(fi), &set);
}

void lock_drop(struct inode *inode, uint64_t owner, bool flock)
{
	struct wire_fs_lock drop = {
		.head = { .op = FS_SETLK, .ino = inode->ino },
		.owner = owner,
		.end = UINT64_MAX,
		.type = F_UNLCK,
		.flags = flock ? FS_LOCK_FLOCK : 0,
	};

	/*
	 * A one-way message could be dropped while the donor stalls, and the lock would stay
	 * forever.
	 */
	call_without_reply(inode->mount, &drop, sizeof(drop));
}
