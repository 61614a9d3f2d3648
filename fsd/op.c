/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The modules that use ranges and flags check them. The client's kernel checks user permissions.
 * The server cannot: a client that knows the key could access all files anyway.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>

#include "fsd/batch/batch.h"
#include "fsd/check.h"
#include "fsd/client.h"
#include "fsd/data/file.h"
#include "fsd/data/transfer.h"
#include "fsd/handle.h"
#include "fsd/inherit.h"
#include "fsd/inode.h"
#include "fsd/lock.h"
#include "fsd/op.h"
#include "fsd/snapshot/snapshot.h"
#include "fsd/xattr.h"

bool fsd_is_name(struct fsd_text name)
{
	if (!name.length || name.length > FS_NAME_MAX)
		return false;
	if (name.at[0] == '.' && (name.length == 1 || (name.length == 2 && name.at[1] == '.')))
		return false;
	return !memchr(name.at, '/', name.length) && !memchr(name.at, 0, name.length);
}

void *fsd_reply_reserve(struct fsd_request *r, size_t length)
{
	void *at = r->fsd->reply + r->length;

	r->length += length;
	return memset(at, 0, length);
}

void fsd_reply_bytes(struct fsd_request *r, const void *bytes, size_t length)
{
	memcpy(fsd_reply_reserve(r, length), bytes, length);
}

int fsd_reply_attr(struct fsd_request *r, const struct fsd_inode *inode)
{
	struct wire_fs_attr attr;

	fsd_inode_attr(inode, &attr);
	fsd_reply_bytes(r, &attr, sizeof(attr));
	return 0;
}

/* The attributes of an inode that the operation may have freed. */
static void put_attr_of(struct fsd_request *r, uint64_t ino)
{
	const struct fsd_inode *inode = fsd_inode_find(r->fsd, ino);
	const struct wire_fs_attr gone = { .ino = ino };

	if (inode)
		fsd_reply_attr(r, inode);
	else
		fsd_reply_bytes(r, &gone, sizeof(gone));
}

static int do_mount(struct fsd_request *r)
{
	int rc;

	if (r->fixed.mount.magic != FS_MAGIC || !r->call)
		return -EPROTO;
	if (r->fixed.mount.version < FS_VERSION_OLDEST || r->fixed.mount.version > FS_VERSION)
		return -EPROTONOSUPPORT;
	rc = fsd_client_mount(r->client, r->call, r->fixed.head.flags & FS_MOUNT_LEASES);
	r->later = !rc;
	return rc;
}

static int do_volume(struct fsd_request *r)
{
	const struct fsd_space *space = &r->fsd->space;
	uint32_t first = r->fixed.volume.first;

	for (uint32_t i = 0; i < FS_CHUNKS_MAX && first < space->nr_chunks; i++, first++)
		fsd_reply_bytes(r, &space->chunk[first].wire, sizeof(struct wire_fs_chunk));
	return 0;
}

static int do_lookup(struct fsd_request *r)
{
	const struct fsd_inode *inode = fsd_dir_find(r->fsd, r->inode, r->name);

	return inode ? fsd_reply_attr(r, inode) : -ENOENT;
}

static int do_getattr(struct fsd_request *r)
{
	return fsd_reply_attr(r, r->inode);
}

static int do_setattr(struct fsd_request *r)
{
	int rc;

	if (r->fixed.setattr.mask & (FS_SET_SIZE | FS_SET_TRIM))
		fsd_handle_map_forgotten(r->client, r->inode);
	if (r->fixed.setattr.mask & FS_SET_TRIM && fsd_inode_is_file(r->inode) &&
	    !fsd_handle_is_held(r->inode))
		fsd_file_trim(r->fsd, r->inode);
	r->fixed.setattr.mask &= ~FS_SET_TRIM;
	rc = fsd_inode_set(r->fsd, r->inode, &r->fixed.setattr);
	return rc ? rc : fsd_reply_attr(r, r->inode);
}

/* The extents from @offset to @end, or as many as fit. */
int fsd_reply_map(struct fsd_request *r, struct fsd_inode *inode, uint64_t offset, uint64_t end)
{
	struct wire_fs_map map = { .epoch = inode->epoch, .size = inode->size, .end = end };
	struct fsd_map_cursor place = fsd_map_seek(&inode->map, offset);
	size_t at = r->length;
	const struct wire_fs_extent *e;

	fsd_reply_reserve(r, sizeof(map) - sizeof(map.reply));
	for (; (e = fsd_map_at(&place)) && e->offset < end; fsd_map_step(&place)) {
		if (map.extents == FS_EXTENTS_MAX) {
			map.end = e->offset;
			break;
		}
		fsd_reply_bytes(r, e, sizeof(*e));
		map.extents++;
	}
	memcpy(r->fsd->reply + at, (uint8_t *)&map + sizeof(map.reply),
	       sizeof(map) - sizeof(map.reply));
	if (!fsd_moves_data(r->fsd))
		fsd_handle_grant_map(r->client, inode);
	return 0;
}

/*
 * The map of a file that has just been opened. An empty file gets its first blocks if its client is
 * about to write. Without ample memory at hand the client asks again when it writes.
 */
static void put_first_map(struct fsd_request *r, struct fsd_inode *inode, bool writes)
{
	uint64_t end = inode->size > FS_FIRST_BYTES ? inode->size : FS_FIRST_BYTES;

	if (!inode->size && writes)
		fsd_file_fill_ahead(r->fsd, inode);
	fsd_reply_map(r, inode, 0, end);
}

/* The attributes are those before blocks were allocated ahead. */
static void reply_made(struct fsd_request *r, struct fsd_inode *new)
{
	fsd_reply_attr(r, new);
	fsd_reply_attr(r, r->inode);
	if (r->fixed.make.make & FS_MAKE_MAP && !fsd_moves_data(r->fsd))
		put_first_map(r, new, true);
}

static int check_make(const struct fsd_request *r)
{
	uint32_t target = S_ISLNK(r->fixed.make.mode) ? FS_TARGET_MAX : 0;

	if (r->fixed.make.make & ~(FS_MAKE_OPEN | FS_MAKE_EXCLUSIVE | FS_MAKE_MAP))
		return -EINVAL;
	if (r->fixed.make.make & FS_MAKE_OPEN && !S_ISREG(r->fixed.make.mode))
		return -EINVAL;
	if (r->fixed.make.make & FS_MAKE_MAP && !(r->fixed.make.make & FS_MAKE_OPEN))
		return -EINVAL;
	if (r->second.length > target)
		return -ENAMETOOLONG;
	if (S_ISLNK(r->fixed.make.mode) && !r->second.length)
		return -ENOENT; /* as symlink(2) requires */
	if (!fsd_dir_find(r->fsd, r->inode, r->name))
		return 0;
	/*
	 * On -ESTALE the kernel looks the name up again, checks the user's permission, and then
	 * opens the file. Opening here would bypass the check.
	 */
	if ((r->fixed.make.make & ~FS_MAKE_MAP) == FS_MAKE_OPEN)
		return -ESTALE;
	return -EEXIST;
}

static int do_make(struct fsd_request *r)
{
	struct fsd_inode *new;
	int rc = check_make(r);

	if (rc)
		return rc;
	rc = fsd_inode_new(r->fsd, r->fixed.make.mode, r->fixed.make.rdev, r->second.at,
			   r->second.length, &new);
	if (rc)
		return rc;
	new->uid = r->fixed.head.uid;
	new->gid = r->fixed.head.gid;
	fsd_inherit(r->inode->mode, r->inode->gid, &new->mode, &new->gid);
	if (r->fixed.make.make & FS_MAKE_OPEN)
		rc = fsd_handle_open(r->client, new);
	if (!rc)
		rc = fsd_dir_link(r->fsd, r->inode, r->name, new);
	if (!rc)
		reply_made(r, new);
	else if (fsd_handle_is_open(r->client, new))
		fsd_handle_close(r->client, new);
	else
		fsd_inode_put(r->fsd, new);
	return rc;
}

static struct fsd_inode *find_dir(const struct fsd *fsd, uint64_t ino, int *rc)
{
	struct fsd_inode *dir = fsd_inode_find(fsd, ino);

	*rc = 0;
	if (!dir || fsd_snapshot_hides(fsd, ino))
		*rc = -ESTALE;
	else if (!fsd_inode_is_dir(dir))
		*rc = -ENOTDIR;
	return dir;
}

static int do_link(struct fsd_request *r)
{
	int rc;
	struct fsd_inode *dir = find_dir(r->fsd, r->fixed.link.parent, &rc);

	if (rc)
		return rc;
	if (fsd_inode_is_dir(r->inode))
		return -EPERM;
	if (!r->inode->nlink)
		return -ENOENT;
	if (fsd_dir_find(r->fsd, dir, r->name))
		return -EEXIST;
	rc = fsd_dir_link(r->fsd, dir, r->name, r->inode);
	if (rc)
		return rc;
	fsd_reply_attr(r, r->inode);
	return fsd_reply_attr(r, dir);
}

static int remove_name(struct fsd_request *r,
		       int (*remove)(struct fsd *, struct fsd_inode *, struct fsd_text))
{
	const struct fsd_inode *inode = fsd_dir_find(r->fsd, r->inode, r->name);
	uint64_t ino = inode ? inode->ino : 0;
	int rc = remove(r->fsd, r->inode, r->name);

	if (rc)
		return rc;
	fsd_reply_attr(r, r->inode);
	put_attr_of(r, ino);
	return 0;
}

static int do_unlink(struct fsd_request *r)
{
	return remove_name(r, fsd_dir_unlink);
}

static int do_rmdir(struct fsd_request *r)
{
	return remove_name(r, fsd_dir_rmdir);
}

static int do_rename(struct fsd_request *r)
{
	int rc;
	struct fsd_inode *to = find_dir(r->fsd, r->fixed.rename.parent, &rc);
	const struct fsd_inode *moved, *replaced;
	uint64_t moved_ino, replaced_ino;

	if (rc)
		return rc;
	if (!fsd_is_name(r->second))
		return -EINVAL;
	moved = fsd_dir_find(r->fsd, r->inode, r->name);
	replaced = fsd_dir_find(r->fsd, to, r->second);
	moved_ino = moved ? moved->ino : 0;
	replaced_ino = replaced ? replaced->ino : 0;
	rc = fsd_dir_rename(r->fsd, r->inode, r->name, to, r->second, r->fixed.rename.flags);
	if (rc)
		return rc;
	fsd_reply_attr(r, r->inode);
	fsd_reply_attr(r, to);
	put_attr_of(r, moved_ino);
	put_attr_of(r, replaced_ino);
	return 0;
}

static int do_readlink(struct fsd_request *r)
{
	if (!S_ISLNK(r->inode->mode))
		return -EINVAL;
	fsd_reply_bytes(r, r->inode->target, r->inode->size);
	return 0;
}

static int do_open(struct fsd_request *r)
{
	bool is_file = fsd_inode_is_file(r->inode);
	bool truncate = r->fixed.open.flags & O_TRUNC && is_file;
	int rc = fsd_handle_open(r->client, r->inode);

	if (!rc && truncate) {
		fsd_handle_map_forgotten(r->client, r->inode);
		rc = fsd_file_resize(r->fsd, r->inode, 0);
		if (rc)
			fsd_handle_close(r->client, r->inode);
	}
	if (rc)
		return rc;
	fsd_reply_attr(r, r->inode);
	if (r->fixed.open.open & FS_OPEN_MAP && is_file && !fsd_moves_data(r->fsd))
		put_first_map(r, r->inode, (r->fixed.open.flags & O_ACCMODE) != O_RDONLY);
	return 0;
}

static int do_release(struct fsd_request *r)
{
	return fsd_handle_close(r->client, r->inode);
}

static int do_readdir(struct fsd_request *r)
{
	r->length += fsd_dir_read(r->inode, r->fixed.readdir.cookie, r->fsd->reply + r->length,
				  FSD_MESSAGE_MAX - r->length);
	return 0;
}

static uint64_t range_end(const struct wire_fs_range *range)
{
	return range->length < UINT64_MAX - range->offset ? range->offset + range->length :
							    UINT64_MAX;
}

static int do_map(struct fsd_request *r)
{
	if (!fsd_handle_is_open(r->client, r->inode))
		return -EBADF;
	return fsd_reply_map(r, r->inode, r->fixed.range.offset, range_end(&r->fixed.range));
}

static int do_alloc(struct fsd_request *r)
{
	int rc;

	if (fsd_moves_data(r->fsd))
		return -EOPNOTSUPP;
	if (!fsd_handle_is_open(r->client, r->inode))
		return -EBADF;
	rc = fsd_file_fill(r->fsd, r->inode, r->fixed.range.offset, r->fixed.range.length);
	if (rc)
		return rc;
	return fsd_reply_map(r, r->inode, r->fixed.range.offset, range_end(&r->fixed.range));
}

static int do_commit(struct fsd_request *r)
{
	int rc = fsd_file_commit(r->client, r->inode, &r->fixed.setattr);

	return rc ? rc : fsd_reply_attr(r, r->inode);
}

static int do_close(struct fsd_request *r)
{
	uint64_t ino = r->inode->ino;
	int rc = fsd_file_commit(r->client, r->inode, &r->fixed.setattr);
	int closed = fsd_handle_close(r->client, r->inode);

	if (rc || closed)
		return rc ? rc : closed;
	put_attr_of(r, ino);
	return 0;
}

static int do_fallocate(struct fsd_request *r)
{
	int rc;

	/*
	 * Only for modes that remove blocks. Other modes may be deferred, and by the time they run
	 * the client may hold a new map.
	 */
	if (r->fixed.fallocate.mode & FALLOC_FL_PUNCH_HOLE)
		fsd_handle_map_forgotten(r->client, r->inode);
	rc = fsd_file_fallocate(r->fsd, r->inode, &r->fixed.fallocate);
	return rc ? rc : fsd_reply_attr(r, r->inode);
}

static int do_statfs(struct fsd_request *r)
{
	const struct fsd *fsd = r->fsd;
	uint64_t room = fsd_space_room(&fsd->space);
	uint64_t used = fsd->space.total - fsd->space.free - fsd->space.dirty;
	struct wire_fs_statfs out = {
		.blocks = (used + room) / FS_BLOCK,
		/* blocks ahead of files that nobody has written count as free */
		.free = (room + (uint64_t)fsd->nr_ahead * FS_FIRST_BYTES) / FS_BLOCK,
		.files = fsd->inodes.nr,
	};

	fsd_reply_bytes(r, (uint8_t *)&out + sizeof(out.reply), sizeof(out) - sizeof(out.reply));
	return 0;
}

static int do_setxattr(struct fsd_request *r)
{
	int rc = fsd_xattr_set(r->fsd, r->inode, r->name, r->second, r->fixed.xattr.flags);

	return rc ? rc : fsd_reply_attr(r, r->inode);
}

static int do_getxattr(struct fsd_request *r)
{
	struct fsd_text value;
	int rc = fsd_xattr_get(r->inode, r->name, &value);

	if (!rc)
		fsd_reply_bytes(r, value.at, value.length);
	return rc;
}

static int do_listxattr(struct fsd_request *r)
{
	r->length += fsd_xattr_list(r->inode, (char *)r->fsd->reply + r->length);
	return 0;
}

static int do_removexattr(struct fsd_request *r)
{
	int rc = fsd_xattr_remove(r->fsd, r->inode, r->name);

	return rc ? rc : fsd_reply_attr(r, r->inode);
}

static int do_getlk(struct fsd_request *r)
{
	struct wire_fs_lock lock = r->fixed.lock;
	int rc = fsd_lock_get(r->client, r->inode, &lock);

	if (rc)
		return rc;
	memset(&lock.head, 0, sizeof(lock.head));
	fsd_reply_bytes(r, &lock, sizeof(lock));
	return 0;
}

static int do_setlk(struct fsd_request *r)
{
	struct wire_fs_locked locked;
	int rc;

	if (!fsd_handle_is_open(r->client, r->inode))
		return -EBADF;
	rc = fsd_lock_set(r->client, r->inode, &r->fixed.lock, r->call, &r->later);
	if (rc || r->later)
		return rc;
	fsd_lock_reply(r->client, r->inode, &locked);
	fsd_reply_bytes(r, &locked.attr, sizeof(locked) - sizeof(locked.reply));
	return 0;
}

static int do_cancellk(struct fsd_request *r)
{
	fsd_lock_cancel(r->client, r->inode, r->fixed.lock.cancel);
	return 0;
}

static int do_return(struct fsd_request *r)
{
	fsd_handle_map_returned(r->client, r->inode, r->fixed.recall.epoch);
	return 0;
}

static int put_transferred(struct fsd_request *r, uint64_t length)
{
	struct wire_fs_transferred out = { .length = length };

	fsd_inode_attr(r->inode, &out.attr);
	fsd_reply_bytes(r, (uint8_t *)&out + sizeof(out.reply), sizeof(out) - sizeof(out.reply));
	return 0;
}

static int do_read(struct fsd_request *r)
{
	uint64_t length;
	int rc = -EBADF;

	if (fsd_handle_is_open(r->client, r->inode))
		rc = fsd_transfer_read(r->fsd, r->inode, &r->fixed.transfer, &length);
	return rc ? rc : put_transferred(r, length);
}

static int do_write(struct fsd_request *r)
{
	int rc = -EBADF;

	if (fsd_handle_is_open(r->client, r->inode))
		rc = fsd_transfer_write(r->fsd, r->inode, &r->fixed.transfer);
	return rc ? rc : put_transferred(r, r->fixed.transfer.length);
}

static int do_shared(struct fsd_request *r)
{
	fsd_client_stopped_caching(r->client);
	return 0;
}

static int do_check(struct fsd_request *r)
{
	struct wire_fs_checked checked;

	fsd_check_part(r->fsd, r->fixed.check.cursor, &checked);
	fsd_reply_bytes(r, (const char *)&checked + sizeof(checked.reply),
		  sizeof(checked) - sizeof(checked.reply));
	return 0;
}

static int do_snapshot(struct fsd_request *r)
{
	const struct wire_fs_snapshot *wanted = &r->fixed.snapshot;
	struct fsd_inode *parent;
	int rc;

	if (!r->call)
		return -EPROTO;
	if (fsd_moves_data(r->fsd))
		return -EOPNOTSUPP;
	if (fsd_client_reply(r->client, 0).shared != FS_REPLY_ALONE)
		return -EBUSY;
	parent = find_dir(r->fsd, wanted->parent, &rc);
	if (!rc)
		rc = fsd_snapshot_begin(r->client, r->call, r->inode, parent, r->name,
					wanted->patience_ms);
	r->later = !rc;
	return rc;
}

static const struct fsd_op ops[] = {
	[FS_MOUNT] = { do_mount, sizeof(struct wire_fs_mount), FSD_OP_FIRST | FSD_OP_APART },
	[FS_VOLUME] = { do_volume, sizeof(struct wire_fs_volume), FSD_OP_LOOKS | FSD_OP_APART },
	[FS_LOOKUP] = { do_lookup, sizeof(struct wire_fs_head),
			FSD_OP_DIR | FSD_OP_NAME | FSD_OP_LOOKS },
	[FS_GETATTR] = { do_getattr, sizeof(struct wire_fs_head), FSD_OP_INODE | FSD_OP_LOOKS },
	[FS_SETATTR] = { do_setattr, sizeof(struct wire_fs_setattr),
		       FSD_OP_INODE | FSD_OP_BATCH },
	[FS_MAKE] = { do_make, sizeof(struct wire_fs_make), FSD_OP_DIR | FSD_OP_NAME },
	[FS_LINK] = { do_link, sizeof(struct wire_fs_link), FSD_OP_INODE | FSD_OP_NAME },
	[FS_UNLINK] = { do_unlink, sizeof(struct wire_fs_head),
		       FSD_OP_DIR | FSD_OP_NAME | FSD_OP_LEASE },
	[FS_RMDIR] = { do_rmdir, sizeof(struct wire_fs_head),
		       FSD_OP_DIR | FSD_OP_NAME | FSD_OP_LEASE },
	[FS_RENAME] = { do_rename, sizeof(struct wire_fs_rename),
		       FSD_OP_DIR | FSD_OP_NAME | FSD_OP_LEASE },
	[FS_READLINK] = { do_readlink, sizeof(struct wire_fs_head), FSD_OP_INODE | FSD_OP_LOOKS },
	[FS_OPEN] = { do_open, sizeof(struct wire_fs_open), FSD_OP_INODE },
	[FS_RELEASE] = { do_release, sizeof(struct wire_fs_head),
		       FSD_OP_INODE | FSD_OP_BATCH },
	[FS_READDIR] = { do_readdir, sizeof(struct wire_fs_readdir), FSD_OP_DIR | FSD_OP_LOOKS },
	[FS_MAP] = { do_map, sizeof(struct wire_fs_range), FSD_OP_FILE | FSD_OP_LOOKS },
	[FS_ALLOC] = { do_alloc, sizeof(struct wire_fs_range), FSD_OP_FILE },
	[FS_COMMIT] = { do_commit, sizeof(struct wire_fs_setattr),
		       FSD_OP_FILE | FSD_OP_BATCH },
	[FS_FALLOCATE] = { do_fallocate, sizeof(struct wire_fs_fallocate), FSD_OP_FILE },
	[FS_STATFS] = { do_statfs, sizeof(struct wire_fs_head), FSD_OP_LOOKS | FSD_OP_APART },
	[FS_SETXATTR] = { do_setxattr, sizeof(struct wire_fs_xattr), FSD_OP_INODE | FSD_OP_XATTR },
	[FS_GETXATTR] = { do_getxattr, sizeof(struct wire_fs_head),
			  FSD_OP_INODE | FSD_OP_XATTR | FSD_OP_LOOKS },
	[FS_LISTXATTR] = { do_listxattr, sizeof(struct wire_fs_head), FSD_OP_INODE | FSD_OP_LOOKS },
	[FS_REMOVEXATTR] = { do_removexattr, sizeof(struct wire_fs_head),
			     FSD_OP_INODE | FSD_OP_XATTR },
	[FS_GETLK] = { do_getlk, sizeof(struct wire_fs_lock), FSD_OP_INODE | FSD_OP_LOOKS },
	[FS_SETLK] = { do_setlk, sizeof(struct wire_fs_lock), FSD_OP_INODE },
	[FS_CANCELLK] = { do_cancellk, sizeof(struct wire_fs_lock), FSD_OP_INODE | FSD_OP_APART },
	[FS_RETURN] = { do_return, sizeof(struct wire_fs_recall), FSD_OP_INODE | FSD_OP_APART },
	[FS_SHARED] = { do_shared, sizeof(struct wire_fs_head), FSD_OP_APART },
	[FS_READ] = { do_read, sizeof(struct wire_fs_transfer),
		      FSD_OP_FILE | FSD_OP_LOOKS | FSD_OP_POOL },
	[FS_WRITE] = { do_write, sizeof(struct wire_fs_transfer), FSD_OP_FILE | FSD_OP_POOL },
	[FS_CLOSE] = { do_close, sizeof(struct wire_fs_setattr),
		       FSD_OP_FILE | FSD_OP_BATCH },
	[FS_CHECK] = { do_check, sizeof(struct wire_fs_check), FSD_OP_LOOKS },
	[FS_RESERVE] = { fsd_batch_reserve, sizeof(struct wire_fs_reserve), 0 },
	[FS_NAME] = { fsd_batch_name, sizeof(struct wire_fs_name),
		      FSD_OP_DIR | FSD_OP_NAME | FSD_OP_LEASE },
	[FS_SNAPSHOT] = { do_snapshot, sizeof(struct wire_fs_snapshot), FSD_OP_DIR | FSD_OP_NAME },
	[FS_BATCH] = { fsd_batch, sizeof(struct wire_fs_batch), 0 },
};

const struct fsd_op *fsd_op(uint32_t op)
{
	return op < sizeof(ops) / sizeof(ops[0]) && ops[op].handle ? &ops[op] : NULL;
}
