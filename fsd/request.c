/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client's messages: decode, check, dispatch, answer. This file validates all lengths, strings
 * and inode numbers of a message.
 */
#include <errno.h>
#include <string.h>

#include "fsd/client.h"
#include "fsd/inode.h"
#include "fsd/op.h"
#include "fsd/deferred.h"
#include "fsd/request.h"
#include "fsd/snapshot/snapshot.h"

static uint32_t second_length(const struct fsd_request *r)
{
	switch (r->fixed.head.op) {
	case FS_MAKE:
		return r->fixed.make.target_length;
	case FS_RENAME:
		return r->fixed.rename.new_length;
	case FS_SETXATTR:
		return r->fixed.xattr.value_length;
	case FS_NAME:
		return r->fixed.name.target_length;
	case FS_BATCH:
		return r->fixed.batch.bytes;
	default:
		return 0;
	}
}

/* The message must consist of exactly the fixed part and the strings. */
static int decode_request(struct fsd_request *r, const struct fsd_op *op, const char *message,
			  size_t length)
{
	size_t strings;

	if (length < op->fixed)
		return -EPROTO;
	memcpy(&r->fixed.head, message, op->fixed);
	strings = length - op->fixed;
	r->name = (struct fsd_text){ message + op->fixed, r->fixed.head.name_length };
	if (r->name.length > strings)
		return -EPROTO;
	r->second = (struct fsd_text){ r->name.at + r->name.length, second_length(r) };
	if (r->second.length != strings - r->name.length)
		return -EPROTO;
	if (r->name.length && !(op->flags & (FSD_OP_NAME | FSD_OP_XATTR)))
		return -EPROTO;
	if (op->flags & (FSD_OP_NAME | FSD_OP_XATTR) && r->name.length > FS_NAME_MAX)
		return -ENAMETOOLONG;
	if (op->flags & FSD_OP_NAME && !fsd_is_name(r->name))
		return -EINVAL;
	if (op->flags & FSD_OP_XATTR && (!r->name.length || memchr(r->name.at, 0, r->name.length)))
		return -EINVAL;
	return 0;
}

static int find_inode(struct fsd_request *r, const struct fsd_op *op)
{
	if (!(op->flags & FSD_OP_INODE))
		return 0;
	r->inode = fsd_inode_find(r->fsd, r->fixed.head.ino);
	if (!r->inode || fsd_snapshot_hides(r->fsd, r->inode->ino))
		return -ESTALE;
	if ((op->flags & FSD_OP_DIR) == FSD_OP_DIR && !fsd_inode_is_dir(r->inode))
		return -ENOTDIR;
	if ((op->flags & FSD_OP_FILE) == FSD_OP_FILE && !fsd_inode_is_file(r->inode))
		return fsd_inode_is_dir(r->inode) ? -EISDIR : -EINVAL;
	return 0;
}

int fsd_request_handle(struct fsd_request *r, const void *message, size_t length)
{
	const struct fsd_op *op;
	int rc;

	if (length < sizeof(r->fixed.head))
		return -EPROTO;
	memcpy(&r->fixed.head, message, sizeof(r->fixed.head));
	op = fsd_op(r->fixed.head.op);
	if (!op || (op->flags & FSD_OP_POOL && !fsd_moves_data(r->fsd)))
		return -EOPNOTSUPP;
	if (r->is_part && !(op->flags & FSD_OP_BATCH))
		return -EOPNOTSUPP;
	r->is_lease = r->is_part && (op->flags & FSD_OP_LEASE) == FSD_OP_LEASE;
	if (r->is_lease && r->is_cut)
		return -ECANCELED;
	if (r->is_lease && !r->client->caches)
		return -ESTALE;
	if (!(op->flags & FSD_OP_FIRST) && r->client->state != FSD_MOUNTED)
		return -EPROTO;
	rc = decode_request(r, op, message, length);
	if (!rc)
		rc = find_inode(r, op);
	if (!rc && !(op->flags & FSD_OP_LOOKS))
		r->fsd->changes++;
	return rc ? rc : op->handle(r);
}

/* Those of an unknown message: it concerns nothing. */
static unsigned int flags_of(const void *message, size_t length)
{
	struct wire_fs_head head;
	const struct fsd_op *op;

	if (length < sizeof(head))
		return FSD_OP_LOOKS | FSD_OP_APART;
	memcpy(&head, message, sizeof(head));
	op = fsd_op(head.op);
	return op ? op->flags : FSD_OP_LOOKS | FSD_OP_APART;
}

int fsd_request_try(struct fsd_client *client, void *call, const void *message, size_t length)
{
	struct fsd *fsd = client->fsd;
	struct fsd_request r = {
		.fsd = fsd,
		.client = client,
		.call = call,
		.length = sizeof(struct wire_fs_reply),
	};
	struct wire_fs_reply reply;
	int status;

	fsd->call = call;
	fsd_client_note_request(client, flags_of(message, length));
	status = fsd_request_handle(&r, message, length);

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

bool fsd_may_change(const void *message, size_t length)
{
	return !(flags_of(message, length) & FSD_OP_LOOKS);
}

/*
 * Whether a message must wait until a directory is copied: it may change what is copied, or the
 * room for the copy.
 */
static bool is_frozen(const struct fsd *fsd, const void *message, size_t length)
{
	struct wire_fs_head head;

	if (!fsd_snapshot_freezes(fsd) || !fsd_may_change(message, length))
		return false;
	memcpy(&head, message, sizeof(head));
	return head.op != FS_RETURN && head.op != FS_SHARED && head.op != FS_CANCELLK;
}

bool fsd_request_must_wait(struct fsd_client *client, const void *message, size_t length)
{
	return fsd_client_must_wait(client, flags_of(message, length));
}

void fsd_request(struct fsd_client *client, void *call, const void *message, size_t length)
{
	if (fsd_moves_data(client->fsd)) /* nothing needs to be zeroed */
		fsd_space_clean(&client->fsd->space, UINT64_MAX);
	if (fsd_request_must_wait(client, message, length) ||
	    is_frozen(client->fsd, message, length) ||
	    (fsd_request_try(client, call, message, length) == -EINPROGRESS && call))
		fsd_deferred_add(client, call, message, length);
}
