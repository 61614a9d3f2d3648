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
	bool is_part; /* of an FS_BATCH */
	bool is_cut; /* and an earlier change of names in the batch has failed */
	bool is_lease; /* and a change of names */
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
	FSD_OP_BATCH = 256, /* also in an FS_BATCH */
	FSD_OP_LEASE = FSD_OP_BATCH | 512, /* there only for a client that may cache names */
	FSD_OP_APART = 1024, /* concerns nothing that another client may have a lease of */
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

/* Add to the reply: zeroes to fill in; bytes; attributes; the extents from @offset to @end. */
void *fsd_reply_reserve(struct fsd_request *r, size_t length);
void fsd_reply_bytes(struct fsd_request *r, const void *bytes, size_t length);
int fsd_reply_attr(struct fsd_request *r, const struct fsd_inode *inode); /* 0 */
int fsd_reply_map(struct fsd_request *r, struct fsd_inode *inode, uint64_t offset,
		  uint64_t end); /* 0, and the client holds the map */

/* Whether @name is valid in a directory. */
bool fsd_is_name(struct fsd_text name);

#endif
