/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client's messages: decoded, checked, dispatched, answered. Nothing in a message is believed:
 * its lengths, its strings and its inode numbers are checked here, ranges and flags by those
 * whose they are. That a user may do what he asks is checked by the kernel at the client, which
 * knows the key and so could touch all of this anyway.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>

#include "apps/serve/client.h"
#include "apps/serve/dir.h"
#include "apps/serve/file.h"
#include "apps/serve/holder.h"
#include "apps/serve/inode.h"
#include "apps/serve/lock.h"
#include "apps/serve/request.h"
#include "apps/serve/xattr.h"

#define POSTPONED_MAX 1024
#define LIMBO_TIMEOUT_NS 1000000000u

/* A request on its way through its handler. */
struct request {
	struct fsd *fsd;
	struct fsd_client *client;
	void *call;
	union { /* the fixed part */
		struct fs_head head;
		struct fs_mount mount;
		struct fs_volume volume;
		struct fs_setattr setattr;
		struct fs_make make;
		struct fs_link link;
		struct fs_rename rename;
		struct fs_open open;
		struct fs_readdir readdir;
		struct fs_range range;
		struct fs_fallocate fallocate;
		struct fs_xattr xattr;
		struct fs_lock lock;
		struct fs_recall recall;
	};
	struct fsd_text name, second; /* the strings that follow it */
	struct fsd_inode *inode; /* head.ino, if the operation has one */
	size_t length; /* of the answer so far */
	bool later; /* answered by another hand */
};

static void *reserve(struct request *r, size_t length)
{
	void *at = r->fsd->reply + r->length;

	r->length += length;
	return memset(at, 0, length);
}

static void put(struct request *r, const void *bytes, size_t length)
{
	memcpy(reserve(r, length), bytes, length);
}

static int put_attr(struct request *r, const struct fsd_inode *inode)
{
	struct fs_attr attr;

	fsd_inode_attr(inode, &attr);
	put(r, &attr, sizeof(attr));
	return 0;
}

static bool is_name(struct fsd_text name)
{
	if (!name.length || name.length > FS_NAME_MAX)
		return false;
	if (name.at[0] == '.' && (name.length == 1 || (name.length == 2 && name.at[1] == '.')))
		return false;
	return !memchr(name.at, '/', name.length) && !memchr(name.at, 0, name.length);
}

static int do_mount(struct request *r)
{
	int err;

	if (r->mount.magic != FS_MAGIC || !r->call)
		return -EPROTO;
	if (r->mount.version != FS_VERSION)
		return -EPROTONOSUPPORT;
	err = fsd_client_mount(r->client, r->call);
	r->later = !err;
	return err;
}

static int do_volume(struct request *r)
{
	const struct fsd_space *space = &r->fsd->space;
	uint32_t first = r->volume.first;

	for (uint32_t i = 0; i < FS_CHUNKS_MAX && first < space->nr_chunks; i++, first++)
		put(r, &space->chunk[first].wire, sizeof(struct fs_chunk));
	return 0;
}

static int do_lookup(struct request *r)
{
	const struct fsd_inode *inode = fsd_dir_find(r->fsd, r->inode, r->name);

	return inode ? put_attr(r, inode) : -ENOENT;
}

static int do_getattr(struct request *r)
{
	return put_attr(r, r->inode);
}

static int do_setattr(struct request *r)
{
	int err;

	if (r->setattr.mask & FS_SET_SIZE)
		fsd_holder_forgot(r->client, r->inode);
	err = fsd_inode_set(r->fsd, r->inode, &r->setattr);
	return err ? err : put_attr(r, r->inode);
}

static int check_make(const struct request *r)
{
	uint32_t target = S_ISLNK(r->make.mode) ? FS_TARGET_MAX : 0;

	if (r->make.make & ~(FS_MAKE_OPEN | FS_MAKE_EXCLUSIVE))
		return -EINVAL;
	if (r->make.make & FS_MAKE_OPEN && !S_ISREG(r->make.mode))
		return -EINVAL;
	if (r->second.length > target)
		return -ENAMETOOLONG;
	if (S_ISLNK(r->make.mode) && !r->second.length)
		return -ENOENT; /* as symlink(2) says */
	if (!fsd_dir_find(r->fsd, r->inode, r->name))
		return 0;
	/*
	 * ESTALE: the kernel looks the name up again, checks whether this user may open it, and
	 * then does. To open it here would spare it the check.
	 */
	if (r->make.make == FS_MAKE_OPEN)
		return -ESTALE;
	return -EEXIST;
}

static int do_make(struct request *r)
{
	struct fsd_inode *new;
	int err = check_make(r);

	if (err)
		return err;
	err = fsd_inode_new(r->fsd, r->make.mode, r->make.rdev, r->second.at, r->second.length,
			    &new);
	if (err)
		return err;
	new->uid = r->head.uid;
	new->gid = r->head.gid;
	if (r->inode->mode & S_ISGID) {
		new->gid = r->inode->gid;
		if (fsd_is_dir(new))
			new->mode |= S_ISGID;
	}
	if (r->make.make & FS_MAKE_OPEN)
		err = fsd_holder_open(r->client, new);
	if (!err)
		err = fsd_dir_link(r->fsd, r->inode, r->name, new);
	if (!err)
		return put_attr(r, new);
	if (fsd_holder_has_open(r->client, new))
		fsd_holder_close(r->client, new);
	else
		fsd_inode_put(r->fsd, new);
	return err;
}

static struct fsd_inode *find_dir(const struct fsd *fsd, uint64_t ino, int *err)
{
	struct fsd_inode *dir = fsd_inode_find(fsd, ino);

	*err = 0;
	if (!dir)
		*err = -ESTALE;
	else if (!fsd_is_dir(dir))
		*err = -ENOTDIR;
	return dir;
}

static int do_link(struct request *r)
{
	int err;
	struct fsd_inode *dir = find_dir(r->fsd, r->link.parent, &err);

	if (err)
		return err;
	if (fsd_is_dir(r->inode))
		return -EPERM;
	if (!r->inode->nlink)
		return -ENOENT;
	if (fsd_dir_find(r->fsd, dir, r->name))
		return -EEXIST;
	err = fsd_dir_link(r->fsd, dir, r->name, r->inode);
	return err ? err : put_attr(r, r->inode);
}

static int do_unlink(struct request *r)
{
	return fsd_dir_unlink(r->fsd, r->inode, r->name);
}

static int do_rmdir(struct request *r)
{
	return fsd_dir_rmdir(r->fsd, r->inode, r->name);
}

static int do_rename(struct request *r)
{
	int err;
	struct fsd_inode *to = find_dir(r->fsd, r->rename.parent, &err);

	if (err)
		return err;
	if (!is_name(r->second))
		return -EINVAL;
	return fsd_dir_rename(r->fsd, r->inode, r->name, to, r->second, r->rename.flags);
}

static int do_readlink(struct request *r)
{
	if (!S_ISLNK(r->inode->mode))
		return -EINVAL;
	put(r, r->inode->target, r->inode->size);
	return 0;
}

static int do_open(struct request *r)
{
	bool truncate = r->open.flags & O_TRUNC && fsd_is_file(r->inode);
	int err = fsd_holder_open(r->client, r->inode);

	if (!err && truncate) {
		fsd_holder_forgot(r->client, r->inode);
		err = fsd_file_resize(r->fsd, r->inode, 0);
		if (err)
			fsd_holder_close(r->client, r->inode);
	}
	return err ? err : put_attr(r, r->inode);
}

static int do_release(struct request *r)
{
	return fsd_holder_close(r->client, r->inode);
}

static int do_readdir(struct request *r)
{
	r->length += fsd_dir_read(r->inode, r->readdir.cookie, r->fsd->reply + r->length,
				  FSD_MESSAGE_MAX - r->length);
	return 0;
}

/* The extents from @offset to @end, or as many as fit. */
static int put_map(struct request *r, uint64_t offset, uint64_t end)
{
	struct fs_map map = { .epoch = r->inode->epoch, .size = r->inode->size, .end = end };
	struct fsd_place place = fsd_map_seek(&r->inode->map, offset);
	uint8_t *head = r->fsd->reply;
	const struct fs_extent *e;

	reserve(r, sizeof(map) - sizeof(map.reply));
	for (; (e = fsd_map_at(&place)) && e->offset < end; fsd_map_step(&place)) {
		if (map.extents == FS_EXTENTS_MAX) {
			map.end = e->offset;
			break;
		}
		put(r, e, sizeof(*e));
		map.extents++;
	}
	memcpy(head + sizeof(map.reply), (uint8_t *)&map + sizeof(map.reply),
	       sizeof(map) - sizeof(map.reply));
	fsd_holder_give_map(r->client, r->inode);
	return 0;
}

static uint64_t range_end(const struct fs_range *range)
{
	return range->length < UINT64_MAX - range->offset ? range->offset + range->length
							  : UINT64_MAX;
}

static int do_map(struct request *r)
{
	if (!fsd_holder_has_open(r->client, r->inode))
		return -EBADF;
	return put_map(r, r->range.offset, range_end(&r->range));
}

static int do_alloc(struct request *r)
{
	int err;

	if (!fsd_holder_has_open(r->client, r->inode))
		return -EBADF;
	err = fsd_file_fill(r->fsd, r->inode, r->range.offset, r->range.length);
	return err ? err : put_map(r, r->range.offset, range_end(&r->range));
}

static int do_commit(struct request *r)
{
	int err = fsd_file_commit(r->fsd, r->inode, &r->setattr);

	return err ? err : put_attr(r, r->inode);
}

static int do_fallocate(struct request *r)
{
	int err;

	/* Only what cuts: the rest may be postponed, and the client have a new map by then. */
	if (r->fallocate.mode & FALLOC_FL_PUNCH_HOLE)
		fsd_holder_forgot(r->client, r->inode);
	err = fsd_file_fallocate(r->fsd, r->inode, &r->fallocate);
	return err ? err : put_attr(r, r->inode);
}

static int do_statfs(struct request *r)
{
	const struct fsd *fsd = r->fsd;
	uint64_t room = fsd_space_room(&fsd->space);
	uint64_t used = fsd->space.total - fsd->space.free - fsd->space.dirty;
	struct fs_statfs out = {
		.blocks = (used + room) / FS_BLOCK,
		.free = room / FS_BLOCK,
		.files = fsd->inodes.nr,
	};

	put(r, (uint8_t *)&out + sizeof(out.reply), sizeof(out) - sizeof(out.reply));
	return 0;
}

static int do_setxattr(struct request *r)
{
	return fsd_xattr_set(r->fsd, r->inode, r->name, r->second, r->xattr.flags);
}

static int do_getxattr(struct request *r)
{
	struct fsd_text value;
	int err = fsd_xattr_get(r->inode, r->name, &value);

	if (!err)
		put(r, value.at, value.length);
	return err;
}

static int do_listxattr(struct request *r)
{
	r->length += fsd_xattr_list(r->inode, (char *)r->fsd->reply + r->length);
	return 0;
}

static int do_removexattr(struct request *r)
{
	return fsd_xattr_remove(r->fsd, r->inode, r->name);
}

static int do_getlk(struct request *r)
{
	struct fs_lock lock = r->lock;
	int err = fsd_lock_get(r->client, r->inode, &lock);

	if (err)
		return err;
	memset(&lock.head, 0, sizeof(lock.head));
	put(r, &lock, sizeof(lock));
	return 0;
}

static int do_setlk(struct request *r)
{
	if (!fsd_holder_has_open(r->client, r->inode))
		return -EBADF;
	return fsd_lock_set(r->client, r->inode, &r->lock, r->call, &r->later);
}

static int do_cancellk(struct request *r)
{
	fsd_lock_cancel(r->client, r->inode, r->lock.cancel);
	return 0;
}

static int do_return(struct request *r)
{
	fsd_holder_returned(r->client, r->inode, r->recall.epoch);
	return 0;
}

static int do_shared(struct request *r)
{
	fsd_client_shared(r->client);
	return 0;
}

#define INODE 1u /* head.ino is one, of any type */
#define DIR (INODE | 2u)
#define FILE (INODE | 4u)
#define NAME 8u /* a name follows, and is one in a directory */
#define XATTR 16u /* a name follows, and is one of an attribute */
#define FIRST 32u /* allowed before FS_MOUNT */

static const struct op {
	int (*handle)(struct request *r);
	uint16_t fixed; /* bytes */
	uint16_t flags;
} ops[] = {
	[FS_MOUNT] = { do_mount, sizeof(struct fs_mount), FIRST },
	[FS_VOLUME] = { do_volume, sizeof(struct fs_volume), 0 },
	[FS_LOOKUP] = { do_lookup, sizeof(struct fs_head), DIR | NAME },
	[FS_GETATTR] = { do_getattr, sizeof(struct fs_head), INODE },
	[FS_SETATTR] = { do_setattr, sizeof(struct fs_setattr), INODE },
	[FS_MAKE] = { do_make, sizeof(struct fs_make), DIR | NAME },
	[FS_LINK] = { do_link, sizeof(struct fs_link), INODE | NAME },
	[FS_UNLINK] = { do_unlink, sizeof(struct fs_head), DIR | NAME },
	[FS_RMDIR] = { do_rmdir, sizeof(struct fs_head), DIR | NAME },
	[FS_RENAME] = { do_rename, sizeof(struct fs_rename), DIR | NAME },
	[FS_READLINK] = { do_readlink, sizeof(struct fs_head), INODE },
	[FS_OPEN] = { do_open, sizeof(struct fs_open), INODE },
	[FS_RELEASE] = { do_release, sizeof(struct fs_head), INODE },
	[FS_READDIR] = { do_readdir, sizeof(struct fs_readdir), DIR },
	[FS_MAP] = { do_map, sizeof(struct fs_range), FILE },
	[FS_ALLOC] = { do_alloc, sizeof(struct fs_range), FILE },
	[FS_COMMIT] = { do_commit, sizeof(struct fs_setattr), FILE },
	[FS_FALLOCATE] = { do_fallocate, sizeof(struct fs_fallocate), FILE },
	[FS_STATFS] = { do_statfs, sizeof(struct fs_head), 0 },
	[FS_SETXATTR] = { do_setxattr, sizeof(struct fs_xattr), INODE | XATTR },
	[FS_GETXATTR] = { do_getxattr, sizeof(struct fs_head), INODE | XATTR },
	[FS_LISTXATTR] = { do_listxattr, sizeof(struct fs_head), INODE },
	[FS_REMOVEXATTR] = { do_removexattr, sizeof(struct fs_head), INODE | XATTR },
	[FS_GETLK] = { do_getlk, sizeof(struct fs_lock), INODE },
	[FS_SETLK] = { do_setlk, sizeof(struct fs_lock), INODE },
	[FS_CANCELLK] = { do_cancellk, sizeof(struct fs_lock), INODE },
	[FS_RETURN] = { do_return, sizeof(struct fs_recall), INODE },
	[FS_SHARED] = { do_shared, sizeof(struct fs_head), 0 },
};

#define NR_OPS (sizeof(ops) / sizeof(ops[0]))

static uint32_t second_length(const struct request *r)
{
	switch (r->head.op) {
	case FS_MAKE:
		return r->make.target_length;
	case FS_RENAME:
		return r->rename.new_length;
	case FS_SETXATTR:
		return r->xattr.value_length;
	default:
		return 0;
	}
}

/* A message is its fixed part and its strings, to the byte. */
static int decode(struct request *r, const struct op *op, const char *message, size_t length)
{
	size_t strings;

	if (length < op->fixed)
		return -EPROTO;
	memcpy(&r->head, message, op->fixed);
	strings = length - op->fixed;
	r->name = (struct fsd_text){ message + op->fixed, r->head.name_length };
	if (r->name.length > strings)
		return -EPROTO;
	r->second = (struct fsd_text){ r->name.at + r->name.length, second_length(r) };
	if (r->second.length != strings - r->name.length)
		return -EPROTO;
	if (r->name.length && !(op->flags & (NAME | XATTR)))
		return -EPROTO;
	if (op->flags & (NAME | XATTR) && r->name.length > FS_NAME_MAX)
		return -ENAMETOOLONG;
	if (op->flags & NAME && !is_name(r->name))
		return -EINVAL;
	if (op->flags & XATTR && (!r->name.length || memchr(r->name.at, 0, r->name.length)))
		return -EINVAL;
	return 0;
}

static int find_inode(struct request *r, const struct op *op)
{
	if (!(op->flags & INODE))
		return 0;
	r->inode = fsd_inode_find(r->fsd, r->head.ino);
	if (!r->inode)
		return -ESTALE;
	if ((op->flags & DIR) == DIR && !fsd_is_dir(r->inode))
		return -ENOTDIR;
	if ((op->flags & FILE) == FILE && !fsd_is_file(r->inode))
		return fsd_is_dir(r->inode) ? -EISDIR : -EINVAL;
	return 0;
}

static int handle(struct request *r, const void *message, size_t length)
{
	const struct op *op;
	int err;

	if (length < sizeof(r->head))
		return -EPROTO;
	memcpy(&r->head, message, sizeof(r->head));
	if (r->head.op >= NR_OPS || !ops[r->head.op].handle)
		return -EOPNOTSUPP;
	op = &ops[r->head.op];
	if (!(op->flags & FIRST) && r->client->state != FSD_MOUNTED)
		return -EPROTO;
	err = decode(r, op, message, length);
	if (!err)
		err = find_inode(r, op);
	return err ? err : op->handle(r);
}

struct fsd_postponed {
	TAILQ_ENTRY(fsd_postponed) entry;
	struct fsd_client *client;
	void *call;
	uint64_t deadline_ns;
	size_t length;
	uint8_t message[];
};

/* Handles and answers, or returns -EINPROGRESS and has done neither. */
static int try(struct fsd_client *client, void *call, const void *message, size_t length)
{
	struct fsd *fsd = client->fsd;
	struct request r = {
		.fsd = fsd,
		.client = client,
		.call = call,
		.length = sizeof(struct fs_reply),
	};
	struct fs_reply reply;
	int status = handle(&r, message, length);

	if (r.later || !call || status == -EINPROGRESS)
		return status;
	if (status) {
		fsd_client_answer(client, call, status);
		return 0;
	}
	reply = fsd_client_reply(client, 0);
	memcpy(fsd->reply, &reply, sizeof(reply));
	fsd->host.answer(fsd->host.arg, call, fsd->reply, r.length);
	return 0;
}

static void postpone(struct fsd_client *client, void *call, const void *message, size_t length)
{
	struct fsd *fsd = client->fsd;
	struct fsd_postponed *p = NULL;

	if (fsd->nr_postponed < POSTPONED_MAX)
		p = malloc(sizeof(*p) + length);
	if (!p) {
		fsd_client_answer(client, call, -ENOSPC);
		return;
	}
	p->client = client;
	p->call = call;
	p->deadline_ns = fsd->host.clock_ns(fsd->host.arg) + LIMBO_TIMEOUT_NS;
	p->length = length;
	memcpy(p->message, message, length);
	fsd->nr_postponed++;
	TAILQ_INSERT_TAIL(&fsd->postponed, p, entry);
}

static void postponed_end(struct fsd_postponed *p)
{
	struct fsd *fsd = p->client->fsd;

	TAILQ_REMOVE(&fsd->postponed, p, entry);
	fsd->nr_postponed--;
	free(p);
}

/* While there is something to zero there is hope; for limbo alone it waits no longer than this. */
static bool is_hopeless(const struct fsd *fsd, const struct fsd_postponed *p)
{
	return !fsd->space.dirty && fsd->host.clock_ns(fsd->host.arg) >= p->deadline_ns;
}

void fsd_postponed_retry(struct fsd *fsd)
{
	struct fsd_postponed *p, *next;

	for (p = TAILQ_FIRST(&fsd->postponed); p; p = next) {
		next = TAILQ_NEXT(p, entry);
		if (try(p->client, p->call, p->message, p->length) != -EINPROGRESS) {
			postponed_end(p);
		} else if (is_hopeless(fsd, p)) {
			fsd_client_answer(p->client, p->call, -ENOSPC);
			postponed_end(p);
		}
	}
}

void fsd_postponed_drop(struct fsd_client *client)
{
	struct fsd_postponed *p, *next;

	for (p = TAILQ_FIRST(&client->fsd->postponed); p; p = next) {
		next = TAILQ_NEXT(p, entry);
		if (p->client != client)
			continue;
		fsd_client_answer(client, p->call, -ECONNRESET);
		postponed_end(p);
	}
}

void fsd_request(struct fsd_client *client, void *call, const void *message, size_t length)
{
	if (try(client, call, message, length) == -EINPROGRESS && call)
		postpone(client, call, message, length);
}
