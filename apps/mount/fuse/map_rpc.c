/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests to the donor for a file's map, for allocation, and for the volume's chunks. */
#include <errno.h>
#include <string.h>

#include "apps/mount/fuse/io.h"

#define AHEAD_MIN (256u << 10)
#define AHEAD_MAX (4u << 20)

/*
 * Bytes to allocate beyond a write's need. The amount grows while a file grows sequentially, so few
 * writes need a request. The donor frees the unused rest at the last close.
 */
static uint64_t ahead(const struct io *io)
{
	struct inode *inode = io->inode;

	if (io->no_ahead || !io->sequential)
		inode->ahead = 0;
	else if (inode->ahead < AHEAD_MAX)
		inode->ahead = inode->ahead ? 2 * inode->ahead : AHEAD_MIN;
	return inode->ahead;
}

static uint64_t round_up(uint64_t offset)
{
	return (offset + FS_BLOCK - 1) / FS_BLOCK * FS_BLOCK;
}

/* Chooses the range to request. Inode's lock held. */
static enum wire_fs_op choose_range(struct io *io)
{
	uint64_t at = io->offset + io->done;
	uint64_t file_end = round_up(io->inode->size);
	uint64_t unknown = 1;

	io->ask = at / FS_BLOCK * FS_BLOCK;
	io->ask_end = round_up(io->offset + io->length);
	/* A map is small: request it to the end of the file. */
	if (!io->write || (at < file_end && !map_is_known(&io->inode->map, at, &unknown) &&
			   !(at >= io->hole && at < io->hole_end))) {
		if (io->ask_end < file_end)
			io->ask_end = file_end;
		return FS_MAP;
	}
	io->ask_end += ahead(io);
	return FS_ALLOC;
}

/* Joins a request in flight that covers this range, and waits for its reply. Inode's lock held. */
static bool join_pending_rpc(struct io *io)
{
	struct inode *inode = io->inode;

	if (!inode->map_rpc_pending) {
		inode->map_rpc_pending = io->leads_rpc = true;
		inode->ask = io->ask;
		inode->ask_end = io->ask_end;
		return false;
	}
	if (io->ask < inode->ask || io->ask >= inode->ask_end)
		return false;
	io->next_waiter = inode->map_rpc_waiters;
	inode->map_rpc_waiters = io;
	return true;
}

static struct io *end_rpc(struct io *io)
{
	struct io *others = io->inode->map_rpc_waiters;

	if (!io->leads_rpc)
		return NULL;
	io->leads_rpc = false;
	io->inode->map_rpc_pending = false;
	io->inode->map_rpc_waiters = NULL;
	return others;
}

/* Inode's lock held. */
static int learn_map(struct io *io, const void *reply, size_t length)
{
	struct wire_fs_map map;
	int rc = inode_learn_map(io->inode, reply, length, io->ask, &map);

	if (rc == -EAGAIN) /* ask again */
		return 0;
	if (rc)
		return rc;
	io->hole = io->ask;
	io->hole_end = map.end;
	return 0;
}

static void map_answered(void *arg, int status, const void *reply, size_t length)
{
	struct io *io = arg;
	struct io *others;

	status = call_status(status, reply, length,
			     sizeof(struct wire_fs_map) - sizeof(struct wire_fs_reply));
	pthread_mutex_lock(&io->inode->lock);
	if (!status)
		status = learn_map(io, reply, length);
	others = end_rpc(io);
	pthread_mutex_unlock(&io->inode->lock);

	/* There may be enough space without allocating ahead. */
	if (status == -ENOSPC && !io->no_ahead)
		io->no_ahead = true;
	else if (status)
		atomic_store(&io->status, status);
	io_run(io);
	while (others) {
		struct io *other = others;

		others = other->next_waiter;
		io_run(other);
	}
}

/* A blocking call polls for the reply for a while, which avoids waking the session's thread. */
static void fetch_and_wait(struct io *io, const struct wire_fs_range *range)
{
	struct donor_reply reply;
	int rc = call_wait(io->mount, io->req, range, sizeof(*range), &reply);

	map_answered(io, rc, reply.bytes, reply.length);
}

void map_rpc_fetch(struct io *io)
{
	struct wire_fs_range range = { .head = { .ino = io->inode->ino } };
	bool joined;

	pthread_mutex_lock(&io->inode->lock);
	range.head.op = (uint16_t)choose_range(io);
	range.offset = io->ask;
	range.length = io->ask_end - io->ask;
	joined = join_pending_rpc(io);
	pthread_mutex_unlock(&io->inode->lock);
	if (joined)
		return;
	if (io_may_wait(io))
		fetch_and_wait(io, &range);
	else if (call_later(io->mount, &range, sizeof(range), call_timeout_ns(io->mount),
			    map_answered, io))
		map_answered(io, -EIO, NULL, 0);
}

static void volume_answered(void *arg, int status, const void *reply, size_t length)
{
	struct io *io = arg;

	status = call_status(status, reply, length, sizeof(struct wire_fs_chunk));
	if (!status)
		status = volume_learn(io->mount, io->first_chunk,
				      (const char *)reply + sizeof(struct wire_fs_reply),
				      length - sizeof(struct wire_fs_reply));
	if (status)
		atomic_store(&io->status, status);
	io_run(io);
}

/* Fetches chunks after the donor has extended the volume. */
void map_rpc_fetch_volume(struct io *io)
{
	struct wire_fs_volume volume = { .head = { .op = FS_VOLUME } };

	volume.first = io->first_chunk = volume_chunks(&io->mount->volume);
	if (call_later(io->mount, &volume, sizeof(volume), call_timeout_ns(io->mount),
		       volume_answered, io))
		volume_answered(io, -EIO, NULL, 0);
}
