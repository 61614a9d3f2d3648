/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The bytes of an image, little-endian:
 *
 *	- an image_head;
 *	- each inode, by number: an image_inode; then a file's wire_fs_extent, a link's target, or a
 *	  directory's image_name with the text; then each image_xattr with the text;
 *	- each client, oldest first: an image_client, then each image_handle;
 *	- for each inode with locks: an image_locks; then each image_lock: held, then waiting.
 */
#ifndef WEIR_FSD_IMAGE_FORMAT_H
#define WEIR_FSD_IMAGE_FORMAT_H

#include "wire/fs.h"

#define IMAGE_MAGIC 0x31496677u /* "wfI1" */

struct image_head {
	uint32_t magic, zero;
	uint64_t next_ino, next_client;
	uint64_t inodes, clients, locks; /* how many follow */
};

struct image_inode {
	uint64_t ino, size, change, epoch, kept_end;
	struct wire_fs_time atime, mtime, ctime;
	uint32_t mode, nlink, uid, gid, rdev;
	uint32_t xattrs, parts; /* how many follow: extents or names */
	uint32_t zero;
	uint64_t parent, next_cookie; /* of a directory */
};
static_assert(sizeof(struct image_inode) == 136, "image_inode");

struct image_name {
	uint64_t cookie, ino;
	uint32_t length, zero;
};

struct image_xattr {
	uint32_t name_length, value_length;
};

struct image_client {
	uint64_t id;
	uint32_t is_mounted, handles;
};

struct image_handle {
	uint64_t ino;
	uint32_t opens, zero;
};

struct image_locks {
	uint64_t ino;
	uint32_t held, waiting;
};

struct image_lock {
	uint64_t client, owner, start, end, cancel, call; /* cancel and call: while waiting */
	uint32_t type, pid, is_flock, has_spare;
};

#endif
