/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Write-back of attributes, and the choice between local and the donor's attributes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/inode/inode.h"
#include "apps/mount/sealed/size.h"

#define SECTOR 512u
#define NSEC 1000000000u /* per second */

/* Whether the donor lacks local changes: its size may be too small. */
static bool is_ahead(const struct inode *inode)
{
	return inode->dirty || inode->set || inode->committing;
}

bool inode_is_current(struct inode *inode)
{
	bool current;

	pthread_mutex_lock(&inode->lock);
	current = !inode->frees_blocks && sharing_knows(&inode->mount->share, inode->known);
	pthread_mutex_unlock(&inode->lock);
	return current;
}

double inode_cache_seconds(struct inode *inode, unsigned int phase)
{
	if (atomic_load(&inode->written_past))
		return 0;
	return sharing_cache_seconds(&inode->mount->share, phase);
}

static bool is_before(const struct wire_fs_time *a, const struct wire_fs_time *b)
{
	return a->sec < b->sec || (a->sec == b->sec && a->nsec < b->nsec);
}

/* Replies may overtake each other between threads of this client. */
static bool is_older(const struct wire_fs_attr *attr, const struct wire_fs_attr *known)
{
	if (attr->change != known->change)
		return attr->change < known->change;
	return is_before(&attr->ctime, &known->ctime);
}

/* Takes the donor's attributes, except for local changes that the donor may not have. */
static void take_attr(struct inode *inode, const struct wire_fs_attr *attr)
{
	const struct wire_fs_attr known = inode->attr;
	uint32_t kept = inode->set | inode->sent;

	inode->attr = *attr;
	if (kept & FS_SET_MODE)
		inode->attr.mode = known.mode;
	if (kept & FS_SET_UID)
		inode->attr.uid = known.uid;
	if (kept & FS_SET_GID)
		inode->attr.gid = known.gid;
	if (kept & FS_SET_ATIME)
		inode->attr.atime = known.atime;
	if (kept & FS_SET_MTIME)
		inode->attr.mtime = known.mtime;
	if (kept & FS_SET_CTIME && is_before(&attr->ctime, &known.ctime))
		inode->attr.ctime = known.ctime;
}

/* Inode's lock held. */
static void note_known(struct inode *inode, unsigned int phase)
{
	if (phase != SHARING_NO_PHASE)
		inode->known = phase;
}

/* Inode's lock held. */
static void learn(struct inode *inode, const struct wire_fs_attr *attr, unsigned int phase)
{
	if (is_older(attr, &inode->attr))
		return;
	inode->size = attr->size > inode->end ? attr->size : inode->end;
	take_attr(inode, attr);
	note_known(inode, phase);
}

void inode_learn(struct inode *inode, const struct wire_fs_attr *attr, unsigned int phase)
{
	pthread_mutex_lock(&inode->lock);
	learn(inode, attr, phase);
	pthread_mutex_unlock(&inode->lock);
}

/*
 * The local time of a change that the donor does not have may be later than the donor's time of
 * this operation. Such attributes look old, but say of links what the local ones do not.
 */
void inode_learn_changed(struct mount *m, const struct wire_fs_attr *attr, unsigned int phase)
{
	struct inode *inode = inode_get(m, attr->ino);

	if (!inode)
		return;
	pthread_mutex_lock(&inode->lock);
	if (!attr->mode || (is_older(attr, &inode->attr) && (inode->set || inode->sent)))
		inode->known = SHARING_NO_PHASE;
	else
		learn(inode, attr, phase);
	if (!attr->mode) /* it is gone */
		inode->attr.nlink = 0;
	pthread_mutex_unlock(&inode->lock);
	inode_put(inode, 1);
}

void inode_doubt_links(struct inode *inode)
{
	pthread_mutex_lock(&inode->lock);
	inode->known = SHARING_NO_PHASE;
	pthread_mutex_unlock(&inode->lock);
}

/*
 * The kernel's pages and size contain this client's changes. They stay valid if no other client
 * changed the file meanwhile, that is, if attr.change grew by one.
 */
static void advance_kernel(struct inode *inode, const struct wire_fs_attr *attr)
{
	if (attr->change == inode->pages + 1)
		inode->pages = attr->change;
	if (attr->change == inode->sized + 1)
		inode->sized = attr->change;
}

void inode_learn_size(struct inode *inode, const struct wire_fs_attr *attr, unsigned int phase)
{
	pthread_mutex_lock(&inode->lock);
	advance_kernel(inode, attr);
	inode->size = attr->size;
	inode->end = 0;
	inode->told = attr->size;
	inode->sent &= ~FS_SET_MTIME; /* truncation sets a later mtime */
	take_attr(inode, attr);
	note_known(inode, phase);
	pthread_mutex_unlock(&inode->lock);
}

void attr_stat(const struct wire_fs_attr *attr, struct stat *st)
{
	*st = (struct stat){
		.st_ino = attr->ino,
		.st_mode = attr->mode,
		.st_nlink = attr->nlink,
		.st_uid = attr->uid,
		.st_gid = attr->gid,
		.st_rdev = attr->rdev,
		.st_size = (off_t)attr->size,
		.st_blksize = FS_BLOCK,
		.st_blocks = (blkcnt_t)attr->blocks,
		.st_atim = { attr->atime.sec, attr->atime.nsec },
		.st_mtim = { attr->mtime.sec, attr->mtime.nsec },
		.st_ctim = { attr->ctime.sec, attr->ctime.nsec },
	};
}

/* Most blocks that a file of this size can have. */
static uint64_t blocks_max(uint64_t size)
{
	return (size + FS_BLOCK - 1) / FS_BLOCK * (FS_BLOCK / SECTOR);
}

void inode_stat(struct inode *inode, struct stat *st)
{
	uint64_t blocks;

	pthread_mutex_lock(&inode->lock);
	attr_stat(&inode->attr, st);
	if (is_ahead(inode)) {
		blocks = inode->attr.blocks + blocks_max(inode->written);
		if (blocks > blocks_max(inode->size))
			blocks = blocks_max(inode->size);
		if (blocks > inode->attr.blocks)
			st->st_blocks = (blkcnt_t)blocks;
	}
	st->st_size = (off_t)inode->size;
	if (inode->mount->sealed && S_ISREG(inode->attr.mode))
		st->st_size = (off_t)sealed_size(inode->size);
	pthread_mutex_unlock(&inode->lock);
}

void inode_attr(struct inode *inode, struct wire_fs_attr *attr)
{
	pthread_mutex_lock(&inode->lock);
	*attr = inode->attr;
	pthread_mutex_unlock(&inode->lock);
}

struct wire_fs_time inode_changed_now(struct inode *inode)
{
	struct wire_fs_time *ctime = &inode->attr.ctime;
	struct timespec clock;
	struct wire_fs_time now;

	clock_gettime(CLOCK_REALTIME, &clock);
	now = (struct wire_fs_time){ .sec = clock.tv_sec, .nsec = (uint32_t)clock.tv_nsec };
	if (is_before(ctime, &now)) {
		*ctime = now;
	} else if (++ctime->nsec == NSEC) {
		ctime->nsec = 0;
		ctime->sec++;
	}
	inode->set |= FS_SET_CTIME;
	return now;
}

void inode_wrote(struct inode *inode, uint64_t end, uint64_t length)
{
	pthread_mutex_lock(&inode->lock);
	inode->attr.mtime = inode_changed_now(inode);
	inode->set |= FS_SET_MTIME;
	inode->written += length;
	inode->dirty = true;
	if (end > inode->end)
		inode->end = end;
	if (end > inode->size)
		inode->size = end;
	pthread_mutex_unlock(&inode->lock);
}

void inode_stored(struct inode *inode, const struct wire_fs_attr *attr)
{
	pthread_mutex_lock(&inode->lock);
	advance_kernel(inode, attr);
	pthread_mutex_unlock(&inode->lock);
	inode_learn(inode, attr, SHARING_NO_PHASE);
}

/*
 * Whether the donor has more blocks than the file needs, or a commit without a reply yet will tell
 * so. The last close frees the rest.
 */
static bool has_blocks_ahead(const struct inode *inode)
{
	return inode->committing || inode->attr.blocks > blocks_max(inode->size);
}

/*
 * @closes: a close, whose reply also tells the blocks left. Inode's lock held. Return: true if
 * there are changes to send; the caller then owes a commit_end().
 */
static bool take_changes(struct inode *inode, struct wire_fs_setattr *commit, bool closes)
{
	if (!inode->dirty && !inode->set && !(closes && has_blocks_ahead(inode)))
		return false;
	*commit = (struct wire_fs_setattr){
		.head = { .op = FS_SETATTR, .ino = inode->ino },
		.mask = inode->set,
		.mode = inode->attr.mode,
		.uid = inode->attr.uid,
		.gid = inode->attr.gid,
		.atime = inode->attr.atime,
		.mtime = inode->attr.mtime,
		.ctime = inode->attr.ctime,
	};
	if (inode->dirty) {
		commit->head.op = FS_COMMIT;
		commit->size = inode->end;
		inode->sent |= FS_SET_SIZE;
		inode->told = true;
	}
	if (closes) {
		commit->head.op = FS_CLOSE;
		/* a commit under way may be overtaken; the donor frees what is beyond the size */
		if (inode->committing)
			commit->size = inode->end;
		inode->frees_blocks |= has_blocks_ahead(inode);
	}
	inode->sent |= inode->set;
	inode->set = 0;
	inode->dirty = false;
	inode->committing++;
	return true;
}

static bool commit_begin(struct inode *inode, struct wire_fs_setattr *commit, bool closes)
{
	bool any;

	pthread_mutex_lock(&inode->lock);
	any = take_changes(inode, commit, closes);
	pthread_mutex_unlock(&inode->lock);
	return any;
}

static void commit_end(struct inode *inode, const struct wire_fs_attr *attr)
{
	pthread_mutex_lock(&inode->lock);
	if (!--inode->committing) {
		inode->sent = 0;
		inode->frees_blocks = false;
		if (!inode->dirty)
			inode->end = 0;
	}
	if (!attr) { /* accept the donor's next ctime, whatever its value */
		inode->attr.ctime = (struct wire_fs_time){ 0 };
		inode->known = SHARING_NO_PHASE;
	}
	if (attr) {
		advance_kernel(inode, attr);
		inode->written = 0;
		/* at once: without @end, an older reply in flight would make the file shorter */
		learn(inode, attr, SHARING_NO_PHASE);
	}
	pthread_mutex_unlock(&inode->lock);
}

static bool is_committing(struct inode *inode)
{
	bool committing;

	pthread_mutex_lock(&inode->lock);
	committing = inode->committing;
	pthread_mutex_unlock(&inode->lock);
	return committing;
}

/* Returns and clears the error of earlier commits. */
static int take_earlier_error(struct inode *inode)
{
	int rc;

	pthread_mutex_lock(&inode->lock);
	rc = inode->error;
	inode->error = 0;
	pthread_mutex_unlock(&inode->lock);
	return rc;
}

/*
 * The donor may have the commit or not, if it has not answered. Sending it again does no harm, and
 * avoids a spurious error at the next close.
 */
static void commit_again_later(struct inode *inode)
{
	pthread_mutex_lock(&inode->lock);
	inode->dirty |= inode->sent & FS_SET_SIZE;
	inode->set |= inode->sent & ~(FS_SET_SIZE | FS_SET_CTIME);
	pthread_mutex_unlock(&inode->lock);
}

/* @in_doubt: receives whether the donor did not answer: the changes are still to be sent. */
static int commit_and_wait(struct inode *inode, struct fuse_req *req, bool *in_doubt)
{
	struct donor_message q;
	struct wire_fs_setattr *commit =
		call_begin(&q, FS_COMMIT, inode->ino, sizeof(*commit), req);
	struct wire_fs_attr attr;
	int rc = 0;

	*in_doubt = false;
	if (commit_begin(inode, commit, false)) {
		rc = call_attr(inode->mount, &q, &attr);
		*in_doubt = q.is_in_doubt;
		if (rc == -EINTR || *in_doubt)
			commit_again_later(inode);
		commit_end(inode, rc ? NULL : &attr);
	} else if (is_committing(inode)) {
		/* A call after the commit in flight is answered after the commit. */
		call_begin(&q, FS_GETATTR, inode->ino, sizeof(struct wire_fs_head), req);
		rc = call_attr(inode->mount, &q, &attr);
		*in_doubt = q.is_in_doubt;
	}
	return rc;
}

int inode_commit(struct inode *inode, struct fuse_req *req)
{
	bool in_doubt;
	int rc = commit_and_wait(inode, req, &in_doubt);
	int earlier = take_earlier_error(inode);

	if (!rc)
		rc = change_log_settle(inode->mount, req);
	if (!rc && change_log_has_lost(inode->mount, inode->named))
		rc = -EIO;
	return rc ? rc : earlier;
}

int inode_grow(struct inode *inode, uint64_t end)
{
	bool grows;

	pthread_mutex_lock(&inode->lock);
	grows = end > inode->attr.size && (inode->told || inode->attr.size);
	pthread_mutex_unlock(&inode->lock);
	if (!grows)
		return 0;
	inode_wrote(inode, end, 0);
	return inode_commit(inode, NULL);
}

static void commit_failed(struct inode *inode, int rc)
{
	pthread_mutex_lock(&inode->lock);
	inode->error = rc;
	pthread_mutex_unlock(&inode->lock);
}

static void commit_answered(void *arg, int status, const void *reply, size_t length)
{
	struct inode *inode = arg;
	struct mount *m = inode->mount;
	bool in_doubt = call_is_in_doubt(status);
	struct wire_fs_attr attr;

	status = call_status(status, reply, length, sizeof(attr));
	if (!status)
		memcpy(&attr, (const char *)reply + sizeof(struct wire_fs_reply), sizeof(attr));
	else if (in_doubt)
		commit_again_later(inode);
	else
		commit_failed(inode, status);
	commit_end(inode, status ? NULL : &attr);
	if (in_doubt)
		inode_owe(inode, 0);
	inode_put(inode, 1);
	mount_end(m);
}

/* Ends with a commit_end(). Return: 0, or -EIO: not sent, and still to be committed. */
static int send_commit(struct inode *inode, const struct wire_fs_setattr *commit)
{
	struct mount *m = inode->mount;

	mount_begin(m);
	inode_ref(inode);
	if (!call_later(m, commit, sizeof(*commit), call_timeout_ns(m), commit_answered, inode))
		return 0;
	if (atomic_load(&m->is_down))
		commit_failed(inode, -EIO);
	else
		commit_again_later(inode);
	commit_end(inode, NULL);
	inode_put(inode, 1);
	mount_end(m);
	return -EIO;
}

/*
 * Takes changes and adds these to the log with the same lock, so that a close by another thread
 * comes later. Return: whether there were any.
 */
static bool log_commit(struct inode *inode, struct change *change, bool closes)
{
	struct mount *m = inode->mount;
	bool any;

	change->fn = commit_answered;
	change->arg = inode;
	mount_begin(m);
	inode_ref(inode);
	pthread_mutex_lock(&inode->lock);
	any = take_changes(inode, (struct wire_fs_setattr *)change->message, closes);
	if (any)
		change_log_add(m, change);
	pthread_mutex_unlock(&inode->lock);
	if (any) {
		change_log_full(m);
		return true;
	}
	free(change);
	inode_put(inode, 1);
	mount_end(m);
	return false;
}

/*
 * Sends changes, or logs them. Return: 0, or -EIO: not sent. @any: receives whether there were any
 */
static int commit_without_waiter(struct inode *inode, bool closes, bool *any)
{
	struct mount *m = inode->mount;
	struct wire_fs_setattr commit = { .mask = 0 };
	struct change *change = NULL;
	int rc;

	if (change_log_takes(m))
		change = change_new(&commit, sizeof(commit));
	if (change) {
		*any = log_commit(inode, change, closes);
		return 0;
	}
	pthread_rwlock_rdlock(&m->share.sending);
	*any = commit_begin(inode, &commit, closes);
	rc = *any ? send_commit(inode, &commit) : 0;
	pthread_rwlock_unlock(&m->share.sending);
	return rc;
}

void inode_commit_ahead(struct inode *inode)
{
	bool any;

	if (commit_without_waiter(inode, false, &any))
		inode_owe(inode, 0);
}

static int send_release(struct mount *m, const struct wire_fs_head *release)
{
	int rc;

	mount_begin(m);
	rc = change_log_send(m, release, sizeof(*release), 0, call_ignore_reply, m);
	if (rc)
		mount_end(m);
	return rc;
}

void inode_close(struct inode *inode)
{
	const struct wire_fs_head release = { .op = FS_RELEASE, .ino = inode->ino };
	bool any;
	int rc = commit_without_waiter(inode, true, &any);

	if (!any)
		rc = send_release(inode->mount, &release);
	if (rc)
		inode_owe(inode, 1);
}

int inode_flush(struct inode *inode)
{
	const atomic_bool *shared = &inode->mount->share.shared;

	if (!atomic_load(shared)) {
		inode_commit_ahead(inode);
		/* Otherwise FS_SHARED may have been sent since, and another client may look. */
		if (!atomic_load(shared))
			return take_earlier_error(inode);
	}
	return inode_commit(inode, NULL);
}

static bool is_dirty(struct inode *inode)
{
	bool dirty;

	pthread_mutex_lock(&inode->lock);
	dirty = inode->dirty || inode->set;
	pthread_mutex_unlock(&inode->lock);
	return dirty;
}

int inode_flush_last(struct inode *inode)
{
	bool in_doubt;
	int rc, earlier;

	if (change_log_takes(inode->mount) && sharing_is_alone(&inode->mount->share)) {
		if (is_dirty(inode))
			inode_owe_soon(inode);
		/* Otherwise FS_SHARED may have been sent since, and another client may look. */
		if (sharing_is_alone(&inode->mount->share))
			return take_earlier_error(inode);
	}
	rc = commit_and_wait(inode, NULL, &in_doubt);
	earlier = take_earlier_error(inode);
	if (in_doubt && !atomic_load(&inode->mount->is_down) &&
	    !atomic_load(&inode->mount->share.shared)) {
		inode_owe(inode, 0);
		rc = 0;
	}
	return rc ? rc : earlier;
}
