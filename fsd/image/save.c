/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "fsd/image/format.h"
#include "fsd/image/image.h"
#include "fsd/inode.h"
#include "fsd/lock.h"
#include "fsd/xattr.h"

static uint32_t save_extents(const struct fsd_map *map, struct fsd_bytes *image)
{
	struct fsd_map_cursor place = fsd_map_seek(map, 0);
	const struct wire_fs_extent *e;
	uint32_t count = 0;

	for (; (e = fsd_map_at(&place)); fsd_map_step(&place), count++)
		fsd_bytes_put(image, e, sizeof(*e));
	return count;
}

static uint32_t save_names(const struct fsd_dir *dir, struct fsd_bytes *image)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < dir->nr; i++) {
		const struct fsd_name *name = dir->slot[i].name;

		if (!name)
			continue;
		fsd_bytes_put(image,
			      &(struct image_name){ .cookie = name->cookie,
						    .ino = name->inode->ino,
						    .length = name->length },
			      sizeof(struct image_name));
		fsd_bytes_put(image, name->text, name->length);
		count++;
	}
	return count;
}

static uint32_t save_xattrs(const struct fsd_inode *inode, struct fsd_bytes *image)
{
	const struct fsd_xattr *x;
	uint32_t count = 0;

	TAILQ_FOREACH(x, &inode->xattrs, entry) {
		fsd_bytes_put(image, &(struct image_xattr){ x->name_length, x->value_length },
			      sizeof(struct image_xattr));
		fsd_bytes_put(image, x->text, x->name_length + x->value_length);
		count++;
	}
	return count;
}

static void save_inode(const struct fsd_inode *inode, struct fsd_bytes *image)
{
	struct image_inode out = {
		.ino = inode->ino,
		.size = inode->size,
		.change = inode->change,
		.epoch = inode->epoch,
		.kept_end = inode->kept_end,
		.atime = inode->atime,
		.mtime = inode->mtime,
		.ctime = inode->ctime,
		.mode = inode->mode,
		.nlink = inode->nlink,
		.uid = inode->uid,
		.gid = inode->gid,
		.rdev = inode->rdev,
	};
	size_t at = image->length;

	fsd_bytes_put(image, &out, sizeof(out));
	if (fsd_inode_is_file(inode)) {
		out.parts = save_extents(&inode->map, image);
	} else if (fsd_inode_is_dir(inode)) {
		out.parent = inode->dir.parent->ino;
		out.next_cookie = inode->dir.next_cookie;
		out.parts = save_names(&inode->dir, image);
	} else if (S_ISLNK(inode->mode)) {
		fsd_bytes_put(image, inode->target, inode->size);
	}
	out.xattrs = save_xattrs(inode, image);
	if (!image->is_short)
		memcpy(image->at + at, &out, sizeof(out));
}

static void save_client(const struct fsd_client *client, struct fsd_bytes *image)
{
	struct image_client out = { .id = client->id, .is_mounted = client->state == FSD_MOUNTED };
	const struct fsd_handle *handle;

	TAILQ_FOREACH(handle, &client->handles, of_client)
		out.handles++;
	fsd_bytes_put(image, &out, sizeof(out));
	TAILQ_FOREACH(handle, &client->handles, of_client)
		fsd_bytes_put(image,
			      &(struct image_handle){ .ino = handle->inode->ino,
						      .opens = handle->opens },
			      sizeof(struct image_handle));
}

static void save_lock(const struct fsd_lock *lock, uint64_t cancel, uint64_t call,
		      struct fsd_bytes *image)
{
	const struct image_lock out = {
		.client = lock->client->id,
		.owner = lock->owner,
		.start = lock->start,
		.end = lock->end,
		.cancel = cancel,
		.call = call,
		.type = lock->type,
		.pid = lock->pid,
		.is_flock = lock->flock,
		.has_spare = lock->spare != NULL,
	};

	fsd_bytes_put(image, &out, sizeof(out));
}

static bool has_locks(const struct fsd_inode *inode)
{
	return !TAILQ_EMPTY(&inode->locks) || !TAILQ_EMPTY(&inode->waits);
}

static void save_locks(const struct fsd_inode *inode, const struct fsd_image_calls *calls,
		       struct fsd_bytes *image)
{
	struct image_locks out = { .ino = inode->ino };
	const struct fsd_lock *lock;
	const struct fsd_wait *wait;

	TAILQ_FOREACH(lock, &inode->locks, entry)
		out.held++;
	TAILQ_FOREACH(wait, &inode->waits, of_inode)
		out.waiting++;
	fsd_bytes_put(image, &out, sizeof(out));
	TAILQ_FOREACH(lock, &inode->locks, entry)
		save_lock(lock, 0, 0, image);
	TAILQ_FOREACH(wait, &inode->waits, of_inode)
		save_lock(&wait->wanted, wait->cancel, calls->number(wait->call), image);
}

static int compare_inodes(const void *a, const void *b)
{
	uint64_t left = (*(const struct fsd_inode *const *)a)->ino;
	uint64_t right = (*(const struct fsd_inode *const *)b)->ino;

	return left < right ? -1 : left > right;
}

/* All inodes by number; the caller frees the array. */
static struct fsd_inode **sort_inodes(const struct fsd *fsd)
{
	struct fsd_inode **inodes = malloc((fsd->inodes.nr + 1) * sizeof(struct fsd_inode *));
	size_t nr = 0;

	if (!inodes)
		return NULL;
	for (uint64_t i = 0; i < fsd->inodes.buckets; i++) {
		struct fsd_hash_node *link = fsd_hashtable_bucket(&fsd->inodes, i);

		for (; link; link = link->next)
			inodes[nr++] = (struct fsd_inode *)link;
	}
	qsort(inodes, nr, sizeof(*inodes), compare_inodes);
	return inodes;
}

int fsd_image_save(const struct fsd *fsd, const struct fsd_image_calls *calls,
		   struct fsd_bytes *image)
{
	struct image_head head = {
		.magic = IMAGE_MAGIC,
		.next_ino = fsd->next_ino,
		.next_client = fsd->next_client,
		.inodes = fsd->inodes.nr,
	};
	struct fsd_inode **inodes = sort_inodes(fsd);
	const struct fsd_client *client;

	if (!inodes)
		return -ENOMEM;
	TAILQ_FOREACH(client, &fsd->clients, entry)
		head.clients++;
	for (uint64_t i = 0; i < head.inodes; i++)
		head.locks += has_locks(inodes[i]);
	fsd_bytes_put(image, &head, sizeof(head));
	for (uint64_t i = 0; i < head.inodes; i++)
		save_inode(inodes[i], image);
	TAILQ_FOREACH(client, &fsd->clients, entry)
		save_client(client, image);
	for (uint64_t i = 0; i < head.inodes; i++) {
		if (has_locks(inodes[i]))
			save_locks(inodes[i], calls, image);
	}
	free(inodes);
	return image->is_short ? -ENOMEM : 0;
}
