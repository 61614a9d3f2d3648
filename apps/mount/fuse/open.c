/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Open files, with close-to-open consistency: a close makes a client's writes visible to all.
 *
 * While this client is alone, the donor's reply to an open has the file's map, so that small files
 * need no further question. Beside other clients, a map held before its use does harm: a write that
 * follows another client's truncation must ask.
 */
#include <errno.h>
#include <string.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/fuse/local.h"
#include "apps/mount/fuse/ops.h"
#include "apps/mount/fuse/privilege.h"
#include "apps/mount/sealed/sealed.h"

/* The donor has counted the open: from now until the last release, this client may hold maps. */
static void note_open(struct inode *inode, uint64_t change, struct fuse_file_info *fi)
{
	pthread_mutex_lock(&inode->lock);
	inode->opens++;
	fi->fh = file_handle(inode, fi->flags);
	/* The kernel may keep its pages if no other client has changed the file. */
	fi->keep_cache = change == inode->pages;
	inode->pages = change;
	pthread_mutex_unlock(&inode->lock);
}

static bool wants_map(const struct mount *m)
{
	return !m->is_pool && !atomic_load(&m->share.shared);
}

/*
 * Learns the map of a reply in @phase. The caller has entered the gate, or nobody else knows the
 * file yet. Without a map, or with a wrong one, transfers ask. @map: as for inode_learn_map()
 */
static void learn_first_map(struct inode *inode, const void *map, size_t length, unsigned int phase)
{
	struct wire_fs_map learned;

	if (length <= sizeof(learned.reply) || phase == SHARING_NO_PHASE)
		return;
	pthread_mutex_lock(&inode->lock);
	inode->map_unused |= !inode->map.nr;
	if (inode->holes_phase != phase)
		map_doubt_holes(&inode->map);
	inode->holes_phase = phase;
	if (!inode_learn_map(inode, map, length, 0, &learned))
		inode->first_blocks = !inode->size && learned.extents;
	pthread_mutex_unlock(&inode->lock);
}

/* The same, of the map after @attrs attributes. */
static void learn_replied_map(struct inode *inode, const struct donor_reply *reply,
			      unsigned int attrs, unsigned int phase)
{
	const size_t at = attrs * sizeof(struct wire_fs_attr);

	if (reply->length > at)
		learn_first_map(inode, reply->bytes + at, reply->length - at, phase);
}

static void note_close(struct inode *inode)
{
	pthread_mutex_lock(&inode->lock);
	if (!--inode->opens) {
		map_forget(&inode->map);
		inode->posix_locks = inode->first_blocks = inode->mapped = false;
		if (!atomic_load(&inode->nr_grants))
			atomic_store(&inode->written_past, false);
	}
	pthread_mutex_unlock(&inode->lock);
}

/*
 * The kernel has released a handle, or did not get it. The kernel waits for its own transfers, but
 * not for those of programs that post them.
 */
static void close_file(struct inode *inode)
{
	bool waits = atomic_load(&inode->nr_grants);

	if (waits)
		inode_enter_writing(inode);
	note_close(inode);
	if (waits)
		inode_leave(inode);
	inode_close(inode);
}

/* Without the donor. Return: whether the file was made; @inode is NULL without memory. */
static bool create_here(fuse_req_t req, struct inode *dir, const char *name, mode_t mode,
			struct fuse_file_info *fi, struct inode **inode, unsigned int *phase)
{
	struct reserved_file file;

	if (!local_create(req, (struct local_side){ dir, name }, mode, &file, inode, phase))
		return false;
	if (!*inode)
		return true; /* the donor's count of opens stays too high until the unmount */
	note_open(*inode, file.attr.change, fi);
	learn_first_map(*inode, file.map, file.map_length, *phase);
	return true;
}

/* Return: 0, or an errno for the program. */
static int create_file(fuse_req_t req, struct inode *dir, const char *name, mode_t mode,
		       struct fuse_file_info *fi, struct inode **inode, unsigned int *phase)
{
	struct mount *m = dir->mount;
	struct donor_message q;
	struct wire_fs_make *make = call_begin(&q, FS_MAKE, dir->ino, sizeof(*make), req);
	struct wire_fs_attr attrs[2]; /* the file's, the directory's */
	struct donor_reply reply;
	int rc = call_add_name(&q, name);

	make->mode = (mode & ~(mode_t)S_IFMT) | S_IFREG;
	make->make = FS_MAKE_OPEN | (fi->flags & O_EXCL ? FS_MAKE_EXCLUSIVE : 0) |
		     (wants_map(m) ? FS_MAKE_MAP : 0);
	names_begin_change(dir);
	if (!rc)
		rc = entry_change(m, &q, &reply, attrs, 2);
	entry_added(dir, rc, q.phase, name, attrs[0].ino);
	*phase = q.phase;
	if (rc)
		return rc;
	sealed_was_made(m, attrs[0].ino);
	*inode = inode_add(m, &attrs[0], q.phase);
	if (!*inode)
		return -ENOMEM; /* the donor's count of opens stays too high until the unmount */
	note_open(*inode, attrs[0].change, fi);
	learn_replied_map(*inode, &reply, 2, q.phase);
	return 0;
}

void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	       struct fuse_file_info *fi)
{
	struct inode *dir = op_inode(req, parent), *inode;
	struct fuse_entry_param entry;
	unsigned int phase;
	int rc;

	if (!dir)
		return;
	pthread_rwlock_rdlock(&dir->mount->opening);
	if (create_here(req, dir, name, mode, fi, &inode, &phase))
		rc = inode ? 0 : -ENOMEM;
	else
		rc = create_file(req, dir, name, mode, fi, &inode, &phase);
	pthread_rwlock_unlock(&dir->mount->opening);
	inode_put(dir, 1);
	if (rc) {
		op_reply(req, rc);
		return;
	}
	entry_fill(inode, &entry, phase);
	if (fuse_reply_create(req, &entry, fi)) {
		close_file(inode);
		inode_put(inode, 1);
	}
}

static void learn_opened(struct inode *inode, const struct donor_reply *reply, unsigned int phase,
			 struct fuse_file_info *fi)
{
	struct wire_fs_attr attr;

	memcpy(&attr, call_reply_body(reply), sizeof(attr));
	if (fi->flags & O_TRUNC) {
		if (inode->mount->sealed)
			sealed_was_cut(inode, 0);
		inode_learn_size(inode, &attr, phase);
	} else {
		inode_learn(inode, &attr, phase);
	}
	note_open(inode, attr.change, fi);
	learn_replied_map(inode, reply, 1, phase);
}

void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct mount *m = mount_of(req);
	struct inode *inode = op_inode(req, ino);
	struct donor_message q;
	struct wire_fs_open *open = call_begin(&q, FS_OPEN, ino, sizeof(*open), req);
	bool cuts = fi->flags & O_TRUNC;
	struct donor_reply reply;
	int rc;

	if (!inode)
		return;
	open->flags = (uint32_t)fi->flags;
	open->open = wants_map(m) ? FS_OPEN_MAP : 0;
	pthread_rwlock_rdlock(&m->opening);
	if (cuts) {
		privilege_check(req, inode);
		inode_enter_alone(inode);
		if (m->sealed)
			(void)sealed_cut(inode, 0); /* cuts no block, and always can */
	} else {
		inode_enter_shared(inode);
	}
	inode_commit_ahead(inode);
	rc = call(m, &q, &reply, sizeof(struct wire_fs_attr));
	if (rc == -EIO || rc == -EINTR)
		sharing_forget(&m->share);
	if (!rc)
		learn_opened(inode, &reply, q.phase, fi);
	inode_leave(inode);
	pthread_rwlock_unlock(&m->opening);
	if (rc)
		op_reply(req, rc);
	else if (fuse_reply_open(req, fi))
		close_file(inode);
	inode_put(inode, 1);
}

void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct inode *inode = file_inode(fi);
	bool locks;
	int rc;

	(void)ino;
	direct_closes(inode);
	rc = inode_flush_last(inode);
	pthread_mutex_lock(&inode->lock);
	locks = inode->posix_locks;
	pthread_mutex_unlock(&inode->lock);
	if (locks) {
		inode_commit_ahead(inode);
		lock_drop(inode, fi->lock_owner, false);
	}
	op_reply(req, rc);
}

/* A write replies after the donor has the data, so only size and times are left to commit. */
void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	op_reply(req, inode_commit(file_inode(fi), req));
}

/* Names change without a file that is open. */
void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	(void)fi;
	op_reply(req, change_log_settle(mount_of(req), req));
}

void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct inode *inode = file_inode(fi);

	(void)ino;
	if (fi->flock_release) {
		inode_commit_ahead(inode);
		lock_drop(inode, fi->lock_owner, true);
	}
	close_file(inode);
	fuse_reply_err(req, 0);
}
