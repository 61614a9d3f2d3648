/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A reserved file is an inode without a name, opened by the client, with blocks ahead if memory is
 * in plenty. The end of the client closes and frees the file. So a reservation needs no state but
 * the range of numbers.
 *
 * The client counts on the success of its changes. Names and inodes take memory, so each reply says
 * whether the donor has room for all changes that the client may have queued meanwhile.
 */
#include <errno.h>
#include <string.h>

#include "fsd/batch/batch.h"
#include "fsd/client.h"
#include "fsd/data/file.h"
#include "fsd/handle.h"
#include "fsd/inode.h"
#include "fsd/request.h"

#define ROOM_BYTES (1u << 20) /* several full batches of the longest names */
#define FILE_REPLY_MAX                                                     \
	(sizeof(struct wire_fs_attr) + sizeof(struct wire_fs_map) +        \
	 FS_FIRST_BYTES / FS_BLOCK * sizeof(struct wire_fs_extent))
#define MODE_BITS 07777u

static_assert(sizeof(struct wire_fs_reserved) + FS_RESERVE_FILES_MAX * FILE_REPLY_MAX <=
		      FSD_MESSAGE_MAX,
	      "all files fit in a reply");
/* The largest reply of a change, before attributes are cut off: FS_RENAME's. */
static_assert(sizeof(struct wire_fs_batched) + 4 * sizeof(struct wire_fs_attr) +
			      FS_BATCH_MAX * (sizeof(struct wire_fs_result) +
					      sizeof(struct wire_fs_attr)) <=
		      FSD_MESSAGE_MAX,
	      "all results fit in a reply");

static bool has_room(const struct fsd *fsd)
{
	return fsd_meta_room(fsd) >= ROOM_BYTES;
}

/* Return: whether there was memory. */
static bool reserve_file(struct fsd_request *r)
{
	struct fsd_inode *file;

	if (fsd_inode_new(r->fsd, S_IFREG, 0, NULL, 0, &file))
		return false;
	if (fsd_handle_open(r->client, file)) {
		fsd_inode_put(r->fsd, file);
		return false;
	}
	fsd_file_fill_ahead(r->fsd, file);
	return true;
}

static void reply_file(struct fsd_request *r, struct fsd_inode *file)
{
	struct wire_fs_attr attr;

	fsd_inode_attr(file, &attr);
	attr.blocks = 0; /* as in the reply to FS_MAKE */
	fsd_reply_bytes(r, &attr, sizeof(attr));
	fsd_reply_map(r, file, 0, FS_FIRST_BYTES);
}

int fsd_batch_reserve(struct fsd_request *r)
{
	const struct wire_fs_reserve *wanted = &r->fixed.reserve;
	struct wire_fs_reserved reserved = { .numbers = wanted->numbers };
	const size_t at = r->length;
	uint64_t first;

	if (fsd_moves_data(r->fsd))
		return -EOPNOTSUPP;
	if (wanted->files > FS_RESERVE_FILES_MAX || wanted->numbers > FS_RESERVE_NUMBERS_MAX)
		return -EINVAL;
	if (fsd_client_reply(r->client, 0).shared == FS_REPLY_SHARED || !has_room(r->fsd))
		return -EAGAIN;
	if (wanted->numbers) {
		reserved.first = r->client->first_number = r->fsd->next_ino;
		r->fsd->next_ino += wanted->numbers;
		r->client->end_number = r->fsd->next_ino;
	}
	fsd_reply_reserve(r, sizeof(reserved) - sizeof(reserved.reply));
	first = r->fsd->next_ino;
	while (reserved.files < wanted->files && reserve_file(r))
		reply_file(r, fsd_inode_find(r->fsd, first + reserved.files++));
	memcpy(r->fsd->reply + at, (uint8_t *)&reserved + sizeof(reserved.reply),
	       sizeof(reserved) - sizeof(reserved.reply));
	return 0;
}

/* A reserved file: only the client knows the number. */
static int take_file(struct fsd_request *r, struct fsd_inode **inode)
{
	struct fsd_inode *file = fsd_inode_find(r->fsd, r->fixed.name.ino);

	if (!file || !fsd_inode_is_file(file) || file->nlink ||
	    !fsd_handle_is_open(r->client, file))
		return -ESTALE;
	if (r->second.length)
		return -EINVAL;
	*inode = file;
	return 0;
}

/* Numbers rise, so none is used twice. */
static int make_other(struct fsd_request *r, struct fsd_inode **inode)
{
	const struct wire_fs_name *name = &r->fixed.name;

	if (name->ino < r->client->first_number || name->ino >= r->client->end_number)
		return -ESTALE;
	if (S_ISDIR(name->mode) ? r->second.length :
				  !S_ISLNK(name->mode) || !r->second.length ||
					  r->second.length > FS_TARGET_MAX)
		return -EINVAL;
	r->client->first_number = name->ino + 1;
	return fsd_inode_restore(r->fsd, name->ino, name->mode, r->second.at, r->second.length,
				 inode);
}

int fsd_batch_name(struct fsd_request *r)
{
	const struct wire_fs_name *name = &r->fixed.name;
	struct fsd_inode *inode;
	int rc;

	if (!r->is_part)
		return -EOPNOTSUPP;
	if (name->mode & ~(S_IFMT | MODE_BITS))
		return -EINVAL;
	if (fsd_dir_find(r->fsd, r->inode, r->name))
		return -EEXIST;
	rc = S_ISREG(name->mode) ? take_file(r, &inode) : make_other(r, &inode);
	if (rc)
		return rc;
	inode->mode = name->mode;
	inode->uid = name->head.uid;
	inode->gid = name->head.gid;
	inode->atime = inode->mtime = inode->ctime = fsd_now(r->fsd);
	rc = fsd_dir_link(r->fsd, r->inode, r->name, inode);
	if (rc)
		fsd_inode_put(r->fsd, inode);
	return rc;
}

/* A change, and where the next begins; false: the batch is malformed. */
static bool next_change(struct fsd_text *rest, struct wire_fs_change *change, const char **message)
{
	size_t bytes;

	if (rest->length < sizeof(*change))
		return false;
	memcpy(change, rest->at, sizeof(*change));
	*message = rest->at + sizeof(*change);
	if (change->length > rest->length - sizeof(*change) || change->time.nsec >= 1000000000)
		return false;
	bytes = sizeof(*change) + (change->length + 7ull) / 8 * 8;
	if (bytes > rest->length)
		return false;
	rest->at += bytes;
	rest->length -= (uint32_t)bytes;
	return true;
}

/* @is_cut: a change of names has failed. Return: the new value. */
static bool run_change(struct fsd_request *r, const struct wire_fs_change *change,
		       const char *message, bool is_cut)
{
	struct fsd_request part = {
		.fsd = r->fsd,
		.client = r->client,
		.length = r->length + sizeof(struct wire_fs_result),
		.is_part = true,
		.is_cut = is_cut,
	};
	struct wire_fs_result result;
	const size_t body = part.length;

	r->fsd->as_of = &change->time;
	result.status = fsd_request_handle(&part, message, change->length);
	r->fsd->as_of = NULL;
	/* Of a change of names, the client knows the attributes. */
	result.length = result.status || part.is_lease ? 0 : (uint32_t)(part.length - body);
	memcpy(r->fsd->reply + r->length, &result, sizeof(result));
	r->length = body + result.length;
	return is_cut || (result.status && part.is_lease);
}

int fsd_batch(struct fsd_request *r)
{
	const struct wire_fs_batch *batch = &r->fixed.batch;
	struct wire_fs_batched batched = { .changes = batch->changes };
	struct wire_fs_result skipped = { .status = -ECANCELED };
	struct fsd_text rest = r->second;
	const size_t at = r->length;
	struct wire_fs_change change;
	const char *message;
	bool is_cut = false, is_whole = true;

	if (fsd_moves_data(r->fsd))
		return -EOPNOTSUPP;
	if (batch->changes > FS_BATCH_MAX)
		return -EINVAL;
	if (batch->number && batch->number == r->client->batch)
		return r->client->batch_is_cut ? -ESTALE : -EALREADY;
	if (batch->number != r->client->batch + 1)
		return -EPROTO;
	r->client->batch++;
	fsd_reply_reserve(r, sizeof(batched) - sizeof(batched.reply));
	for (uint32_t i = 0; i < batch->changes; i++) {
		is_whole = is_whole && next_change(&rest, &change, &message);
		if (is_whole)
			is_cut = run_change(r, &change, message, is_cut);
		else
			fsd_reply_bytes(r, &skipped, sizeof(skipped));
	}
	r->client->batch_is_cut = is_cut || !is_whole;
	batched.has_room = has_room(r->fsd);
	memcpy(r->fsd->reply + at, (uint8_t *)&batched + sizeof(batched.reply),
	       sizeof(batched) - sizeof(batched.reply));
	return 0;
}
