/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: mount change log; suites: fs */
/* Changes on the way to a donor with late, double or wrong answers. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "apps/mount/fuse/ops.h"
#include "lib/base/clock.h"

#define ROUNDS 30000
#define SIZE 5000u

static struct mount m;
static const struct mount_options options = { .timeout = 1 };

/* ---- the session ---- */

static int outcome; /* of the next batch: the session's, or ... */
static int status; /* ... the donor's, or ... */
static int result; /* ... the second change's */
static unsigned int batches, changes;
static uint64_t number; /* of the last batch */
static uint64_t committed; /* size of the open file at the donor */
static bool cut; /* a close came before the size */
static unsigned int reserve_calls;
static uint32_t sharing; /* in the answer to FS_RESERVE, which is refused */

int __wrap_weir_call_async(struct weir_session *session, const void *message, size_t length,
			   uint64_t timeout_ns, weir_reply_fn *fn, void *arg);
int __wrap_weir_call(struct weir_session *session, const void *message, size_t length, void *reply,
		     size_t room, size_t *reply_length);

/* The donor's view of a change of the file. */
static void look_at(const char *message)
{
	struct wire_fs_setattr set;

	memcpy(&set, message, sizeof(set));
	if (set.head.op == FS_COMMIT || set.head.op == FS_CLOSE)
		committed = set.size > committed ? set.size : committed;
	if (set.head.op != FS_CLOSE && set.head.op != FS_RELEASE)
		return;
	cut |= committed != SIZE;
	committed = 0;
}

static size_t refuse_reserve(void *reply)
{
	const struct wire_fs_reply refused = { .status = -EAGAIN, .shared = sharing };

	reserve_calls++;
	memcpy(reply, &refused, sizeof(refused));
	return sizeof(refused);
}

static size_t answer(const void *message, void *reply)
{
	struct wire_fs_batched head = { .reply.status = status };
	char *to = (char *)reply + sizeof(head);
	struct wire_fs_batch batch;
	const char *at = (const char *)message + sizeof(batch);
	struct wire_fs_change change;

	memcpy(&batch.head, message, sizeof(batch.head));
	if (batch.head.op == FS_RESERVE)
		return refuse_reserve(reply);
	memcpy(&batch, message, sizeof(batch));
	assert_int_equal(batch.head.op, FS_BATCH);
	batches++;
	number = batch.number;
	changes = batch.changes;
	for (uint32_t i = 0; i < batch.changes; i++) {
		const struct wire_fs_result one = { .status = i == 1 ? result : 0 };

		memcpy(&change, at, sizeof(change));
		look_at(at + sizeof(change));
		at += sizeof(change) + (change.length + 7) / 8 * 8;
		memcpy(to, &one, sizeof(one));
		to += sizeof(one);
	}
	head.changes = batch.changes;
	memcpy(reply, &head, sizeof(head));
	return status ? sizeof(head.reply) : (size_t)(to - (char *)reply);
}

int __wrap_weir_call_async(struct weir_session *session, const void *message, size_t length,
			   uint64_t timeout_ns, weir_reply_fn *fn, void *arg)
{
	char reply[WEIR_MESSAGE_MAX];
	const int rc = outcome;

	(void)session;
	(void)timeout_ns;
	outcome = 0;
	length = answer(message, reply);
	fn(arg, rc, reply, rc ? 0 : length);
	return 0;
}

int __wrap_weir_call(struct weir_session *session, const void *message, size_t length, void *reply,
		     size_t room, size_t *reply_length)
{
	const int rc = outcome;

	(void)session;
	(void)length;
	(void)room;
	outcome = 0;
	*reply_length = answer(message, reply);
	return rc;
}

/* ---- a mount that is alone ---- */

static int setup(void **state)
{
	(void)state;
	memset(&m, 0, sizeof(m));
	m.options = &options;
	m.fuse = (struct fuse_session *)&m; /* serving, as call_wait() sees it */
	outcome = status = result = 0;
	batches = changes = reserve_calls = 0;
	cut = false;
	atomic_store(&m.share.alone_ns, UINT64_MAX);
	assert_int_equal(inodes_init(&m.inodes), 0);
	assert_int_equal(deferred_queue_init(&m.deferred), 0);
	assert_int_equal(change_log_init(&m.log), 0);
	atomic_store(&m.log.is_used, true);
	atomic_store(&m.log.has_room, true);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_true(change_log_is_empty(&m));
	change_log_fini(&m.log);
	deferred_queue_fini(&m.deferred);
	inodes_fini(&m.inodes);
	return 0;
}

/* Ended changes, and the end of the last. */
static unsigned int ended;
static int last_status;

static void note_end(void *arg, int rc, const void *reply, size_t length)
{
	struct wire_fs_reply head = { 0 };

	(void)arg;
	ended++;
	if (!rc) {
		assert_true(length >= sizeof(head));
		memcpy(&head, reply, sizeof(head));
	}
	last_status = rc ? rc : head.status;
}

static void add_file_change(void)
{
	const struct wire_fs_head release = { .op = FS_GETATTR, .ino = 5 };

	ended = 0;
	assert_int_equal(
		change_log_send(&m, &release, sizeof(release), 0, note_end, NULL), 0);
}

static uint64_t add_name_change(void)
{
	const struct wire_fs_head unlink = { .op = FS_UNLINK, .ino = 1 };

	return change_log_add(&m, change_new(&unlink, sizeof(unlink)));
}

/* ---- tests ---- */

static void changes_wait_and_go_together(void **state)
{
	(void)state;
	add_file_change();
	add_name_change();
	add_file_change();
	assert_int_equal(batches, 0);
	change_log_run(&m);
	assert_int_equal(batches, 1);
	assert_int_equal(changes, 3);
	assert_int_equal(number, 1);
	assert_int_equal(ended, 2);
	assert_int_equal(change_log_settle(&m, NULL), 0);
	assert_int_equal(batches, 1);
}

static void a_full_batch_goes_at_once(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < FS_BATCH_MAX; i++)
		add_file_change();
	assert_int_equal(batches, 1);
	assert_int_equal(changes, FS_BATCH_MAX);
}

static void a_batch_without_an_answer_is_sent_again(void **state)
{
	static const int doubts[] = { -ETIMEDOUT, -ECONNRESET, -ENOTCONN };

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		const unsigned int first = 2 * i + 1; /* a second batch follows */

		add_file_change();
		outcome = doubts[i];
		change_log_run(&m);
		assert_int_equal(number, first);
		assert_int_equal(ended, 0);
		add_name_change();
		status = -EALREADY;
		change_log_run(&m);
		assert_int_equal(number, first);
		assert_int_equal(changes, 1);
		assert_int_equal(ended, 1);
		assert_int_equal(last_status, -ETIMEDOUT); /* so that a commit is sent again */
		status = 0;
		change_log_run(&m);
		assert_int_equal(number, first + 1);
	}
	assert_false(change_log_has_lost(&m, 1));
}

static void a_waiter_sends_what_waits(void **state)
{
	(void)state;
	add_name_change();
	outcome = -ECONNRESET;
	assert_int_equal(change_log_settle(&m, NULL), 0);
	assert_int_equal(batches, 2);
	assert_int_equal(number, 1);
}

static void a_waiter_gives_up_in_time(void **state)
{
	(void)state;
	add_name_change();
	m.log.is_sending = true; /* and no answer comes */
	assert_int_equal(change_log_settle(&m, NULL), -EIO);
	m.log.is_sending = false;
	assert_int_equal(change_log_settle(&m, NULL), 0);
}

static void names_after_a_lost_name_are_lost(void **state)
{
	const unsigned int phase = atomic_load(&m.share.phase);
	uint64_t before, lost, later;

	(void)state;
	before = add_name_change();
	lost = add_name_change();
	result = -ESTALE;
	m.log.is_sending = true;
	later = add_name_change();
	m.log.is_sending = false;
	change_log_run(&m);
	assert_true(change_log_is_empty(&m));
	assert_false(change_log_has_lost(&m, before));
	assert_true(change_log_has_lost(&m, lost));
	assert_true(change_log_has_lost(&m, later));
	assert_int_not_equal(atomic_load(&m.share.phase), phase); /* all knowledge is gone */
	result = 0;
	assert_false(change_log_has_lost(&m, add_name_change()));
	change_log_run(&m);
}

static void names_of_a_batch_that_is_refused_are_lost(void **state)
{
	uint64_t name;

	(void)state;
	add_file_change();
	name = add_name_change();
	status = -ESTALE;
	change_log_run(&m);
	assert_int_equal(last_status, -EIO);
	assert_true(change_log_has_lost(&m, name));
}

/* ---- reservations ---- */

/* Return: after how many changes the mount asks; at most @changes. */
static unsigned int change_until_asked(unsigned int changes)
{
	const unsigned int before = reserve_calls;
	unsigned int i = 0;

	atomic_store(&m.share.shared, false);
	atomic_store(&m.share.alone_ns, UINT64_MAX);
	while (i < changes && reserve_calls == before) {
		reserve_note_change(&m);
		i++;
	}
	return i;
}

static void a_client_refused_while_it_shares_soon_asks_again(void **state)
{
	unsigned int first;

	(void)state;
	reserve_init(&m.reserve);
	sharing = FS_REPLY_SHARED;
	first = change_until_asked(100);
	assert_in_range(first, 1, 10);
	reserve_note_change(&m); /* no lease, no question */
	assert_int_equal(reserve_calls, 1);
	assert_int_equal(change_until_asked(100), first);
	sharing = FS_REPLY_ALONE; /* there is no memory */
	assert_int_equal(change_until_asked(100), first);
	assert_int_equal(change_until_asked(100), 100);
	assert_int_equal(reserve_calls, 3);
	reserve_fini(&m.reserve);
}

/* ---- a file closed by a thread, committed by another ---- */

static struct inode *file;
static atomic_bool is_over;

static void *keep_committing(void *arg)
{
	(void)arg;
	while (!atomic_load(&is_over))
		inode_commit_ahead(file);
	return NULL;
}

static void a_close_never_overtakes_a_commit(void **state)
{
	const struct wire_fs_attr attr = { .ino = 5, .mode = S_IFREG, .change = 1 };
	pthread_t thread;

	(void)state;
	file = inode_add(&m, &attr, SHARING_NO_PHASE);
	atomic_store(&is_over, false);
	committed = 0;
	pthread_create(&thread, NULL, keep_committing, NULL);
	for (unsigned int i = 0; i < ROUNDS && !cut; i++) {
		inode_wrote(file, SIZE, SIZE);
		inode_close(file);
		assert_int_equal(change_log_settle(&m, NULL), 0);
	}
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
	assert_int_equal(change_log_settle(&m, NULL), 0);
	assert_false(cut);
	inode_put(file, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(changes_wait_and_go_together),
		TEST(a_full_batch_goes_at_once),
		TEST(a_batch_without_an_answer_is_sent_again),
		TEST(a_waiter_sends_what_waits),
		TEST(a_waiter_gives_up_in_time),
		TEST(names_after_a_lost_name_are_lost),
		TEST(names_of_a_batch_that_is_refused_are_lost),
		TEST(a_client_refused_while_it_shares_soon_asks_again),
		TEST(a_close_never_overtakes_a_commit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
