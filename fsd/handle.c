/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "fsd/data/file.h"
#include "fsd/handle.h"
#include "fsd/inode.h"
#include "fsd/lock.h"

/* Few clients have one file: a walk is enough. */
static struct fsd_holder *find(const struct fsd_client *client, const struct fsd_inode *inode)
{
	struct fsd_holder *holder;

	TAILQ_FOREACH(holder, &inode->holders, of_inode) {
		if (holder->client == client)
			break;
	}
	return holder;
}

static void drop(struct fsd *fsd, struct fsd_holder *holder)
{
	TAILQ_REMOVE(&holder->inode->holders, holder, of_inode);
	TAILQ_REMOVE(&holder->client->holders, holder, of_client);
	fsd_uncharge(fsd, sizeof(*holder));
	free(holder);
}

int fsd_holder_open(struct fsd_client *client, struct fsd_inode *inode)
{
	struct fsd_holder *holder = find(client, inode);

	if (inode->opens == UINT32_MAX)
		return -ENFILE;
	if (!holder) {
		if (fsd_charge(client->fsd, sizeof(*holder)))
			return -ENFILE;
		holder = calloc(1, sizeof(*holder));
		if (!holder) {
			fsd_uncharge(client->fsd, sizeof(*holder));
			return -ENOMEM;
		}
		holder->inode = inode;
		holder->client = client;
		TAILQ_INSERT_TAIL(&inode->holders, holder, of_inode);
		TAILQ_INSERT_TAIL(&client->holders, holder, of_client);
	}
	holder->opens++;
	inode->opens++;
	return 0;
}

bool fsd_holder_has_open(const struct fsd_client *client, const struct fsd_inode *inode)
{
	return find(client, inode);
}

void fsd_holder_give_map(struct fsd_client *client, struct fsd_inode *inode)
{
	struct fsd_holder *holder = find(client, inode);

	if (!holder->newest)
		holder->oldest = inode->epoch;
	holder->newest = inode->epoch;
}

/* May a client still write to these? */
static bool is_held(const struct fsd_inode *inode, const struct fsd_freed *freed)
{
	const struct fsd_holder *holder;

	TAILQ_FOREACH(holder, &inode->holders, of_inode) {
		if (holder->newest && holder->oldest <= freed->epoch)
			return true;
	}
	return false;
}

/* Lets go what nobody holds any more. */
static void settle(struct fsd *fsd, struct fsd_inode *inode)
{
	struct fsd_freed *freed, *next;

	for (freed = TAILQ_FIRST(&inode->limbo); freed; freed = next) {
		next = TAILQ_NEXT(freed, entry);
		if (is_held(inode, freed))
			continue;
		TAILQ_REMOVE(&inode->limbo, freed, entry);
		fsd->space.limbo -= freed->map.bytes;
		fsd_space_give_dirty(&fsd->space, freed);
	}
}

void fsd_holder_returned(struct fsd_client *client, struct fsd_inode *inode, uint64_t epoch)
{
	struct fsd_holder *holder = find(client, inode);

	if (!holder || !holder->newest)
		return;
	if (holder->newest <= epoch)
		holder->newest = 0;
	else if (holder->oldest <= epoch)
		holder->oldest = epoch + 1;
	settle(client->fsd, inode);
}

void fsd_holder_forgot(struct fsd_client *client, struct fsd_inode *inode)
{
	fsd_holder_returned(client, inode, UINT64_MAX);
}

static void recall(struct fsd *fsd, const struct fsd_holder *holder, uint64_t epoch)
{
	struct fs_recall message = {
		.head = { .op = FS_RECALL, .ino = holder->inode->ino },
		.epoch = epoch,
	};

	fsd->host.tell(fsd->host.arg, holder->client->peer, &message, sizeof(message));
}

void fsd_holder_freed(struct fsd *fsd, struct fsd_inode *inode, struct fsd_freed *freed)
{
	const struct fsd_holder *holder;

	freed->epoch = inode->epoch++;
	TAILQ_FOREACH(holder, &inode->holders, of_inode) {
		if (holder->newest)
			recall(fsd, holder, freed->epoch);
	}
	fsd->space.limbo += freed->map.bytes;
	TAILQ_INSERT_TAIL(&inode->limbo, freed, entry);
	settle(fsd, inode);
}

/* A client's last open of a file ends: with it end its locks and its map. */
static void end(struct fsd *fsd, struct fsd_holder *holder)
{
	struct fsd_inode *inode = holder->inode;

	fsd_lock_drop(holder->client, inode);
	drop(fsd, holder);
	settle(fsd, inode);
	if (!inode->opens && fsd_is_file(inode))
		fsd_file_trim(fsd, inode);
	fsd_inode_put(fsd, inode);
}

int fsd_holder_close(struct fsd_client *client, struct fsd_inode *inode)
{
	struct fsd_holder *holder = find(client, inode);

	if (!holder)
		return -EBADF;
	inode->opens--;
	if (!--holder->opens)
		end(client->fsd, holder);
	return 0;
}

void fsd_holder_leave(struct fsd_client *client)
{
	struct fsd_holder *holder;

	while ((holder = TAILQ_FIRST(&client->holders))) {
		holder->inode->opens -= holder->opens;
		end(client->fsd, holder);
	}
}
