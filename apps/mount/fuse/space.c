/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Space: free space, allocation, and holes of files. */
#include <errno.h>
#include <linux/falloc.h>
#include <string.h>
#include <unistd.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/fuse/privilege.h"
#include "apps/mount/sealed/sealed.h"

/* Map requests per lseek. The rest of a more fragmented file counts as data. */
#define SEEK_MAPS_MAX 4096
#define MODES (FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)
#define SEALED_MODES (FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE)

/*
 * Translates a range of a sealed file to its stored bytes. The caller has entered the gate alone.
 * Return: 0; or an errno for the program. A hole without a whole block has length 0.
 */
static int seal_range(struct inode *inode, struct wire_fs_fallocate *f)
{
	uint64_t end = f->offset + f->length, first, after;
	int rc;

	if (end > SEALED_FILE_MAX)
		return -EFBIG;
	if (f->mode & FALLOC_FL_PUNCH_HOLE) {
		rc = sealed_punch(inode, f->offset, end, &first, &after);
		f->offset = first * WEIR_SEALED_SLOT;
		f->length = first < after ? (after - first) * WEIR_SEALED_SLOT : 0;
		return rc;
	}
	f->offset = f->offset / FS_BLOCK * WEIR_SEALED_SLOT;
	f->length = sealed_stored_size(end) - f->offset;
	return 0;
}

/* The caller has entered the gate alone. */
static int allocate(struct inode *inode, struct donor_message *q, struct wire_fs_fallocate *f)
{
	struct wire_fs_attr attr;
	int rc = inode->mount->sealed ? seal_range(inode, f) : 0;

	inode_commit_ahead(inode);
	if (rc || (inode->mount->sealed && !f->length))
		return rc;
	rc = call_attr(inode->mount, q, &attr);
	if (rc) {
		if (rc == -EIO || rc == -EINTR)
			sharing_forget(&inode->mount->share);
		return rc;
	}
	inode_learn_size(inode, &attr, q->phase);
	if (inode->mount->sealed && f->mode & FALLOC_FL_PUNCH_HOLE)
		sealed_was_punched(inode, f->offset / WEIR_SEALED_SLOT,
				   (f->offset + f->length) / WEIR_SEALED_SLOT);
	return 0;
}

void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
		  struct fuse_file_info *fi)
{
	struct inode *inode = file_inode(fi);
	struct donor_message q;
	struct wire_fs_fallocate *f = call_begin(&q, FS_FALLOCATE, ino, sizeof(*f), req);
	int rc;

	if (mode & ~(inode->mount->sealed ? SEALED_MODES : MODES)) {
		op_reply(req, -EOPNOTSUPP);
		return;
	}
	f->offset = (uint64_t)offset;
	f->length = (uint64_t)length;
	f->mode = (uint32_t)mode;
	privilege_check(req, inode);
	inode_trim(inode);
	inode_enter_alone(inode);
	rc = allocate(inode, &q, f);
	inode_leave(inode);
	op_reply(req, rc);
}

/* Fetches the extents from @at on; *extents points into @reply. */
static int fetch_map(fuse_req_t req, uint64_t ino, uint64_t at, struct donor_reply *reply,
		     struct wire_fs_map *map, const char **extents)
{
	struct donor_message q;
	struct wire_fs_range *range = call_begin(&q, FS_MAP, ino, sizeof(*range), req);
	int rc;

	range->offset = at / FS_BLOCK * FS_BLOCK;
	range->length = INT64_MAX / FS_BLOCK * FS_BLOCK - range->offset;
	rc = call(mount_of(req), &q, reply, sizeof(*map) - sizeof(struct wire_fs_reply));
	if (rc)
		return rc;
	*extents = reply->bytes + sizeof(*map);
	return map_makes_sense(reply->bytes, reply->length, at, map) ? 0 : -EIO;
}

/*
 * Finds the first offset from *@at on that is in an extent (SEEK_DATA) or in none (SEEK_HOLE).
 * Returns false, with the end of the reply in *@at, if not found.
 */
static bool find_in_map(const struct wire_fs_map *map, const char *extents, int whence,
			uint64_t *at)
{
	for (uint32_t i = 0; i < map->extents; i++) {
		struct wire_fs_extent e;

		memcpy(&e, extents + i * sizeof(e), sizeof(e));
		if (e.offset + e.length <= *at)
			continue;
		if (whence == SEEK_HOLE && e.offset > *at)
			return true;
		if (whence == SEEK_DATA) {
			if (e.offset > *at)
				*at = e.offset;
			return true;
		}
		*at = e.offset + e.length;
	}
	if (whence == SEEK_HOLE && *at < map->end)
		return true;
	*at = map->end;
	return false;
}

void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, struct fuse_file_info *fi)
{
	struct inode *inode = file_inode(fi);
	uint64_t at = (uint64_t)offset;
	uint64_t size = 0;
	unsigned int maps = 0;
	bool found = false;
	int rc = 0;

	if (inode->mount->sealed) { /* the kernel then calls all of a file data */
		op_reply(req, -ENOSYS);
		return;
	}
	if (offset < 0) {
		op_reply(req, -ENXIO);
		return;
	}
	inode_commit_ahead(inode);
	do {
		struct donor_reply reply;
		struct wire_fs_map map;
		const char *extents;

		rc = fetch_map(req, ino, at, &reply, &map, &extents);
		if (rc)
			break;
		size = map.size;
		found = find_in_map(&map, extents, whence, &at);
	} while (!found && at < size && ++maps < SEEK_MAPS_MAX);
	if (!found && whence == SEEK_HOLE)
		at = size;

	if (!rc && ((uint64_t)offset >= size || (whence == SEEK_DATA && at >= size)))
		rc = -ENXIO;
	if (rc)
		op_reply(req, rc);
	else
		fuse_reply_lseek(req, (off_t)(at < size ? at : size));
}

void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct donor_message q;
	struct donor_reply reply;
	struct wire_fs_statfs fs;
	int rc;

	call_begin(&q, FS_STATFS, ino, sizeof(struct wire_fs_head), req);
	rc = call(mount_of(req), &q, &reply, sizeof(fs) - sizeof(struct wire_fs_reply));
	if (rc) {
		op_reply(req, rc);
		return;
	}
	memcpy(&fs, reply.bytes, sizeof(fs));
	fuse_reply_statfs(req, &(struct statvfs){
				       .f_bsize = FS_BLOCK,
				       .f_frsize = FS_BLOCK,
				       .f_blocks = fs.blocks,
				       .f_bfree = fs.free,
				       .f_bavail = fs.free,
				       /* inodes are limited by blocks only */
				       .f_files = fs.files + fs.free,
				       .f_ffree = fs.free,
				       .f_favail = fs.free,
				       .f_namemax = FS_NAME_MAX,
			       });
}
