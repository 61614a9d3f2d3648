/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "fsd/data/file.h"
#include "fsd/handle.h"
#include "fsd/inode.h"
#include "fsd/lock.h"

#define RECALL_AGAIN_NS 100000000u

/* Linear search: few clients have the same file open. */
static struct fsd_handle *find_handle(const struct fsd_client *client,
				      const struct fsd_inode *inode)
{
	struct fsd_handle *handle;

	TAILQ_FOREACH(handle, &inode->handles, of_inode) {
		if (handle->client == client)
			break;
	}
	return handle;
}

static void free_handle(struct fsd *fsd, struct fsd_handle *handle)
{
	TAILQ_REMOVE(&handle->inode->handles, handle, of_inode);
	TAILQ_REMOVE(&handle->client->handles, handle, of_client);
	fsd_uncharge(fsd, sizeof(*handle));
	free(handle);
}

int fsd_handle_open(struct fsd_client *client, struct fsd_inode *inode)
{
	struct fsd_handle *handle = find_handle(client, inode);

	if (inode->opens == UINT32_MAX)
		return -ENFILE;
	if (!handle) {
		if (fsd_charge_for(client->fsd, FSD_META_OPEN, sizeof(*handle)))
			return -ENFILE;
		handle = calloc(1, sizeof(*handle));
		if (!handle) {
			fsd_uncharge(client->fsd, sizeof(*handle));
			return -ENOMEM;
		}
		handle->inode = inode;
		handle->client = client;
		TAILQ_INSERT_TAIL(&inode->handles, handle, of_inode);
		TAILQ_INSERT_TAIL(&client->handles, handle, of_client);
	}
	handle->opens++;
	inode->opens++;
	return 0;
}

void fsd_handle_count(struct fsd_client *client, struct fsd_inode *inode, uint32_t more)
{
	find_handle(client, inode)->opens += more;
	inode->opens += more;
}

bool fsd_handle_is_open(const struct fsd_client *client, const struct fsd_inode *inode)
{
	return find_handle(client, inode);
}

void fsd_handle_grant_map(struct fsd_client *client, struct fsd_inode *inode)
{
	struct fsd_handle *handle = find_handle(client, inode);

	if (!handle->newest)
		handle->oldest = inode->epoch;
	handle->newest = inode->epoch;
}

/* Whether a client may still write to these extents. */
static bool map_is_held(const struct fsd_inode *inode, const struct fsd_freed *freed)
{
	const struct fsd_handle *handle;

	TAILQ_FOREACH(handle, &inode->handles, of_inode) {
		if (handle->newest && handle->oldest <= freed->epoch)
			return true;
	}
	return false;
}

/* Frees extents in limbo that no client can reach any more. */
static void free_limbo(struct fsd *fsd, struct fsd_inode *inode)
{
	struct fsd_freed *freed, *next;

	for (freed = TAILQ_FIRST(&inode->limbo); freed; freed = next) {
		next = TAILQ_NEXT(freed, entry);
		if (map_is_held(inode, freed))
			continue;
		TAILQ_REMOVE(&inode->limbo, freed, entry);
		fsd->space.limbo -= freed->map.bytes;
		if (freed->map.nr)
			fsd_space_give_dirty(&fsd->space, freed);
		else
			free(freed);
	}
}

void fsd_handle_map_returned(struct fsd_client *client, struct fsd_inode *inode, uint64_t epoch)
{
	struct fsd_handle *handle = find_handle(client, inode);

	if (!handle || !handle->newest)
		return;
	if (handle->newest <= epoch)
		handle->newest = 0;
	else if (handle->oldest <= epoch)
		handle->oldest = epoch + 1;
	free_limbo(client->fsd, inode);
}

void fsd_handle_map_forgotten(struct fsd_client *client, struct fsd_inode *inode)
{
	fsd_handle_map_returned(client, inode, UINT64_MAX);
}

bool fsd_handle_is_held(const struct fsd_inode *inode)
{
	const struct fsd_handle *handle;

	TAILQ_FOREACH(handle, &inode->handles, of_inode) {
		if (handle->newest)
			return true;
	}
	return false;
}

/* A client that reads too slowly, or is stopped, is told later: it may write to the extents. */
static void send_recall(struct fsd *fsd, const struct fsd_handle *handle, uint64_t epoch)
{
	struct fsd_client *client = handle->client;
	struct wire_fs_recall message = {
		.head = { .op = FS_RECALL, .ino = handle->inode->ino },
		.epoch = epoch,
	};

	if (fsd->host.tell(fsd->host.arg, client->peer, &message, sizeof(message)))
		client->recall_ns = fsd->host.clock_ns(fsd->host.arg) + RECALL_AGAIN_NS;
}

void fsd_handle_recall_again(struct fsd_client *client)
{
	const struct fsd_handle *handle;

	client->recall_ns = 0;
	TAILQ_FOREACH(handle, &client->handles, of_client) {
		const struct fsd_freed *last = TAILQ_LAST(&handle->inode->limbo, fsd_freed_list);

		if (last && handle->newest && handle->oldest <= last->epoch)
			send_recall(client->fsd, handle, last->epoch);
	}
}

void fsd_handle_recall(struct fsd *fsd, struct fsd_inode *inode, struct fsd_freed *freed)
{
	const struct fsd_handle *handle;

	freed->epoch = inode->epoch++;
	TAILQ_FOREACH(handle, &inode->handles, of_inode) {
		if (handle->newest)
			send_recall(fsd, handle, freed->epoch);
	}
	fsd->space.limbo += freed->map.bytes;
	TAILQ_INSERT_TAIL(&inode->limbo, freed, entry);
	free_limbo(fsd, inode);
}

uint64_t fsd_handle_size_max(const struct fsd_client *client, const struct fsd_inode *inode)
{
	const struct fsd_handle *handle = find_handle(client, inode);
	const struct fsd_freed *freed;
	uint64_t size = UINT64_MAX;

	if (!handle || !handle->newest)
		return size;
	TAILQ_FOREACH(freed, &inode->limbo, entry) {
		if (handle->newest <= freed->epoch && freed->size < size)
			size = freed->size;
	}
	return size;
}

/* Frees the client's handles and nothing else: the server ends. */
void fsd_handle_abandon(struct fsd_client *client)
{
	struct fsd_handle *handle;

	while ((handle = TAILQ_FIRST(&client->handles)))
		free_handle(client->fsd, handle);
}

/* Ends a client's last open of a file, with its locks and its map. */
static void end(struct fsd *fsd, struct fsd_handle *handle)
{
	struct fsd_inode *inode = handle->inode;

	fsd_lock_drop(handle->client, inode);
	free_handle(fsd, handle);
	free_limbo(fsd, inode);
	if (!inode->opens && fsd_inode_is_file(inode))
		fsd_file_trim(fsd, inode);
	fsd_inode_put(fsd, inode);
}

int fsd_handle_close(struct fsd_client *client, struct fsd_inode *inode)
{
	struct fsd_handle *handle = find_handle(client, inode);

	if (!handle)
		return -EBADF;
	inode->opens--;
	if (!--handle->opens)
		end(client->fsd, handle);
	return 0;
}

void fsd_handle_drop_client(struct fsd_client *client)
{
	struct fsd_handle *handle;

	while ((handle = TAILQ_FIRST(&client->handles))) {
		handle->inode->opens -= handle->opens;
		end(client->fsd, handle);
	}
}
