/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Attacks of a hostile mount on the file server of a donor, or on a pool's server of files if the
 * attack's name begins with "pool-": a->of_pool. Such a server wants a struct wire_fs_call before
 * each message.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "core/base/rng.h"
#include "tests/fuzz/fs_message.h"
#include "tests/hostile/attacker.h"
#include "tests/support/raw_client.h"
#include "wire/control.h"

enum { CALLS = 200, PIPELINE = 24, TRY_MS = 5000, COPIED_NAMES = 3000, COPIES = 20 };
enum { LOCKS = 20000, WAITERS = 900, SPARE_LOCKS = 8 }; /* of make_waits() */

static union {
	struct wire_fs_head head;
	struct wire_fs_mount mount;
	struct wire_fs_make make;
	struct wire_fs_open open;
	struct wire_fs_lock lock;
	struct wire_fs_rename rename;
	struct wire_fs_fallocate fallocate;
	struct wire_fs_snapshot snapshot;
	char bytes[4096];
} question;

static struct raw_client mounted;
static unsigned int unanswered, waiting; /* @waiting of them for a lock */
static struct wire_fs_call call; /* of a pool, if it has a mount */

static void answers_take(unsigned int left)
{
	static char body[WIRE_CONTROL_BODY_MAX];
	struct wire_control_head head;

	while (mounted.is_up && unanswered > left && !raw_answer(&mounted, &head, body, TRY_MS))
		unanswered -= head.kind == WIRE_APP_REPLY;
	if (unanswered > left)
		raw_close(&mounted);
}

/* Puts a message behind the head that a pool's server wants. Return: the length. */
static size_t wrap(const void *message, size_t length, char *wrapped)
{
	call.number++;
	/* Calls are answered in order, but for those that wait for a lock. */
	call.answered = call.number > PIPELINE ? call.number - PIPELINE : 0;
	memcpy(wrapped, &call, sizeof(call));
	memcpy(wrapped + sizeof(call), message, length);
	return sizeof(call) + length;
}

/* Keeps many calls outstanding, because a donor serves them one after another. */
static void ask(const void *message, size_t length)
{
	static char wrapped[sizeof(call) + MESSAGE_MAX];

	if (call.mount) {
		length = wrap(message, length, wrapped);
		message = wrapped;
	}
	if (mounted.is_up && !raw_message(&mounted, WIRE_APP_CALL, ++mounted.tags, message, length))
		unanswered++;
	answers_take(PIPELINE + waiting);
}

static void mount_again(struct attacker *a)
{
	const struct wire_fs_mount mount = {
		.head = { .op = FS_MOUNT },
		.magic = FS_MAGIC,
		.version = FS_VERSION,
	};

	if (mounted.is_up)
		return;
	raw_close(&mounted);
	unanswered = waiting = 0;
	call = (struct wire_fs_call){ .mount = a->of_pool ? weir_rng_next(&a->random) | 1 : 0 };
	if (raw_open(&mounted, a->target, a->key))
		raw_close(&mounted);
	ask(&mount, sizeof(mount));
}

/* Any requests on few names and inodes. */
static void ask_anything(struct attacker *a)
{
	uint8_t bytes[64], message[MESSAGE_MAX];
	struct fuzz_input in;
	int i;

	mount_again(a);
	for (i = 0; i < CALLS; i++) {
		attacker_noise(a, bytes, sizeof(bytes));
		in = (struct fuzz_input){ bytes, sizeof(bytes) };
		ask(message, message_make(&in, (uint8_t)(2 + attacker_dice(a, FS_CLOSE)), 16,
					  attacker_dice(a, 2), message));
	}
	if (mounted.is_up && !attacker_dice(a, 8))
		raw_vanish(&mounted);
}

static void make_named(uint64_t parent, uint32_t mode, const char *name)
{
	size_t length = strlen(name);

	memset(&question, 0, sizeof(question));
	question.make.head.op = FS_MAKE;
	question.make.head.ino = parent;
	question.make.head.name_length = (uint32_t)length;
	question.make.mode = mode;
	memcpy(question.bytes + sizeof(question.make), name, length);
	ask(&question, sizeof(question.make) + length);
}

/* Names without end, in one directory. */
static void make_names(struct attacker *a)
{
	char name[200];
	int i;

	mount_again(a);
	for (i = 0; i < CALLS; i++) {
		snprintf(name, sizeof(name), "%0190u", attacker_dice(a, UINT32_MAX));
		make_named(FS_ROOT, 0100644, name);
	}
}

/* Only an open file has locks. */
static void open_number(uint64_t ino)
{
	memset(&question, 0, sizeof(question));
	question.open.head.op = FS_OPEN;
	question.open.head.ino = ino;
	ask(&question, sizeof(question.open));
}

static void set_lock(uint64_t ino, uint64_t owner, uint32_t type, uint64_t start, uint64_t end,
		     uint32_t flags)
{
	memset(&question, 0, sizeof(question));
	question.lock.head.op = FS_SETLK;
	question.lock.head.ino = ino;
	question.lock.owner = owner;
	question.lock.start = start;
	question.lock.end = end;
	question.lock.type = type;
	question.lock.flags = flags;
	ask(&question, sizeof(question.lock));
}

/* Many small locks of a file, so that each further one is compared with all. */
static void make_locks(struct attacker *a)
{
	uint64_t byte;
	int i;

	if (!mounted.is_up) {
		mount_again(a);
		make_named(FS_ROOT, 0100644, "locked");
		open_number(FS_ROOT + 1);
		open_number(FS_ROOT + 2);
	}
	for (i = 0; i < CALLS; i++) {
		byte = 2ull * attacker_dice(a, 1 << 20);
		set_lock(FS_ROOT + 1 + attacker_dice(a, 2), attacker_dice(a, 4), F_RDLCK, byte,
			 byte, 0);
	}
}

/*
 * Tens of thousands of locks, or as many as the donor grants, and then two more bytes, for which
 * hundreds of requests wait. The key's only file is the attacked file.
 */
static void start_waits(struct attacker *a)
{
	const uint64_t ino = FS_ROOT + 1, last = 2 * LOCKS;
	uint64_t i;

	mount_again(a);
	make_named(FS_ROOT, 0100644, "waits");
	open_number(ino);
	for (i = 0; i < LOCKS; i++)
		set_lock(ino, 0, F_WRLCK, 2 * i, 2 * i, 0);
	set_lock(ino, 0, F_UNLCK, 0, 2 * SPARE_LOCKS, 0);
	set_lock(ino, 1, F_WRLCK, last, last, 0);
	set_lock(ino, 2, F_WRLCK, last + 1, last + 1, 0);
	for (i = 0; i < WAITERS && mounted.is_up; i++) {
		set_lock(ino, 3 + i, F_WRLCK, last, last + 1, FS_LOCK_WAIT);
		waiting++;
		/* The answer of an unlock has the credits for both. */
		set_lock(ino, 0, F_UNLCK, 0, 0, 0);
		answers_take(waiting);
	}
}

/* Requests wait for two locks, which go and come by turns. */
static void make_waits(struct attacker *a)
{
	const uint64_t ino = FS_ROOT + 1, last = 2 * LOCKS;
	uint64_t i;

	if (!mounted.is_up)
		start_waits(a);
	for (i = 0; i < CALLS; i++) {
		set_lock(ino, 0, F_UNLCK, 0, 0, 0);
		set_lock(ino, 1 + i % 2, F_UNLCK, last + i % 2, last + i % 2, 0);
		set_lock(ino, 1 + i % 2, F_WRLCK, last + i % 2, last + i % 2, 0);
	}
}

/* Files of many pieces: blocks in the middle of a large file are filled and freed. */
static void make_holes(struct attacker *a)
{
	int i;

	mount_again(a);
	make_named(FS_ROOT, 0100644, "holes");
	for (i = 0; i < CALLS; i++) {
		memset(&question, 0, sizeof(question));
		question.fallocate.head.op = FS_FALLOCATE;
		question.fallocate.head.ino = FS_ROOT + 1 + attacker_dice(a, 4);
		question.fallocate.mode =
			attacker_dice(a, 4) ? 0 : FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
		question.fallocate.offset = (uint64_t)FS_BLOCK * attacker_dice(a, 1 << 24);
		question.fallocate.length = attacker_dice(a, 50) ? FS_BLOCK : 1ull << 45;
		ask(&question, sizeof(question.fallocate));
	}
}

/* Directories in directories, moved up and down. */
static void make_depth(struct attacker *a)
{
	static uint64_t deepest = FS_ROOT;
	int i;

	mount_again(a);
	for (i = 0; i < CALLS; i++) {
		if (attacker_dice(a, 2)) {
			make_named(deepest++, 0040755, "d");
			continue;
		}
		memset(&question, 0, sizeof(question));
		question.rename.head.op = FS_RENAME;
		question.rename.head.ino = FS_ROOT;
		question.rename.head.name_length = question.rename.new_length = 1;
		question.rename.parent = deepest;
		memcpy(question.bytes + sizeof(question.rename), "de", 2);
		ask(&question, sizeof(question.rename) + 2);
	}
}

/* Copies of many names, most of which fail in the middle. */
static void make_copies(struct attacker *a)
{
	char name[32];
	int i;

	mount_again(a);
	for (i = 0; i < COPIED_NAMES; i++) {
		snprintf(name, sizeof(name), "n%u", attacker_dice(a, UINT32_MAX));
		make_named(FS_ROOT, 0010600, name);
	}
	make_named(FS_ROOT, 0040755, "copies");
	for (i = 0; i < COPIES; i++) {
		memset(&question, 0, sizeof(question));
		question.snapshot.head.op = FS_SNAPSHOT;
		question.snapshot.head.ino = FS_ROOT;
		question.snapshot.head.name_length = 1;
		question.snapshot.parent = FS_ROOT + attacker_dice(a, 4) * COPIED_NAMES;
		question.snapshot.patience_ms = attacker_dice(a, 4) ? attacker_dice(a, 20) :
								      FS_SNAPSHOT_MS_MAX;
		question.bytes[sizeof(question.snapshot)] = (char)('a' + attacker_dice(a, 26));
		ask(&question, sizeof(question.snapshot) + 1);
	}
}

const struct attack file_attacks[] = {
	{ "files", ask_anything },   { "names", make_names },
	{ "locks", make_locks },     { "waits", make_waits },
	{ "holes", make_holes },     { "depth", make_depth },
	{ "snapshot", make_copies }, { 0 },
};
