/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Maps learned, and invalidated: this client or another client removes blocks of the file. */
#include <errno.h>
#include <semaphore.h>
#include <stddef.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/inode/inode.h"

struct gate_sleeper {
	struct rw_gate_pass pass;
	sem_t granted;
};

static void wake_sleeper(struct rw_gate_pass *pass)
{
	sem_post(&((struct gate_sleeper *)pass)->granted);
}

static void enter(struct inode *inode, bool alone)
{
	struct gate_sleeper sleeper = { .pass = { .alone = alone, .granted = wake_sleeper } };
	bool entered;

	sem_init(&sleeper.granted, 0, 0);
	pthread_mutex_lock(&inode->lock);
	entered = rw_gate_enter(&inode->gate, &sleeper.pass);
	pthread_mutex_unlock(&inode->lock);
	while (!entered)
		entered = !sem_wait(&sleeper.granted);
	sem_destroy(&sleeper.granted);
}

void inode_enter_alone(struct inode *inode)
{
	enter(inode, true);
	pthread_mutex_lock(&inode->lock);
	map_forget(&inode->map);
	pthread_mutex_unlock(&inode->lock);
}

void inode_enter_writing(struct inode *inode)
{
	enter(inode, true);
}

int inode_enter_writing_until(struct inode *inode, const struct timespec *until)
{
	struct gate_sleeper sleeper = { .pass = { .alone = true, .granted = wake_sleeper } };
	struct rw_gate_pass *granted = NULL;
	bool entered, withdrawn = false;

	sem_init(&sleeper.granted, 0, 0);
	pthread_mutex_lock(&inode->lock);
	entered = rw_gate_enter(&inode->gate, &sleeper.pass);
	pthread_mutex_unlock(&inode->lock);
	while (!entered && !withdrawn) {
		entered = !sem_timedwait(&sleeper.granted, until);
		if (entered || errno != ETIMEDOUT)
			continue;
		pthread_mutex_lock(&inode->lock);
		withdrawn = rw_gate_withdraw(&inode->gate, &sleeper.pass, &granted);
		pthread_mutex_unlock(&inode->lock);
		while (!withdrawn && !entered)
			entered = !sem_wait(&sleeper.granted);
	}
	rw_gate_call_granted(granted);
	sem_destroy(&sleeper.granted);
	return entered ? 0 : -EBUSY;
}

void inode_enter_shared(struct inode *inode)
{
	enter(inode, false);
}

void inode_leave(struct inode *inode)
{
	struct rw_gate_pass *granted;

	pthread_mutex_lock(&inode->lock);
	granted = rw_gate_leave(&inode->gate);
	pthread_mutex_unlock(&inode->lock);
	rw_gate_call_granted(granted);
}

int inode_learn_map(struct inode *inode, const void *reply, size_t length, uint64_t at,
		    struct wire_fs_map *map)
{
	const char *extents = (const char *)reply + sizeof(*map);

	if (!map_makes_sense(reply, length, at, map))
		return -EIO;
	if (map->epoch <= inode->recalled)
		return -EAGAIN;
	if (map_learn(&inode->map, at, map->end, extents, map->extents))
		return -ENOMEM;
	if (map->size > inode->size)
		inode->size = map->size;
	return 0;
}

static void return_map(struct mount *m, uint64_t ino, uint64_t epoch)
{
	struct wire_fs_recall message = { .head = { .op = FS_RETURN, .ino = ino }, .epoch = epoch };

	call_without_reply(m, &message, sizeof(message));
}

static void recall_granted(struct rw_gate_pass *pass)
{
	struct inode *inode = (struct inode *)((char *)pass - offsetof(struct inode, recall));
	uint64_t epoch;

	inode_commit_ahead(inode); /* of writes that precede a truncation */
	pthread_mutex_lock(&inode->lock);
	map_forget(&inode->map);
	inode->recalling = false;
	epoch = inode->recalled;
	pthread_mutex_unlock(&inode->lock);

	return_map(inode->mount, inode->ino, epoch);
	inode_leave(inode);
	inode_put(inode, 1);
}

void inode_recall(struct mount *m, uint64_t ino, uint64_t epoch)
{
	struct inode *inode = inode_get(m, ino);
	bool entered = false;
	bool first;

	if (!inode) {
		return_map(m, ino, epoch);
		return;
	}
	pthread_mutex_lock(&inode->lock);
	if (epoch > inode->recalled)
		inode->recalled = epoch;
	first = !inode->recalling;
	if (first) {
		inode->recalling = true;
		inode->recall = (struct rw_gate_pass){ .alone = true, .granted = recall_granted };
		entered = rw_gate_enter(&inode->gate, &inode->recall);
	}
	pthread_mutex_unlock(&inode->lock);
	if (entered)
		recall_granted(&inode->recall);
	if (!first) /* the waiting recall answers this one, too */
		inode_put(inode, 1);
}
