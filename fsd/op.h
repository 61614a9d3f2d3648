/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The operations of wire/fs.h, after decoding. */
#ifndef WEIR_FSD_OP_H
#define WEIR_FSD_OP_H

#include "fsd/dir.h"

/* A decoded request. */
struct fsd_request {
	struct fsd *fsd;
	struct fsd_client *client;
	void *call;
	union wire_fs_fixed fixed;
	struct fsd_text name, second; /* strings after the fixed part */
	struct fsd_inode *inode; /* the inode of head.ino, if the operation has one */
	size_t length; /* bytes of the reply so far */
	bool later; /* the reply is sent later, outside the handler */
};

/* Checks of the message before its operation runs. */
enum {
	FSD_OP_INODE = 1, /* head.ino is an inode of any type */
	FSD_OP_DIR = FSD_OP_INODE | 2,
	FSD_OP_FILE = FSD_OP_INODE | 4,
	FSD_OP_NAME = 8, /* a valid directory entry's name follows */
	FSD_OP_XATTR = 16, /* a valid attribute's name follows */
	FSD_OP_FIRST = 32, /* allowed before FS_MOUNT */
	FSD_OP_LOOKS = 64, /* changes nothing */
	FSD_OP_POOL = 128, /* only if the host moves the bytes */
};

/**
 * struct fsd_op - an operation
 * @handle: handles the request and writes the reply into fsd->reply. Returns the reply's status, or
 *	-EINPROGRESS if it changed nothing and must be retried
 * @fixed: bytes of the message before its strings
 * @flags: FSD_OP_ flags
 */
struct fsd_op {
	int (*handle)(struct fsd_request *r);
	uint16_t fixed;
	uint16_t flags;
};

/* Return: the operation, or NULL if none has this number. */
const struct fsd_op *fsd_op(uint32_t op);

/* Whether @name is valid in a directory. */
bool fsd_is_name(struct fsd_text name);

#endif
