/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "fsd/dir.h"
#include "fsd/handle.h"
#include "fsd/inode.h"
#include "fsd/lock.h"
#include "fsd/deferred.h"
#include "fsd/snapshot/snapshot.h"

#define META_BYTES_MIN (16ull << 20)
#define CLEAN_BYTES (2u << 20) /* per slice: about 0.3 ms */
#define META_PART 8 /* metadata may use an eighth of bytes_max */

static int make_root(struct fsd *fsd)
{
	int rc = fsd_inode_new(fsd, S_IFDIR | 0755, 0, NULL, 0, &fsd->root);

	if (rc)
		return rc;
	fsd_dir_init(fsd->root, fsd->root);
	fsd->root->nlink = 2;
	fsd->root->uid = fsd->options.uid;
	fsd->root->gid = fsd->options.gid;
	return 0;
}

int fsd_open(const struct fsd_host *host, const struct fsd_options *options, struct fsd **fsd)
{
	struct fsd *new = calloc(1, sizeof(*new));

	if (!new)
		return -ENOMEM;
	new->host = *host;
	new->options = *options;
	new->next_ino = FS_ROOT;
	new->next_client = 1;
	new->meta_bytes_max = options->bytes_max / META_PART;
	if (new->meta_bytes_max < META_BYTES_MIN)
		new->meta_bytes_max = META_BYTES_MIN;
	if (options->meta_max)
		new->meta_bytes_max = options->meta_max;
	TAILQ_INIT(&new->clients);
	TAILQ_INIT(&new->deferred);
	fsd_space_init(&new->space, &new->host, options->bytes_max, options->chunk_bytes);
	if (fsd_hashtable_init(&new->inodes) || fsd_hashtable_init(&new->names) || make_root(new)) {
		fsd_hashtable_fini(&new->inodes);
		fsd_hashtable_fini(&new->names);
		free(new);
		return -ENOMEM;
	}
	*fsd = new;
	return 0;
}

static void free_all(struct fsd_hashtable *table, void (*free_one)(struct fsd *fsd, void *one),
		     struct fsd *fsd)
{
	struct fsd_hash_node *link;

	for (uint64_t i = 0; i < table->buckets; i++)
		while ((link = fsd_hashtable_bucket(table, i)))
			free_one(fsd, link);
}

static void free_name(struct fsd *fsd, void *name)
{
	fsd_hashtable_remove(&fsd->names, name);
	free(name);
}

static void free_inode(struct fsd *fsd, void *inode)
{
	fsd_inode_free(fsd, inode);
}

/* Clients whose state is to live on elsewhere, as an image has it. */
static void abandon_clients(struct fsd *fsd)
{
	struct fsd_client *client;

	TAILQ_FOREACH(client, &fsd->clients, entry) {
		struct fsd_handle *handle;

		TAILQ_FOREACH(handle, &client->handles, of_client)
			fsd_lock_abandon(fsd, handle->inode);
	}
	while ((client = TAILQ_FIRST(&fsd->clients))) {
		fsd_handle_abandon(client);
		TAILQ_REMOVE(&fsd->clients, client, entry);
		free(client);
	}
}

void fsd_close(struct fsd *fsd)
{
	fsd_snapshot_fini(fsd);
	abandon_clients(fsd);
	free_all(&fsd->names, free_name, fsd);
	free_all(&fsd->inodes, free_inode, fsd);
	fsd_hashtable_fini(&fsd->names);
	fsd_hashtable_fini(&fsd->inodes);
	fsd_space_fini(&fsd->space);
	free(fsd);
}

/* Whether the volume should grow ahead of need. */
static bool is_short(const struct fsd *fsd)
{
	const struct fsd_client *client;

	TAILQ_FOREACH(client, &fsd->clients, entry) {
		if (client->state == FSD_MOUNTED)
			return fsd_space_is_short(&fsd->space);
	}
	return false;
}

bool fsd_has_freed(const struct fsd *fsd)
{
	return fsd->space.dirty;
}

bool fsd_has_work(const struct fsd *fsd)
{
	return fsd->space.dirty || !TAILQ_EMPTY(&fsd->deferred) || fsd->snapshot || is_short(fsd);
}

void fsd_work(struct fsd *fsd)
{
	fsd_space_clean(&fsd->space, CLEAN_BYTES);
	if (is_short(fsd))
		fsd_space_grow(&fsd->space);
	fsd_snapshot_work(fsd);
	fsd_deferred_retry(fsd);
}

void fsd_info(const struct fsd *fsd, struct fsd_info *info)
{
	const struct fsd_space *space = &fsd->space;
	const struct fsd_client *client;

	*info = (struct fsd_info){
		.files = fsd->inodes.nr,
		.bytes_taken = space->total,
		.bytes_used = space->total - space->free - space->dirty,
		.bytes_limbo = space->limbo,
		.bytes_dirty = space->dirty,
	};
	TAILQ_FOREACH(client, &fsd->clients, entry)
		info->mounted += client->state == FSD_MOUNTED;
}
