/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the operations of wire/fs.h do, once a request has been decoded.
 */
#ifndef WEIR_FSD_OP_H
#define WEIR_FSD_OP_H

#include "fsd/dir.h"

/* A request on its way through its handler. */
struct fsd_request {
	struct fsd *fsd;
	struct fsd_client *client;
	void *call;
	union { /* the fixed part */
		struct wire_fs_head head;
		struct wire_fs_mount mount;
		struct wire_fs_volume volume;
		struct wire_fs_setattr setattr;
		struct wire_fs_make make;
		struct wire_fs_link link;
		struct wire_fs_rename rename;
		struct wire_fs_open open;
		struct wire_fs_readdir readdir;
		struct wire_fs_range range;
		struct wire_fs_fallocate fallocate;
		struct wire_fs_xattr xattr;
		struct wire_fs_lock lock;
		struct wire_fs_recall recall;
	};
	struct fsd_text name, second; /* the strings that follow it */
	struct fsd_inode *inode; /* head.ino, if the operation has one */
	size_t length; /* of the answer so far */
	bool later; /* answered by another hand */
};

/* What the message is to have, and is checked for before its operation sees it. */
enum {
	FSD_OP_INODE = 1, /* head.ino is one, of any type */
	FSD_OP_DIR = FSD_OP_INODE | 2,
	FSD_OP_FILE = FSD_OP_INODE | 4,
	FSD_OP_NAME = 8, /* a name follows, and is one in a directory */
	FSD_OP_XATTR = 16, /* a name follows, and is one of an attribute */
	FSD_OP_FIRST = 32, /* allowed before FS_MOUNT */
};

/**
 * struct fsd_op - an operation
 * @handle: does it, and puts the answer into fsd->reply. 0; -EINPROGRESS: it has done nothing yet
 *	and is to be tried again; or the answer's status
 * @fixed: bytes of the message before its strings
 * @flags: FSD_OP_
 */
struct fsd_op {
	int (*handle)(struct fsd_request *r);
	uint16_t fixed;
	uint16_t flags;
};

/* Return: NULL if there is no such operation. */
const struct fsd_op *fsd_op(uint32_t op);

/* Whether it can be one in a directory. */
bool fsd_is_name(struct fsd_text name);

#endif
