/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Locks: ranges, waiting, cancelling, and the end of a client. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "fsd/lock.h"
#include "tests/fsd/host.h"

static struct host host;
static struct fsd_peer a, b;
static uint64_t file;

static int setup(void **state)
{
	struct wire_fs_head shared = { .op = FS_SHARED };

	(void)state;
	host_init(&host, 1 << 20, 1 << 20);
	peer_join(&a, &host);
	peer_join(&b, &host);
	ask(&a, &shared, sizeof(shared), NULL, NULL, 0);
	if (do_make(&a, FS_ROOT, "f", S_IFREG | 0600, FS_MAKE_OPEN, NULL))
		return -1;
	file = attr(&a).ino;
	return do_open(&b, file, 0);
}

static int teardown(void **state)
{
	(void)state;
	if (a.client)
		peer_leave(&a);
	if (b.client)
		peer_leave(&b);
	host_fini(&host);
	return 0;
}

static struct wire_fs_lock lock(enum wire_fs_op op, uint64_t owner, uint32_t type, uint64_t start,
				uint64_t end, uint32_t flags)
{
	return (struct wire_fs_lock){
		.head = { .op = op, .ino = file },
		.owner = owner,
		.start = start,
		.end = end,
		.cancel = owner,
		.type = type,
		.pid = 100 + owner,
		.flags = flags,
	};
}

static int set(struct fsd_peer *p, uint64_t owner, uint32_t type, uint64_t start, uint64_t end)
{
	struct wire_fs_lock l = lock(FS_SETLK, owner, type, start, end, 0);

	return ask(p, &l, sizeof(l), NULL, NULL, 0);
}

static int wait_for(struct fsd_peer *p, struct fsd_answer *answer, uint64_t owner, uint32_t type,
		    uint64_t start, uint64_t end, uint32_t flags)
{
	struct wire_fs_lock l = lock(FS_SETLK, owner, type, start, end, FS_LOCK_WAIT | flags);

	return ask_for(p, answer, &l, sizeof(l), NULL, NULL, 0);
}

static int set_flock(struct fsd_peer *p, uint64_t owner, uint32_t type)
{
	struct wire_fs_lock l = lock(FS_SETLK, owner, type, 0, UINT64_MAX, FS_LOCK_FLOCK);

	return ask(p, &l, sizeof(l), NULL, NULL, 0);
}

/* Bytes 0 to 15 as another owner finds them: a letter for each locked byte, otherwise '-'. */
static const char *picture(void)
{
	static char text[17];

	for (unsigned int i = 0; i < 16; i++) {
		struct wire_fs_lock l = lock(FS_GETLK, 99, F_WRLCK, i, i, 0), found;

		assert_int_equal(ask(&b, &l, sizeof(l), NULL, NULL, 0), 0);
		memcpy(&found, body(&b), sizeof(found));
		text[i] = found.type == F_UNLCK ? '-' : found.type == F_RDLCK ? 'r' : 'w';
	}
	return text;
}

struct lock_step {
	uint32_t type;
	uint64_t start, end;
};

static const struct {
	const char *name;
	struct lock_step steps[4];
	unsigned int nr;
	const char *picture;
} cases[] = {
	{ "a lock is where it was set", { { F_WRLCK, 2, 4 } }, 1, "--www-----------" },
	{ "a lock may go to the end", { { F_RDLCK, 12, UINT64_MAX } }, 1, "------------rrrr" },
	{ "unlocking the middle leaves both ends",
	  { { F_WRLCK, 2, 9 }, { F_UNLCK, 4, 6 } },
	  2,
	  "--ww---www------" },
	{ "unlocking more than was locked is fine",
	  { { F_WRLCK, 2, 9 }, { F_UNLCK, 0, UINT64_MAX } },
	  2,
	  "----------------" },
	{ "changing the middle makes three",
	  { { F_WRLCK, 2, 9 }, { F_RDLCK, 4, 6 } },
	  2,
	  "--wwrrrwww------" },
	{ "changing the beginning cuts it",
	  { { F_WRLCK, 2, 9 }, { F_RDLCK, 0, 3 } },
	  2,
	  "rrrrwwwwww------" },
	{ "changing the end cuts it",
	  { { F_WRLCK, 2, 9 }, { F_RDLCK, 8, 12 } },
	  2,
	  "--wwwwwwrrrrr---" },
	{ "covering it replaces it",
	  { { F_WRLCK, 4, 6 }, { F_RDLCK, 2, 9 } },
	  2,
	  "--rrrrrrrr------" },
	{ "neighbours of one type become one, and go as one",
	  { { F_WRLCK, 2, 4 }, { F_WRLCK, 5, 7 }, { F_UNLCK, 3, 6 } },
	  3,
	  "--w----w--------" },
	{ "a lock bridges two",
	  { { F_RDLCK, 1, 2 }, { F_RDLCK, 6, 8 }, { F_RDLCK, 3, 6 }, { F_WRLCK, 4, 4 } },
	  4,
	  "-rrrwrrrr-------" },
};

static void ranges(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup(state);
		for (unsigned int j = 0; j < cases[i].nr; j++) {
			const struct lock_step *s = &cases[i].steps[j];

			assert_int_equal(set(&a, 1, s->type, s->start, s->end), 0);
		}
		if (strcmp(picture(), cases[i].picture))
			fail_msg("%s: %s", cases[i].name, picture());
		teardown(state);
	}
}

static void a_conflict_is_reported(void **state)
{
	struct wire_fs_lock l, found;

	(void)state;
	assert_int_equal(set(&a, 1, F_WRLCK, 5, 9), 0);
	l = lock(FS_GETLK, 2, F_RDLCK, 0, 100, 0);
	assert_int_equal(ask(&b, &l, sizeof(l), NULL, NULL, 0), 0);
	assert_int_equal(b.answer.length, sizeof(struct wire_fs_reply) + sizeof(found));
	memcpy(&found, body(&b), sizeof(found));
	assert_int_equal(found.type, F_WRLCK);
	assert_int_equal(found.start, 5);
	assert_int_equal(found.end, 9);
	assert_int_equal(found.pid, 101);
	assert_int_equal(set(&b, 2, F_RDLCK, 9, 9), -EAGAIN);
	assert_int_equal(set(&b, 2, F_RDLCK, 10, 10), 0);
}

static void one_number_at_two_clients_is_two_owners(void **state)
{
	(void)state;
	assert_int_equal(set(&a, 1, F_WRLCK, 0, 9), 0);
	assert_int_equal(set(&b, 1, F_WRLCK, 0, 9), -EAGAIN);
	assert_int_equal(set(&a, 1, F_RDLCK, 0, 9), 0);
	assert_int_equal(set(&b, 1, F_RDLCK, 0, 9), 0);
}

static void a_waiter_is_answered_when_the_lock_is_free(void **state)
{
	struct fsd_answer first, second;

	(void)state;
	assert_int_equal(set(&a, 1, F_WRLCK, 0, 9), 0);
	assert_int_equal(wait_for(&b, &first, 2, F_RDLCK, 0, 4, 0), PENDING);
	assert_int_equal(wait_for(&b, &second, 3, F_RDLCK, 5, 9, 0), PENDING);
	assert_int_equal(set(&a, 1, F_UNLCK, 0, 4), 0);
	assert_int_equal(first.times, 1);
	assert_int_equal(first.status, 0);
	assert_int_equal(second.times, 0);
	assert_int_equal(set(&a, 1, F_RDLCK, 5, 9), 0); /* weakening is enough */
	assert_int_equal(second.times, 1);
	assert_int_equal(second.status, 0);
}

static void expect_locked(const struct fsd_answer *answer, uint64_t size, uint8_t last_byte)
{
	struct wire_fs_locked locked;

	assert_int_equal(answer->status, 0);
	assert_int_equal(answer->length, sizeof(locked));
	memcpy(&locked, answer->bytes, sizeof(locked));
	assert_int_equal(locked.attr.ino, file);
	assert_int_equal(locked.attr.size, size);
	assert_int_equal(locked.last_byte, last_byte);
}

static void a_grant_shows_what_the_last_holder_wrote(void **state)
{
	struct fsd_answer waits;

	(void)state;
	assert_int_equal(set(&a, 1, F_WRLCK, 0, 9), 0);
	expect_locked(&a.answer, 0, 0);
	assert_int_equal(wait_for(&b, &waits, 2, F_WRLCK, 0, 9, 0), PENDING);
	assert_int_equal(do_write(&a, file, 5000, "xyz", 3), 0);
	assert_int_equal(set(&a, 1, F_UNLCK, 0, 9), 0);
	expect_locked(&waits, 5003, 'z');
	assert_int_equal(do_truncate(&b, file, 7000), 0);
	assert_int_equal(set(&b, 2, F_RDLCK, 0, 9), 0);
	expect_locked(&b.answer, 7000, 0);
	assert_int_equal(do_truncate(&b, file, 1 << 20), 0);
	assert_int_equal(set(&a, 1, F_RDLCK, 0, 9), 0);
	expect_locked(&a.answer, 1 << 20, 0); /* in a hole */
}

static void a_waiter_can_be_cancelled(void **state)
{
	struct wire_fs_lock cancel;
	struct fsd_answer waits;

	(void)state;
	assert_int_equal(set(&a, 1, F_WRLCK, 0, 9), 0);
	assert_int_equal(wait_for(&b, &waits, 2, F_RDLCK, 0, 4, 0), PENDING);
	cancel = lock(FS_CANCELLK, 3, 0, 0, 0, 0); /* belongs to another client */
	assert_int_equal(ask(&b, &cancel, sizeof(cancel), NULL, NULL, 0), 0);
	assert_int_equal(waits.times, 0);
	cancel = lock(FS_CANCELLK, 2, 0, 0, 0, 0);
	assert_int_equal(ask(&b, &cancel, sizeof(cancel), NULL, NULL, 0), 0);
	assert_int_equal(waits.status, -EINTR);
	/* too late: no effect */
	assert_int_equal(ask(&b, &cancel, sizeof(cancel), NULL, NULL, 0), 0);
	assert_int_equal(set(&a, 1, F_UNLCK, 0, 9), 0);
	assert_string_equal(picture(), "----------------");
}

static void a_deadlock_is_reported(void **state)
{
	struct fsd_answer waits, refused;

	(void)state;
	assert_int_equal(set(&a, 1, F_WRLCK, 0, 0), 0);
	assert_int_equal(set(&b, 2, F_WRLCK, 1, 1), 0);
	assert_int_equal(wait_for(&a, &waits, 1, F_WRLCK, 1, 1, 0), PENDING);
	assert_int_equal(wait_for(&b, &refused, 2, F_WRLCK, 0, 0, 0), -EDEADLK);
	assert_int_equal(set(&b, 2, F_UNLCK, 1, 1), 0);
	assert_int_equal(waits.status, 0);
}

static void locks_go_with_the_last_open(void **state)
{
	struct fsd_answer waits;

	(void)state;
	assert_int_equal(do_open(&a, file, 0), 0);
	assert_int_equal(set(&a, 1, F_WRLCK, 0, 9), 0);
	assert_int_equal(wait_for(&b, &waits, 2, F_WRLCK, 0, 4, 0), PENDING);
	assert_int_equal(do_release(&a, file), 0);
	assert_int_equal(waits.times, 0);
	assert_int_equal(do_release(&a, file), 0);
	assert_int_equal(waits.times, 1);
	assert_int_equal(set(&a, 1, F_WRLCK, 0, 9), -EBADF);
}

static void locks_go_with_the_client(void **state)
{
	struct fsd_answer waits, own;

	(void)state;
	assert_int_equal(set(&a, 1, F_WRLCK, 0, 9), 0);
	assert_int_equal(set(&b, 7, F_WRLCK, 20, 20), 0);
	assert_int_equal(wait_for(&b, &waits, 2, F_WRLCK, 0, 4, 0), PENDING);
	assert_int_equal(wait_for(&a, &own, 1, F_WRLCK, 20, 20, 0), PENDING);
	peer_leave(&a);
	assert_int_equal(waits.status, 0);
	assert_int_equal(waits.times, 1);
	assert_int_equal(own.times, 1);
	assert_int_equal(own.status, -EINTR);
}

static void flock_and_fcntl_do_not_see_each_other(void **state)
{
	(void)state;
	assert_int_equal(set_flock(&a, 1, F_WRLCK), 0);
	assert_int_equal(set(&b, 2, F_WRLCK, 0, 9), 0);
	assert_int_equal(set_flock(&b, 2, F_RDLCK), -EAGAIN);
	assert_int_equal(set_flock(&a, 1, F_RDLCK), 0);
	assert_int_equal(set_flock(&b, 2, F_RDLCK), 0);
}

static void two_flocks_may_both_wait_to_be_exclusive(void **state)
{
	struct fsd_answer first, second;

	(void)state;
	assert_int_equal(set_flock(&a, 1, F_RDLCK), 0);
	assert_int_equal(set_flock(&b, 2, F_RDLCK), 0);
	assert_int_equal(wait_for(&a, &first, 1, F_WRLCK, 0, UINT64_MAX, FS_LOCK_FLOCK), PENDING);
	/* a has released its shared lock in order to wait, so b gets the lock. */
	assert_int_equal(wait_for(&b, &second, 2, F_WRLCK, 0, UINT64_MAX, FS_LOCK_FLOCK), 0);
	assert_int_equal(first.times, 0);
	assert_int_equal(set_flock(&b, 2, F_UNLCK), 0);
	assert_int_equal(first.times, 1);
	assert_int_equal(first.status, 0);
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	assert_int_equal(set(&a, 1, F_WRLCK, 9, 8), -EINVAL);
	assert_int_equal(set(&a, 1, 17, 0, 8), -EINVAL);
}

static void too_many_waits_are_refused(void **state)
{
	static struct fsd_answer waits[1024], refused;

	(void)state;
	assert_int_equal(set(&a, 1, F_WRLCK, 0, 9), 0);
	for (unsigned int i = 0; i < 1024; i++)
		assert_int_equal(wait_for(&b, &waits[i], 10 + i, F_RDLCK, 0, 4, 0), PENDING);
	assert_int_equal(wait_for(&b, &refused, 9, F_RDLCK, 0, 4, 0), -ENOLCK);
	assert_int_equal(set(&a, 1, F_UNLCK, 0, 9), 0);
	for (unsigned int i = 0; i < 1024; i++)
		assert_int_equal(waits[i].times, 1);
}

/* Locks of every second byte. */
static void fill_locks(uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++)
		assert_int_equal(set(&a, 1, F_WRLCK, 2 * i, 2 * i), 0);
}

static void a_file_has_a_bound_of_locks(void **state)
{
	const uint64_t end = 2 * FSD_FILE_LOCKS_MAX;

	(void)state;
	assert_int_equal(set(&b, 2, F_WRLCK, end, end + 2), 0);
	assert_int_equal(set(&b, 2, F_RDLCK, end + 8, end + 8), 0);
	fill_locks(FSD_FILE_LOCKS_MAX - 2);
	assert_int_equal(set(&a, 1, F_WRLCK, end + 9, end + 9), -ENOLCK);
	assert_int_equal(set(&b, 2, F_UNLCK, end + 1, end + 1), -ENOLCK); /* three would remain */
	assert_int_equal(set(&b, 2, F_RDLCK, end + 1, end + 1), -ENOLCK);
	/* No lock more than before */
	assert_int_equal(set(&b, 2, F_RDLCK, end, end + 2), 0);
	assert_int_equal(set(&b, 2, F_RDLCK, end + 3, end + 3), 0);
	assert_int_equal(set(&b, 2, F_UNLCK, end + 3, end + 3), 0);
	assert_int_equal(set(&a, 1, F_WRLCK, 0, 2), 0);
	assert_int_equal(set(&a, 1, F_WRLCK, end + 9, end + 9), 0);
	assert_int_equal(set(&a, 1, F_WRLCK, end + 11, end + 11), -ENOLCK);
	assert_int_equal(set(&a, 1, F_UNLCK, 0, UINT64_MAX), 0);
	fill_locks(FSD_FILE_LOCKS_MAX - 2);
	assert_int_equal(set(&a, 1, F_WRLCK, end + 9, end + 9), -ENOLCK);
}

static void a_client_has_a_bound_of_locks(void **state)
{
	const uint64_t first = file;
	uint64_t files = FSD_CLIENT_LOCKS_MAX / FSD_FILE_LOCKS_MAX;
	char name[8];

	(void)state;
	for (uint64_t i = 0; i <= files; i++) {
		snprintf(name, sizeof(name), "n%u", (unsigned int)i);
		assert_int_equal(do_make(&a, FS_ROOT, name, S_IFREG | 0600, FS_MAKE_OPEN, NULL), 0);
		file = attr(&a).ino;
		if (i < files)
			fill_locks(FSD_FILE_LOCKS_MAX);
	}
	assert_int_equal(set(&a, 1, F_WRLCK, 0, 0), -ENOLCK);
	assert_int_equal(do_open(&b, file, 0), 0);
	assert_int_equal(set(&b, 1, F_WRLCK, 0, 0), 0);
	assert_int_equal(do_release(&a, file - 1), 0);
	assert_int_equal(set(&a, 1, F_WRLCK, 1, 1), 0);
	file = first;
}

/* Each leaves memory to those after it, so that no client keeps another from its files. */
static void locks_leave_room_for_names_and_names_for_opens(void **state)
{
	const uint64_t max = 64 << 10;
	uint64_t nr_locks = 0, nr_names = 0;
	char name[8];
	int rc;

	(void)state;
	host.fsd->meta_bytes_max = max;
	while (!(rc = set(&a, 1, F_WRLCK, 2 * nr_locks, 2 * nr_locks)))
		nr_locks++;
	assert_int_equal(rc, -ENOLCK);
	assert_true(nr_locks > 100 && host.fsd->meta_bytes <= max - max / 4);
	do {
		snprintf(name, sizeof(name), "n%u", (unsigned int)nr_names);
		rc = do_make(&a, FS_ROOT, name, S_IFREG | 0600, 0, NULL);
	} while (!rc && ++nr_names);
	assert_int_equal(rc, -ENOSPC);
	assert_true(nr_names > 10 && host.fsd->meta_bytes <= max - max / 8);
	for (uint64_t i = 1; i <= nr_names; i++)
		assert_int_equal(do_open(&b, file + i, 0), 0);
	for (uint64_t i = 0; i < nr_locks; i++)
		assert_int_equal(set(&a, 1, F_UNLCK, 2 * i, 2 * i), 0);
	assert_int_equal(set(&b, 2, F_WRLCK, 0, UINT64_MAX), 0);
}

static void a_waiter_goes_on_to_the_next_blocker(void **state)
{
	struct fsd_answer waits, early;

	(void)state;
	for (uint64_t owner = 1; owner <= 4; owner++)
		assert_int_equal(set(&a, owner, F_RDLCK, owner, owner + 4), 0);
	assert_int_equal(wait_for(&b, &waits, 9, F_WRLCK, 0, 20, 0), PENDING);
	assert_int_equal(wait_for(&b, &early, 8, F_WRLCK, 1, 1, 0), PENDING);
	assert_int_equal(set(&a, 2, F_UNLCK, 0, 20), 0); /* behind the blocker of both */
	assert_int_equal(set(&a, 1, F_RDLCK, 0, 9), 0); /* the first, merged, becomes the last */
	assert_int_equal(set(&a, 3, F_UNLCK, 4, 5), 0); /* cut in two */
	assert_int_equal(set(&a, 4, F_UNLCK, 0, 20), 0);
	assert_int_equal(set(&a, 1, F_UNLCK, 1, 8), 0); /* bytes 0 and 9 remain */
	assert_int_equal(early.times, 1);
	assert_int_equal(early.status, 0);
	assert_int_equal(set(&b, 8, F_UNLCK, 0, 20), 0);
	assert_int_equal(set(&a, 1, F_UNLCK, 0, 20), 0);
	assert_int_equal(waits.times, 0);
	assert_int_equal(set(&a, 3, F_UNLCK, 3, 3), 0);
	assert_int_equal(waits.times, 0);
	assert_int_equal(set(&a, 3, F_UNLCK, 6, 7), 0);
	assert_int_equal(waits.times, 1);
	assert_int_equal(waits.status, 0);
}

static uint64_t unlock_steps(uint64_t start, uint64_t end)
{
	uint64_t before = host.fsd->lock_steps;

	assert_int_equal(set(&a, 1, F_UNLCK, start, end), 0);
	return host.fsd->lock_steps - before;
}

/* An unlock compares a waiter with one lock, not with hundreds. */
static void waiters_cost_unlocks_little(void **state)
{
	static struct fsd_answer waits[FSD_WAITS_MAX];
	const uint64_t last = 2 * FSD_FILE_LOCKS_MAX;
	uint64_t alone;

	(void)state;
	fill_locks(FSD_FILE_PAIRS_MAX / FSD_WAITS_MAX - 1);
	assert_int_equal(set(&a, 1, F_WRLCK, last, last), 0);
	alone = unlock_steps(UINT64_MAX, UINT64_MAX);
	for (unsigned int i = 0; i < FSD_WAITS_MAX; i++)
		assert_int_equal(wait_for(&b, &waits[i], 10 + i, F_WRLCK, last, last, 0), PENDING);
	assert_true(unlock_steps(UINT64_MAX, UINT64_MAX) <= 2 * alone + FSD_WAITS_MAX);
	assert_int_equal(set(&a, 1, F_UNLCK, last, last), 0);
	assert_int_equal(waits[0].times, 1);
	assert_int_equal(waits[1].times, 0);
}

/* Sends waiting requests for a shared lock of byte @at until one is refused. Return: how many. */
static unsigned int fill_waits(struct fsd_answer *waits, uint64_t at)
{
	unsigned int nr = 0;
	int rc;

	while ((rc = wait_for(&b, &waits[nr], 10 + nr, F_RDLCK, at, at, 0)) == PENDING)
		nr++;
	assert_int_equal(rc, -ENOLCK);
	return nr;
}

/* The unlock grants all requests, and each first passes all locks. */
static void many_locks_allow_few_waits(void **state)
{
	static struct fsd_answer waits[FSD_WAITS_MAX + 1];
	static const unsigned int filled[] = { 1, 255, 1024, FSD_FILE_LOCKS_MAX - 1 };
	const uint64_t first = 2 * FSD_FILE_LOCKS_MAX;
	unsigned int nr, most;

	for (size_t i = 0; i < sizeof(filled) / sizeof(filled[0]); i++) {
		setup(state);
		assert_int_equal(set(&a, 1, F_WRLCK, first, first), 0);
		fill_locks(filled[i]);
		most = FSD_FILE_PAIRS_MAX / (filled[i] + 1);
		nr = fill_waits(waits, first);
		assert_int_equal(nr, most < FSD_WAITS_MAX ? most : FSD_WAITS_MAX);
		assert_true(unlock_steps(first, first) <= FSD_STEPS_MAX);
		for (unsigned int w = 0; w < nr; w++)
			assert_int_equal(waits[w].times, 1);
		teardown(state);
	}
}

static void many_waits_allow_few_locks(void **state)
{
	static struct fsd_answer waits[FSD_WAITS_MAX + 1];
	const uint64_t most = FSD_FILE_PAIRS_MAX / FSD_WAITS_MAX;

	(void)state;
	assert_int_equal(set(&a, 1, F_WRLCK, 0, 9), 0);
	fill_waits(waits, 0);
	for (uint64_t i = 1; i < most; i++)
		assert_int_equal(set(&a, 2, F_WRLCK, 10 + 4 * i, 12 + 4 * i), 0);
	assert_int_equal(set(&a, 2, F_WRLCK, 4, 4), -EAGAIN);
	assert_int_equal(set(&a, 2, F_WRLCK, 20 + 4 * most, 20 + 4 * most), -ENOLCK);
	assert_int_equal(set(&a, 2, F_UNLCK, 15, 15), -ENOLCK); /* two would remain */
	assert_int_equal(set(&a, 2, F_UNLCK, 14, 14), 0); /* no lock more than before */
	assert_int_equal(set(&a, 1, F_UNLCK, 0, 9), 0);
	assert_int_equal(waits[FSD_WAITS_MAX - 1].times, 1);
}

/* All owners split theirs beside as many waiting requests as there may be. */
static void the_only_lock_of_an_owner_can_be_split(void **state)
{
	static struct fsd_answer waits[FSD_WAITS_MAX + 1];
	const uint64_t owners = FSD_FILE_PAIRS_MAX / FSD_WAITS_MAX;

	(void)state;
	for (uint64_t i = 0; i < owners; i++)
		assert_int_equal(set(&a, 1 + i, F_WRLCK, 8 * i, 8 * i + 4), 0);
	assert_int_equal(fill_waits(waits, 0), FSD_WAITS_MAX);
	for (uint64_t i = 0; i < owners; i++)
		assert_int_equal(set(&a, 1 + i, F_UNLCK, 8 * i + 2, 8 * i + 2), 0);
	assert_int_equal(set(&a, 1, F_UNLCK, 1, 1), 0); /* no lock more than before */
	assert_int_equal(set(&a, 2, F_UNLCK, 12, 12), 0);
	assert_int_equal(set(&a, 2, F_UNLCK, 11, 11), 0); /* the only one again */
	assert_int_equal(set(&a, owners + 1, F_WRLCK, 8 * owners, 8 * owners), -ENOLCK);
	assert_true(unlock_steps(0, 0) <= FSD_STEPS_MAX);
	for (unsigned int i = 0; i < FSD_WAITS_MAX; i++)
		assert_int_equal(waits[i].times, 1);
}

static void an_unlock_needs_memory_only_to_split(void **state)
{
	uint64_t max, before = host.fsd->meta_bytes;

	(void)state;
	assert_int_equal(set(&a, 1, F_WRLCK, 0, 9), 0);
	assert_int_equal(set(&a, 2, F_WRLCK, 20, 29), 0);
	max = host.fsd->meta_bytes_max = host.fsd->meta_bytes;
	assert_int_equal(set(&a, 1, F_UNLCK, 4, 5), 0); /* its only lock */
	assert_int_equal(set(&a, 1, F_UNLCK, 1, 1), -ENOLCK); /* one of two */
	assert_int_equal(set(&a, 1, F_UNLCK, 6, 9), 0);
	assert_int_equal(set(&a, 1, F_UNLCK, 1, 1), 0); /* its only lock again */
	assert_int_equal(set(&a, 2, F_UNLCK, 24, 25), 0);
	assert_int_equal(host.fsd->meta_bytes, max);
	assert_int_equal(set(&a, 1, F_UNLCK, 0, 9), 0);
	assert_int_equal(set(&a, 2, F_UNLCK, 21, 21), 0); /* in the place of the first */
	assert_int_equal(set(&a, 2, F_UNLCK, 0, UINT64_MAX), 0);
	assert_int_equal(host.fsd->meta_bytes, before);
}

/* Each grant changes a lock, so the server looks at all earlier requests again. */
static void grants_that_change_locks_take_few_steps(void **state)
{
	enum { HALF = FSD_WAITS_MAX / 2, OWNERS = FSD_FILE_PAIRS_MAX / FSD_WAITS_MAX / 2 - 1 };
	static struct fsd_answer waits[FSD_WAITS_MAX];
	const uint64_t kept = 3 * OWNERS + 10;
	uint64_t i;

	(void)state;
	assert_int_equal(set(&a, 1, F_WRLCK, kept, kept), 0);
	for (i = 0; i < OWNERS; i++) {
		assert_int_equal(set(&a, 1, F_WRLCK, 3 * i, 3 * i), 0);
		assert_int_equal(set(&b, 10 + i, F_RDLCK, 3 * i + 1, 3 * i + 1), 0);
	}
	for (i = 0; i < HALF; i++)
		assert_int_equal(wait_for(&b, &waits[i], 10, F_RDLCK, kept, kept, 0), PENDING);
	for (i = 0; i < HALF; i++)
		assert_int_equal(wait_for(&b, &waits[HALF + i], 10 + i % OWNERS, F_RDLCK,
					  3 * (i % OWNERS), 3 * (i % OWNERS), 0),
				 PENDING);
	assert_true(unlock_steps(0, kept - 1) <= FSD_STEPS_MAX);
	for (i = 0; i < HALF; i++) {
		assert_int_equal(waits[i].times, 0);
		assert_int_equal(waits[HALF + i].times, 1);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges),
		TEST(a_conflict_is_reported),
		TEST(one_number_at_two_clients_is_two_owners),
		TEST(a_waiter_is_answered_when_the_lock_is_free),
		TEST(a_grant_shows_what_the_last_holder_wrote),
		TEST(a_waiter_can_be_cancelled),
		TEST(a_deadlock_is_reported),
		TEST(locks_go_with_the_last_open),
		TEST(locks_go_with_the_client),
		TEST(flock_and_fcntl_do_not_see_each_other),
		TEST(two_flocks_may_both_wait_to_be_exclusive),
		TEST(nonsense_is_refused),
		TEST(too_many_waits_are_refused),
		TEST(a_file_has_a_bound_of_locks),
		TEST(a_client_has_a_bound_of_locks),
		TEST(locks_leave_room_for_names_and_names_for_opens),
		TEST(a_waiter_goes_on_to_the_next_blocker),
		TEST(waiters_cost_unlocks_little),
		cmocka_unit_test(many_locks_allow_few_waits),
		TEST(the_only_lock_of_an_owner_can_be_split),
		TEST(an_unlock_needs_memory_only_to_split),
		TEST(many_waits_allow_few_locks),
		TEST(grants_that_change_locks_take_few_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
