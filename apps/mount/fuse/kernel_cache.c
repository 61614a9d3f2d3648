/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/fuse/kernel_cache.h"

#include <semaphore.h>
#include <string.h>

#include "apps/mount/donor/call.h"

bool kernel_cache_is_stale(struct inode *inode, const struct wire_fs_locked *locked)
{
	bool stale;

	pthread_mutex_lock(&inode->lock);
	stale = inode->pages != locked->attr.change || inode->sized != locked->attr.change;
	pthread_mutex_unlock(&inode->lock);
	return stale;
}

/*
 * Raises the kernel's size, where the kernel appends. Only bytes can raise the size, and the last
 * byte of the file suffices.
 */
static void raise_size(struct mount *m, uint64_t ino, uint64_t size, uint8_t last_byte)
{
	struct fuse_bufvec byte = FUSE_BUFVEC_INIT(sizeof(last_byte));

	byte.buf[0].mem = &last_byte;
	fuse_lowlevel_notify_store(m->fuse, ino, (off_t)size - 1, &byte, 0);
}

struct last_byte {
	sem_t done;
	bool is_there;
	uint8_t byte;
};

static void got_last_byte(void *arg, int status, const void *reply, size_t length)
{
	struct wire_fs_transferred out = { 0 };
	struct last_byte *last = arg;

	if (!call_status(status, reply, length, sizeof(out) - sizeof(out.reply)))
		memcpy(&out, reply, sizeof(out));
	last->is_there = out.length == 1;
	sem_post(&last->done);
}

/* The server of a pool's volume does not say it. Context: the main thread. */
static bool fetch_last_byte(struct mount *m, uint64_t ino, uint64_t size, uint8_t *byte)
{
	const struct wire_fs_transfer transfer = {
		.head = { .op = FS_READ, .ino = ino },
		.offset = size - 1,
		.length = 1,
	};
	struct last_byte last = { .is_there = false };

	sem_init(&last.done, 0, 0);
	if (!link_call(&m->link, &transfer, sizeof(transfer), &last.byte, got_last_byte, &last)) {
		while (sem_wait(&last.done))
			;
		*byte = last.byte;
	}
	sem_destroy(&last.done);
	return last.is_there;
}

/*
 * The page of the stored byte goes, too: a thread of this client may have changed the byte since
 * the donor's reply.
 */
void kernel_cache_refresh(struct inode *inode, const struct wire_fs_locked *locked)
{
	struct mount *m = inode->mount;
	uint64_t size = locked->attr.size;
	uint8_t last_byte = locked->last_byte;
	bool raise, drop;

	pthread_mutex_lock(&inode->lock);
	drop = inode->pages != locked->attr.change;
	raise = inode->sized != locked->attr.change && S_ISREG(locked->attr.mode) && size &&
		size == inode->size;
	pthread_mutex_unlock(&inode->lock);
	if (!atomic_load(&m->loop.running))
		return;
	if (raise && m->is_pool)
		raise = fetch_last_byte(m, inode->ino, size, &last_byte);
	if (raise)
		raise_size(m, inode->ino, size, last_byte);
	if (drop)
		fuse_lowlevel_notify_inval_inode(m->fuse, inode->ino, 0, 0);
	else if (raise)
		fuse_lowlevel_notify_inval_inode(m->fuse, inode->ino, (off_t)size - 1, 1);
	pthread_mutex_lock(&inode->lock);
	inode->pages = inode->sized = locked->attr.change;
	pthread_mutex_unlock(&inode->lock);
}

struct drop {
	uint64_t ino, offset;
};

static void drop_pages(struct deferred_work *work)
{
	struct mount *m = work->mount;
	struct drop drop;

	memcpy(&drop, work->arg, sizeof(drop));
	if (atomic_load(&m->loop.running))
		fuse_lowlevel_notify_inval_inode(m->fuse, drop.ino, (off_t)drop.offset, 0);
	deferred_work_free(work);
}

void kernel_cache_drop(struct mount *m, uint64_t ino, uint64_t offset)
{
	const struct drop drop = { ino, offset };

	(void)deferred_work_add(m, drop_pages, &drop, sizeof(drop));
}
