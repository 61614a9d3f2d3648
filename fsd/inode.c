/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fsd/dir.h"
#include "fsd/data/file.h"
#include "fsd/inherit.h"
#include "fsd/inode.h"
#include "fsd/xattr.h"

#define MODE_BITS 07777u
#define SET_BITS 511u

static uint64_t room_for(const struct fsd *fsd, enum fsd_meta_use use)
{
	uint64_t limit = fsd->meta_bytes_max;

	if (use != FSD_META_OPEN && !fsd->is_loading)
		limit -= limit / (use == FSD_META_LOCK ? 4 : 8);
	return limit > fsd->meta_bytes ? limit - fsd->meta_bytes : 0;
}

uint64_t fsd_meta_room(const struct fsd *fsd)
{
	return room_for(fsd, FSD_META_NAME);
}

int fsd_charge_for(struct fsd *fsd, enum fsd_meta_use use, uint64_t bytes)
{
	if (bytes > room_for(fsd, use))
		return -ENOSPC;
	fsd->meta_bytes += bytes;
	return 0;
}

int fsd_charge(struct fsd *fsd, uint64_t bytes)
{
	return fsd_charge_for(fsd, FSD_META_NAME, bytes);
}

void fsd_uncharge(struct fsd *fsd, uint64_t bytes)
{
	fsd->meta_bytes -= bytes;
}

/* Inode numbers are sequential; this spreads them over the table. */
static uint64_t hash(uint64_t ino)
{
	ino *= 0x9e3779b97f4a7c15u;
	return ino ^ ino >> 32;
}

struct fsd_inode *fsd_inode_find(const struct fsd *fsd, uint64_t ino)
{
	struct fsd_hash_node *link = fsd_hashtable_first(&fsd->inodes, hash(ino));

	while (link && ((struct fsd_inode *)link)->ino != ino)
		link = fsd_hashtable_next(link);
	return (struct fsd_inode *)link;
}

static bool is_type(uint32_t mode)
{
	return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode) || S_ISFIFO(mode) ||
	       S_ISSOCK(mode) || S_ISCHR(mode) || S_ISBLK(mode);
}

static int set_target(struct fsd_inode *inode, const void *target, uint32_t length)
{
	inode->target = malloc(length);
	if (!inode->target)
		return -ENOMEM;
	memcpy(inode->target, target, length);
	inode->size = length;
	return 0;
}

uint64_t fsd_inode_cost(const struct fsd_inode *inode)
{
	return sizeof(*inode) + (S_ISLNK(inode->mode) ? inode->size : 0);
}

static int make_inode(struct fsd *fsd, uint64_t ino, uint32_t mode, uint32_t rdev,
		      const void *target, uint32_t target_length, struct fsd_inode **inode)
{
	struct fsd_inode *new;
	int rc;

	if (!is_type(mode) || mode & ~(S_IFMT | MODE_BITS))
		return -EINVAL;
	rc = fsd_charge(fsd, sizeof(*new) + target_length);
	if (rc)
		return rc;
	new = calloc(1, sizeof(*new));
	if (!new || (S_ISLNK(mode) && set_target(new, target, target_length))) {
		free(new);
		fsd_uncharge(fsd, sizeof(*new) + target_length);
		return -ENOMEM;
	}
	new->ino = ino;
	new->mode = mode;
	new->rdev = S_ISCHR(mode) || S_ISBLK(mode) ? rdev : 0;
	new->epoch = 1;
	new->change = 1;
	new->atime = new->mtime = new->ctime = fsd_now(fsd);
	TAILQ_INIT(&new->handles);
	TAILQ_INIT(&new->limbo);
	TAILQ_INIT(&new->locks);
	TAILQ_INIT(&new->waits);
	TAILQ_INIT(&new->xattrs);
	fsd_hashtable_add(&fsd->inodes, &new->link, hash(new->ino));
	*inode = new;
	return 0;
}

int fsd_inode_new(struct fsd *fsd, uint32_t mode, uint32_t rdev, const void *target,
		  uint32_t target_length, struct fsd_inode **inode)
{
	int rc = make_inode(fsd, fsd->next_ino, mode, rdev, target, target_length, inode);

	fsd->next_ino += !rc;
	return rc;
}

int fsd_inode_restore(struct fsd *fsd, uint64_t ino, uint32_t mode, const void *target,
		      uint32_t target_length, struct fsd_inode **inode)
{
	if (fsd_inode_find(fsd, ino))
		return -EEXIST;
	return make_inode(fsd, ino, mode, 0, target, target_length, inode);
}

void fsd_inode_free(struct fsd *fsd, struct fsd_inode *inode)
{
	fsd_hashtable_remove(&fsd->inodes, &inode->link);
	if (fsd_inode_is_file(inode))
		fsd_file_free(fsd, inode);
	else if (fsd_inode_is_dir(inode))
		fsd_dir_fini(inode);
	else if (S_ISLNK(inode->mode))
		free(inode->target);
	fsd_xattr_drop_all(fsd, inode);
	fsd_uncharge(fsd, fsd_inode_cost(inode));
	free(inode);
}

void fsd_inode_put(struct fsd *fsd, struct fsd_inode *inode)
{
	if (!inode->nlink && !inode->opens)
		fsd_inode_free(fsd, inode);
}

void fsd_inode_attr(const struct fsd_inode *inode, struct wire_fs_attr *attr)
{
	*attr = (struct wire_fs_attr){
		.ino = inode->ino,
		.size = fsd_inode_is_dir(inode) ? inode->dir.names : inode->size,
		.blocks = fsd_inode_is_file(inode) ? inode->map.bytes / 512 : 0,
		.change = inode->change,
		.atime = inode->atime,
		.mtime = inode->mtime,
		.ctime = inode->ctime,
		.mode = inode->mode,
		.nlink = inode->nlink,
		.uid = inode->uid,
		.gid = inode->gid,
		.rdev = inode->rdev,
		.flags = TAILQ_EMPTY(&inode->xattrs) ? FS_ATTR_PLAIN : 0,
	};
}

void fsd_inode_stamp(const struct fsd *fsd, struct fsd_inode *inode)
{
	struct wire_fs_time now = fsd_now(fsd);

	fsd_advance_ctime(&inode->ctime, &now);
}

void fsd_inode_changed(const struct fsd *fsd, struct fsd_inode *inode)
{
	inode->change++;
	inode->mtime = fsd_now(fsd);
	fsd_advance_ctime(&inode->ctime, &inode->mtime);
}

static bool is_time(const struct wire_fs_time *time)
{
	return time->nsec < 1000000000;
}

static int check_setattr(const struct fsd_inode *inode, const struct wire_fs_setattr *set)
{
	if (set->mask & ~SET_BITS)
		return -EINVAL;
	if (set->mask & FS_SET_SIZE && !fsd_inode_is_file(inode))
		return fsd_inode_is_dir(inode) ? -EISDIR : -EINVAL;
	if (set->mask & FS_SET_ATIME && !is_time(&set->atime))
		return -EINVAL;
	if (set->mask & FS_SET_MTIME && !is_time(&set->mtime))
		return -EINVAL;
	if (set->mask & FS_SET_CTIME && !is_time(&set->ctime))
		return -EINVAL;
	return 0;
}

int fsd_inode_set(struct fsd *fsd, struct fsd_inode *inode, const struct wire_fs_setattr *set)
{
	struct wire_fs_time now = fsd_now(fsd);
	int rc = check_setattr(inode, set);

	if (!rc && set->mask & FS_SET_SIZE)
		rc = fsd_file_resize(fsd, inode, set->size);
	if (rc)
		return rc;
	if (set->mask & FS_SET_MODE)
		inode->mode = (inode->mode & S_IFMT) | (set->mode & MODE_BITS);
	if (set->mask & FS_SET_UID)
		inode->uid = set->uid;
	if (set->mask & FS_SET_GID)
		inode->gid = set->gid;
	if (set->mask & FS_SET_ATIME)
		inode->atime = set->atime;
	if (set->mask & FS_SET_MTIME)
		inode->mtime = set->mtime;
	if (set->mask & FS_SET_ATIME_NOW)
		inode->atime = now;
	if (set->mask & FS_SET_MTIME_NOW)
		inode->mtime = now;
	if (set->mask & FS_SET_CTIME && fsd_is_after(&set->ctime, &inode->ctime))
		inode->ctime = set->ctime;
	else if (set->mask)
		fsd_advance_ctime(&inode->ctime, &now);
	return 0;
}
