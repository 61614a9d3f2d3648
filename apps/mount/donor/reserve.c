/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/donor/reserve.h"

#include <errno.h>
#include <string.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/inode/map.h"
#include "lib/base/clock.h"

#define CHANGES_MIN 4 /* changes, after which more are expected */
#define CHANGES_AGAIN 256 /* after a refusal for want of memory, say */
#define UNUSED_NS 1000000000u

void reserve_init(struct reserve *reserve)
{
	pthread_mutex_init(&reserve->lock, NULL);
	reserve->changes = CHANGES_MIN;
}

void reserve_fini(struct reserve *reserve)
{
	pthread_mutex_destroy(&reserve->lock);
}

/* Takes a file of the reply. Return: the file's bytes; 0: malformed. */
static size_t learn_file(struct reserve *reserve, const char *at, size_t length)
{
	struct reserved_file *file = &reserve->file[reserve->files];
	const size_t fixed = sizeof(struct wire_fs_map) - sizeof(struct wire_fs_reply);
	struct wire_fs_map map = { 0 };
	size_t bytes;

	if (length < sizeof(file->attr) + fixed)
		return 0;
	memcpy(&file->attr, at, sizeof(file->attr));
	memcpy((char *)&map + sizeof(map.reply), at + sizeof(file->attr), fixed);
	if (map.extents > FS_FIRST_BYTES / FS_BLOCK)
		return 0;
	bytes = fixed + map.extents * sizeof(struct wire_fs_extent);
	if (bytes > length - sizeof(file->attr))
		return 0;
	memset(file->map, 0, sizeof(map.reply));
	memcpy(file->map + sizeof(map.reply), at + sizeof(file->attr), bytes);
	file->map_length = sizeof(map.reply) + bytes;
	if (!map_makes_sense(file->map, file->map_length, 0, &map))
		return 0;
	reserve->files++;
	return sizeof(file->attr) + bytes;
}

/* Lock held. Return: whether there is something to use. */
static bool learn_reply(struct reserve *reserve, const struct donor_reply *reply)
{
	struct wire_fs_reserved reserved;
	size_t at = sizeof(reserved), bytes;

	memcpy(&reserved, reply->bytes, sizeof(reserved));
	if (reserved.numbers) {
		reserve->number = reserved.first;
		reserve->end_number = reserved.first + reserved.numbers;
	}
	for (uint32_t i = 0; i < reserved.files && reserve->files < FS_RESERVE_FILES_MAX; i++) {
		bytes = learn_file(reserve, reply->bytes + at, reply->length - at);
		if (!bytes)
			break;
		at += bytes;
	}
	return reserve->files;
}

/*
 * The donor forgets earlier numbers. All have been used, and the call settles the log first.
 */
static void ask_donor(struct mount *m, uint32_t files, uint32_t numbers)
{
	struct reserve *reserve = &m->reserve;
	struct donor_message q;
	struct wire_fs_reserve *wanted =
		call_begin(&q, FS_RESERVE, 0, sizeof(*wanted), NULL);
	struct donor_reply reply;
	bool has;
	int rc;

	wanted->files = files;
	wanted->numbers = numbers;
	rc = call(m, &q, &reply,
		  sizeof(struct wire_fs_reserved) - sizeof(struct wire_fs_reply));
	pthread_mutex_lock(&reserve->lock);
	has = !rc && learn_reply(reserve, &reply);
	reserve->is_asking = false;
	reserve->is_refused = rc == -EOPNOTSUPP;
	reserve->used_ns = weir_now_ns();
	if (has)
		reserve->changes = 1;
	else /* a client that is told to share may be alone again soon */
		reserve->changes = atomic_load(&m->share.shared) ? CHANGES_MIN : CHANGES_AGAIN;
	pthread_mutex_unlock(&reserve->lock);
	if (rc)
		return;
	atomic_store(&m->log.has_room, true);
	atomic_store(&m->log.is_used, true);
	change_log_arm(m); /* the main thread then watches for unused files */
}

void reserve_note_change(struct mount *m)
{
	struct reserve *reserve = &m->reserve;
	uint32_t files = 0, numbers = 0;
	bool asks;

	if (m->is_pool || m->sealed || !sharing_is_alone(&m->share))
		return;
	pthread_mutex_lock(&reserve->lock);
	asks = !reserve->is_refused && !reserve->is_asking &&
	       (!reserve->files || reserve->number == reserve->end_number);
	if (asks && --reserve->changes) {
		asks = false;
	} else if (asks) {
		reserve->is_asking = true;
		files = FS_RESERVE_FILES_MAX - reserve->files;
		numbers = reserve->number == reserve->end_number ? FS_RESERVE_NUMBERS_MAX : 0;
	}
	pthread_mutex_unlock(&reserve->lock);
	if (asks)
		ask_donor(m, files, numbers);
}

bool reserve_take_file(struct mount *m, struct reserved_file *file)
{
	struct reserve *reserve = &m->reserve;
	bool any;

	pthread_mutex_lock(&reserve->lock);
	any = reserve->files;
	if (any) {
		*file = reserve->file[--reserve->files];
		reserve->used_ns = weir_now_ns();
	}
	pthread_mutex_unlock(&reserve->lock);
	return any;
}

void reserve_return_file(struct mount *m, const struct reserved_file *file)
{
	const struct wire_fs_head release = { .op = FS_RELEASE, .ino = file->attr.ino };
	struct reserve *reserve = &m->reserve;
	bool fits;

	pthread_mutex_lock(&reserve->lock);
	fits = reserve->files < FS_RESERVE_FILES_MAX;
	if (fits)
		reserve->file[reserve->files++] = *file;
	pthread_mutex_unlock(&reserve->lock);
	if (!fits) /* without this message the memory comes back at the unmount */
		(void)call_without_reply(m, &release, sizeof(release));
}

uint64_t reserve_take_number(struct mount *m)
{
	struct reserve *reserve = &m->reserve;
	uint64_t number = 0;

	pthread_mutex_lock(&reserve->lock);
	if (reserve->number < reserve->end_number)
		number = reserve->number++;
	pthread_mutex_unlock(&reserve->lock);
	return number;
}

bool reserve_give_back(struct mount *m, bool all)
{
	struct reserve *reserve = &m->reserve;
	struct reserved_file file;
	bool gives;

	pthread_mutex_lock(&reserve->lock);
	gives = reserve->files && (all || weir_now_ns() - reserve->used_ns > UNUSED_NS);
	pthread_mutex_unlock(&reserve->lock);
	while (gives && reserve_take_file(m, &file)) {
		const struct wire_fs_head release = { .op = FS_RELEASE, .ino = file.attr.ino };

		mount_begin(m);
		if (change_log_send(m, &release, sizeof(release), 0, call_ignore_reply, m))
			mount_end(m);
	}
	pthread_mutex_lock(&reserve->lock);
	gives = reserve->files;
	pthread_mutex_unlock(&reserve->lock);
	return gives;
}
