/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <assert.h>
#include <fcntl.h>
#include <string.h>

#include "fsd/handle.h"
#include "fsd/inode.h"
#include "tests/fuzz/fs_locks.h"
#include "tests/fuzz/fs_message.h"

#define CLIENTS 2
#define FILES 256
#define OWNERS (CLIENTS * LOCK_OWNERS)
#define NONE 0
#define STRANGER 99 /* an owner that has no lock */

enum kind { RECORD, FLOCK, KINDS };

/* F_RDLCK + 1 or F_WRLCK + 1 for each byte that an owner has locked; flock(2) uses the first. */
static uint8_t held[FILES][KINDS][OWNERS][LOCK_BYTES];

void locks_init(void)
{
	memset(held, 0, sizeof(held));
}

static uint8_t *row(unsigned int client, const struct wire_fs_lock *lock)
{
	enum kind kind = lock->flags & FS_LOCK_FLOCK ? FLOCK : RECORD;

	if (lock->head.ino >= FILES || lock->owner >= LOCK_OWNERS)
		return NULL;
	return held[lock->head.ino][kind][client * LOCK_OWNERS + lock->owner];
}

void locks_set(unsigned int client, const struct wire_fs_lock *lock)
{
	uint8_t *bytes = row(client, lock), type = lock->type == F_UNLCK ? NONE : lock->type + 1;

	if (!bytes)
		return;
	if (lock->flags & FS_LOCK_FLOCK) {
		memset(bytes, type, LOCK_BYTES);
		return;
	}
	for (uint64_t at = lock->start; at <= lock->end && at < LOCK_BYTES; at++)
		bytes[at] = type;
}

void locks_given_up(unsigned int client, const struct wire_fs_lock *lock)
{
	uint8_t *bytes = row(client, lock);

	if (bytes && lock->flags & FS_LOCK_FLOCK)
		memset(bytes, NONE, LOCK_BYTES);
}

void locks_sync(const struct fsd *fsd, unsigned int client, const struct fsd_client *peer)
{
	const struct fsd_inode *inode;

	for (uint64_t ino = 1; ino < FILES && ino < fsd->next_ino; ino++) {
		inode = fsd_inode_find(fsd, ino);
		if (inode && peer && fsd_handle_is_open(peer, inode))
			continue;
		for (int kind = 0; kind < KINDS; kind++)
			memset(held[ino][kind][client * LOCK_OWNERS], NONE,
			       LOCK_OWNERS * LOCK_BYTES);
	}
}

static void check_exclusion(uint64_t ino, enum kind kind, unsigned int at)
{
	unsigned int readers = 0, writers = 0;

	for (unsigned int owner = 0; owner < OWNERS; owner++) {
		readers += held[ino][kind][owner][at] == F_RDLCK + 1;
		writers += held[ino][kind][owner][at] == F_WRLCK + 1;
	}
	assert(writers <= 1 && !(writers && readers));
}

static bool is_held(uint64_t ino, enum kind kind, unsigned int at)
{
	for (unsigned int owner = 0; owner < OWNERS; owner++) {
		if (held[ino][kind][owner][at])
			return true;
	}
	return false;
}

void locks_check(uint64_t ino, bool (*get)(struct wire_fs_lock *lock))
{
	for (unsigned int i = 0; ino < FILES && i < KINDS * LOCK_BYTES; i++) {
		enum kind kind = i / LOCK_BYTES;
		unsigned int at = i % LOCK_BYTES;
		struct wire_fs_lock lock = {
			.head = { .op = FS_GETLK, .ino = ino },
			.owner = STRANGER,
			.start = at,
			.end = at,
			.type = F_WRLCK,
			.flags = kind == FLOCK ? FS_LOCK_FLOCK : 0,
		};

		check_exclusion(ino, kind, at);
		if (!get(&lock))
			return;
		assert((lock.type != F_UNLCK) == is_held(ino, kind, at));
		if (lock.type == F_UNLCK)
			continue;
		assert(lock.pid < OWNERS && lock.pid % LOCK_OWNERS == lock.owner);
		assert(lock.start <= at && lock.end >= at);
		for (uint64_t b = lock.start; b <= lock.end && b < LOCK_BYTES; b++)
			assert(held[ino][kind][lock.pid][b] == lock.type + 1);
	}
}
