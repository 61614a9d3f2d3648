/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Single calls of a mount: repeated, refused, without their bytes, or the last. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "fsd/journal/calls.h"
#include "tests/fsd/journal/served.h"

#define BYTES (64u << 20)
#define SMALL_BYTES (16u << 20)
#define MOUNT 7
#define BATCH 16u
#define SIZE(type) sizeof(struct wire_fs_##type)

static struct served served;
static struct served_conn first, second;
static uint64_t number; /* of the mount's last call */

/* The mount's next call, by a connection; all earlier calls have their replies. */
static struct served_call next_call(struct served_conn *conn)
{
	number++;
	return (struct served_call){ .conn = conn, .head = { MOUNT, number, number, 0 } };
}

static int mount(uint64_t id, uint64_t its_number)
{
	struct served_call call = { .conn = &first, .head = { id, its_number, its_number, 0 } };
	const union wire_fs_fixed m = {
		.mount = { .head.op = FS_MOUNT, .magic = FS_MAGIC, .version = FS_VERSION },
	};

	return served_ask(&served, &call, &m, SIZE(mount), NULL);
}

/* Return: the new file's number; it is open. */
static uint64_t make(const char *name)
{
	struct served_call call = next_call(&first);
	const union wire_fs_fixed m = { .make = { .head = { .op = FS_MAKE, .ino = FS_ROOT },
						  .mode = S_IFREG | 0600,
						  .make = FS_MAKE_OPEN } };
	struct wire_fs_attr attr;

	assert_int_equal(served_ask(&served, &call, &m, SIZE(make), name), 0);
	memcpy(&attr, call.reply + SIZE(reply), sizeof(attr));
	return attr.ino;
}

static union wire_fs_fixed transfer(enum wire_fs_op op, uint64_t ino, uint32_t length)
{
	return (union wire_fs_fixed){
		.transfer = { .head = { .op = (uint16_t)op, .ino = ino }, .length = length },
	};
}

static union wire_fs_fixed set_mode(uint64_t ino, uint32_t mode)
{
	return (union wire_fs_fixed){ .setattr = { .head = { .op = FS_SETATTR, .ino = ino },
						   .mask = FS_SET_MODE,
						   .mode = mode } };
}

static uint64_t size_of(uint64_t ino)
{
	struct served_call call = next_call(&first);
	const union wire_fs_fixed get = { .head = { .op = FS_GETATTR, .ino = ino } };
	struct wire_fs_attr attr;

	assert_int_equal(served_ask(&served, &call, &get, SIZE(head), NULL), 0);
	memcpy(&attr, call.reply + SIZE(reply), sizeof(attr));
	return attr.size;
}

static void begin(uint64_t bytes)
{
	number = 0;
	served_init(&served, bytes);
	assert_int_equal(mount(MOUNT, ++number), 0);
}

static int setup(void **state)
{
	(void)state;
	begin(BYTES);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	served_fini(&served);
	return 0;
}

static void write_all(uint64_t ino, const char *text)
{
	struct served_call call = next_call(&first);
	union wire_fs_fixed t = transfer(FS_WRITE, ino, (uint32_t)strlen(text));

	memcpy(first.area, text, strlen(text));
	assert_int_equal(served_ask(&served, &call, &t, SIZE(transfer), NULL), 0);
}

static void a_read_repeated_while_its_bytes_move_brings_them_to_the_new_connection(void **state)
{
	struct served_call call, again;
	uint64_t ino = make("f");
	union wire_fs_fixed t = transfer(FS_READ, ino, 5);

	(void)state;
	write_all(ino, "bytes");
	memset(&first, 0, sizeof(first));
	memset(&second, 0, sizeof(second));
	call = next_call(&first);
	assert_true(served_send(&served, &call, &t, SIZE(transfer), NULL) > 0);
	again = call;
	again.conn = &second;
	assert_int_equal(served_ask(&served, &again, &t, SIZE(transfer), NULL), 0);
	assert_memory_equal(second.area, "bytes", 5);
	assert_int_equal(call.replies, 1);
}

static void a_write_repeated_while_its_bytes_move_happens_once(void **state)
{
	struct served_call call, again;
	uint64_t ino = make("f");
	union wire_fs_fixed t = transfer(FS_WRITE, ino, 5);

	(void)state;
	memcpy(first.area, "bytes", 5);
	call = next_call(&first);
	assert_true(served_send(&served, &call, &t, SIZE(transfer), NULL) > 0);
	again = call;
	again.conn = &second;
	memcpy(second.area, "other", 5);
	assert_int_equal(served_ask(&served, &again, &t, SIZE(transfer), NULL), 0);
	t.head.op = FS_READ;
	call = next_call(&first);
	assert_int_equal(served_ask(&served, &call, &t, SIZE(transfer), NULL), 0);
	assert_memory_equal(first.area, "bytes", 5);
}

static void a_write_without_its_bytes_is_in_no_log_and_no_read(void **state)
{
	struct served_call write, read;
	uint64_t ino = make("f");
	union wire_fs_fixed t = transfer(FS_WRITE, ino, 5);

	(void)state;
	served.move_error = -ENOMEM;
	write = next_call(&first);
	assert_true(served_send(&served, &write, &t, SIZE(transfer), NULL) > 0);
	t.head.op = FS_READ;
	t.transfer.place = FS_BLOCK;
	read = next_call(&first);
	assert_true(served_send(&served, &read, &t, SIZE(transfer), NULL) > 0);
	assert_int_equal(fsd_service_commit(served.service), -ENOMEM);
	assert_true(!write.replies && !read.replies);
	served.move_error = 0;
	assert_int_equal(served_reopen(&served), 0);
	/* The mount was told to repeat both. */
	assert_true(write.replies == 1 && !write.length && read.replies == 1 && !read.length);
	assert_int_equal(size_of(ino), 0);
}

/* Changes a file @nr times in one batch. The mount says that no reply from @kept on has arrived. */
static void change(uint64_t ino, uint64_t kept, unsigned int nr)
{
	static struct served_call calls[FSD_MOUNT_CALLS_MAX];

	for (unsigned int i = 0; i < nr; i++) {
		const union wire_fs_fixed set = set_mode(ino, i % 01000);

		calls[i] = next_call(&first);
		calls[i].head.answered = kept;
		assert_true(served_send(&served, &calls[i], &set, SIZE(setattr), NULL) > 0);
	}
	assert_int_equal(fsd_service_commit(served.service), 0);
	for (unsigned int i = 0; i < nr; i++)
		assert_true(calls[i].replies == 1 && !calls[i].status);
}

/* Else the next server would keep more replies than a mount may have. */
static void answered_that_jumps_back_is_the_same_for_the_next_server(void **state)
{
	uint64_t ino = make("f"), kept = number + 1;
	const union wire_fs_fixed get = { .head = { .op = FS_GETATTR, .ino = ino } };
	struct served_call look;

	(void)state;
	change(ino, kept, FSD_MOUNT_CALLS_MAX - 1);
	look = next_call(&first); /* changes nothing, so it is in no log */
	assert_int_equal(served_ask(&served, &look, &get, SIZE(head), NULL), 0);
	change(ino, kept, FSD_MOUNT_CALLS_MAX - 1);
	assert_int_equal(served_reopen(&served), 0);
	assert_int_equal(size_of(ino), 0);
}

static void the_end_of_a_mount_is_in_the_log_before_its_reply(void **state)
{
	struct served_call call = next_call(&first);
	const union wire_fs_fixed end = { .head.op = FS_UNMOUNT };

	(void)state;
	served.disk_error = -EIO;
	assert_int_equal(served_send(&served, &call, &end, SIZE(head), NULL), -EIO);
	assert_int_equal(call.replies, 0);
	served.disk_error = 0;
	assert_int_equal(served_reopen(&served), 0);
	assert_int_equal(served_ask(&served, &call, &end, SIZE(head), NULL), 0);
	assert_int_equal(served_reopen(&served), 0);
	call = next_call(&first);
	assert_int_equal(served_ask(&served, &call, &end, SIZE(head), NULL), 0);
	call = next_call(&first);
	assert_int_equal(served_ask(&served, &call, &(union wire_fs_fixed){ .head.op = FS_STATFS },
				    SIZE(head), NULL),
			 -ENOTCONN);
}

static union wire_fs_fixed lock(uint64_t ino, uint64_t owner, uint32_t type, uint32_t flags)
{
	return (union wire_fs_fixed){ .lock = { .head = { .op = FS_SETLK, .ino = ino },
						.owner = owner,
						.end = UINT64_MAX,
						.type = type,
						.flags = flags } };
}

static void set_lock(uint64_t ino, uint64_t owner, uint32_t type)
{
	const union wire_fs_fixed wanted = lock(ino, owner, type, 0);
	struct served_call call = next_call(&first);

	assert_int_equal(served_ask(&served, &call, &wanted, SIZE(lock), NULL), 0);
}

static void a_mount_goes_on_while_a_call_awaits_a_lock(void **state)
{
	uint64_t ino = make("f");
	const union wire_fs_fixed wanted = lock(ino, 2, F_WRLCK, FS_LOCK_WAIT);
	struct served_call wait, again;

	(void)state;
	set_lock(ino, 1, F_WRLCK);
	wait = next_call(&first);
	assert_true(served_send(&served, &wait, &wanted, SIZE(lock), NULL) > 0);
	for (unsigned int i = 0; i < 3; i++)
		change(ino, number + 1, FSD_MOUNT_CALLS_MAX - 1);
	assert_int_equal(served_reopen(&served), 0);
	change(ino, number + 1, FSD_MOUNT_CALLS_MAX - 1);
	assert_true(wait.replies == 1 && !wait.length);
	assert_true(served_send(&served, &wait, &wanted, SIZE(lock), NULL) >= 0);
	assert_int_equal(wait.replies, 0);
	set_lock(ino, 1, F_UNLCK);
	assert_true(wait.replies == 1 && wait.length && !wait.status);
	/* The mount did not get it. */
	again = wait;
	again.conn = &second;
	assert_int_equal(served_reopen(&served), 0); /* by the log, */
	assert_int_equal(served_reopen(&served), 0); /* and then by the checkpoint */
	change(ino, number + 1, 1);
	assert_int_equal(served_ask(&served, &again, &wanted, SIZE(lock), NULL), 0);
	assert_int_equal(again.length, wait.length);
	assert_memory_equal(again.reply, wait.reply, wait.length);
}

/* Each lock is granted at once. A later call says that the reply has arrived. */
static void replies_of_locks_are_forgotten_when_the_mount_names_them(void **state)
{
	static struct served_call calls[2 * FSD_MOUNT_CALLS_MAX];
	uint64_t ino = make("f");
	const union wire_fs_fixed wanted = lock(ino, 1, F_WRLCK, FS_LOCK_WAIT);

	(void)state;
	for (unsigned int i = 0; i < 2 * FSD_MOUNT_CALLS_MAX; i++) {
		calls[i] = next_call(&first);
		calls[i].head.late = i < BATCH ? 0 : calls[i - BATCH].head.number;
		assert_true(served_send(&served, &calls[i], &wanted, SIZE(lock), NULL) > 0);
		if (i % BATCH == BATCH - 1)
			assert_int_equal(fsd_service_commit(served.service), 0);
	}
	assert_int_equal(served_reopen(&served), 0);
	assert_int_equal(size_of(ino), 0);
}

static void a_mount_has_room_for_so_many_calls_that_await_a_lock(void **state)
{
	static struct served_call calls[FSD_MOUNT_CALLS_MAX];
	uint64_t ino = make("f");
	union wire_fs_fixed wanted;
	struct served_call more;

	(void)state;
	set_lock(ino, 1, F_WRLCK);
	for (unsigned int i = 0; i < FSD_MOUNT_CALLS_MAX; i++) {
		wanted = lock(ino, 2 + i, F_WRLCK, FS_LOCK_WAIT);
		calls[i] = next_call(&first);
		assert_true(served_send(&served, &calls[i], &wanted, SIZE(lock), NULL) > 0);
	}
	wanted = lock(ino, 1, F_RDLCK, FS_LOCK_WAIT);
	more = next_call(&first);
	assert_int_equal(served_ask(&served, &more, &wanted, SIZE(lock), NULL), -EAGAIN);
	set_lock(ino, 1, F_UNLCK);
	assert_true(calls[0].replies == 1 && !calls[0].status && !calls[1].replies);
}

/* Sends calls that wait, and changes, until the server has no room for more of this mount. */
static void hoard(uint64_t id, uint64_t ino)
{
	static struct served_call calls[2 * FSD_MOUNT_CALLS_MAX];
	unsigned int nr = 0;

	for (int status = 0; !status && nr < 2 * FSD_MOUNT_CALLS_MAX; nr++) {
		const union wire_fs_fixed wanted = lock(ino, 2 + nr, F_WRLCK, FS_LOCK_WAIT);
		const union wire_fs_fixed set = set_mode(ino, nr % 01000);
		struct served_call *call = &calls[nr];

		*call = (struct served_call){ .conn = &first, .head = { id, 3 + nr, 1, 0 } };
		if (nr % 2)
			assert_true(served_send(&served, call, &set, SIZE(setattr), NULL) > 0);
		else
			assert_true(served_send(&served, call, &wanted, SIZE(lock), NULL) > 0);
		status = call->replies ? call->status : 0;
	}
	assert_int_equal(fsd_service_commit(served.service), 0);
	for (unsigned int i = 0; i < nr; i++)
		assert_true(!calls[i].replies || !calls[i].status || calls[i].status == -EAGAIN);
}

/* A mount within its share finds room, whatever others have. */
static void a_checkpoint_has_room_for_all_replies_and_requests_for_locks(void **state)
{
	uint64_t ino;

	(void)state;
	served_fini(&served);
	begin(SMALL_BYTES);
	ino = make("f");
	set_lock(ino, 1, F_WRLCK);
	for (uint64_t id = MOUNT + 1; id < MOUNT + 17; id++) {
		const union wire_fs_fixed open = { .open.head = { .op = FS_OPEN, .ino = ino } };
		struct served_call call = { .conn = &first, .head = { id, 2, 1, 0 } };

		assert_int_equal(mount(id, 1), 0);
		assert_int_equal(served_ask(&served, &call, &open, SIZE(open), NULL), 0);
		hoard(id, ino);
	}
	assert_int_equal(fsd_service_finish(served.service), 0);
	assert_int_equal(served_reopen(&served), 0);
	for (unsigned int i = 0; i < 64; i++)
		change(ino, number + 1, 1);
}

static void a_server_that_finishes_leaves_no_log(void **state)
{
	struct fsd_service_info info;
	uint64_t ino = make("f"), writes;

	(void)state;
	change(ino, number + 1, 5);
	assert_int_equal(fsd_service_finish(served.service), 0);
	writes = served.writes;
	assert_int_equal(fsd_service_finish(served.service), 0); /* there is nothing to do */
	assert_int_equal(served.writes, writes);
	assert_int_equal(served_reopen(&served), 0);
	fsd_service_info(served.service, &info);
	assert_int_equal(info.replayed, 0);
	assert_int_equal(size_of(ino), 0);
}

/* In the first batch of the log: see struct batch_head. */
#define LOG_AT FSD_DISK_PAGE
#define CRC_AT (LOG_AT + 4)
#define LENGTH_AT (LOG_AT + 24)
#define VERSION_AT (LOG_AT + 32)
#define BATCH_AT (LOG_AT + 40)

static void a_log_of_another_version_is_refused(void **state)
{
	uint64_t ino = make("f"), length;
	uint32_t crc = 0, version;

	(void)state;
	change(ino, number + 1, 5);
	memcpy(&version, served.disk + VERSION_AT, sizeof(version));
	memcpy(&length, served.disk + LENGTH_AT, sizeof(length));
	version++;
	memcpy(served.disk + VERSION_AT, &version, sizeof(version));
	memcpy(served.disk + CRC_AT, &crc, sizeof(crc));
	crc = fsd_disk_sum(served.disk + LOG_AT, BATCH_AT - LOG_AT + length, ~0u);
	memcpy(served.disk + CRC_AT, &crc, sizeof(crc));
	assert_int_equal(served_reopen(&served), -EPROTONOSUPPORT);
}

/* Damages a byte of batch @index of the log, each on a page of its own. */
static void damage(unsigned int index)
{
	served.disk[LOG_AT + index * FSD_DISK_PAGE + (BATCH_AT - LOG_AT) + 1] ^= 1;
}

static void a_damaged_batch_is_no_end_of_the_log(void **state)
{
	uint64_t ino = make("f");

	(void)state;
	for (unsigned int i = 0; i < 5; i++)
		change(ino, number + 1, 1);
	damage(3);
	assert_int_equal(served_reopen(&served), -EIO);
	damage(3);
	assert_int_equal(served_reopen(&served), 0);
}

/* A crash may leave the last batch so. */
static void a_last_batch_that_is_torn_is_none(void **state)
{
	struct fsd_service_info info;
	uint64_t ino = make("f");
	unsigned int batches;

	(void)state;
	for (unsigned int i = 0; i < 5; i++)
		change(ino, number + 1, 1);
	fsd_service_info(served.service, &info);
	batches = (unsigned int)info.batches;
	damage(batches - 1);
	assert_int_equal(served_reopen(&served), 0);
	fsd_service_info(served.service, &info);
	assert_int_equal(info.replayed, batches - 1);
}

/* Return: what loading two saved mounts of these clients returns. */
static int load_two(uint64_t client, uint64_t other)
{
	struct fsd_bytes state = { 0 };
	struct fsd_reader reader;
	struct fsd_calls calls;
	int rc;

	fsd_calls_init(&calls);
	fsd_calls_add_mount(&calls, 1)->client_id = client;
	fsd_calls_add_mount(&calls, 2)->client_id = other;
	assert_int_equal(fsd_calls_save(&calls, &state), 0);
	fsd_calls_fini(&calls);
	reader = (struct fsd_reader){ state.at, state.length };
	rc = fsd_calls_load(&calls, &reader);
	fsd_calls_fini(&calls);
	fsd_bytes_free(&state);
	return rc;
}

static void two_mounts_of_one_client_are_refused(void **state)
{
	(void)state;
	assert_int_equal(load_two(5, 6), 0);
	assert_int_equal(load_two(5, 5), -EIO);
}

static void one_mount_too_many_is_told_so_and_not_that_it_is_forgotten(void **state)
{
	(void)state;
	for (uint64_t id = MOUNT + 1; id < MOUNT + FSD_MOUNTS_MAX; id++)
		assert_int_equal(mount(id, 1), 0);
	assert_int_equal(mount(MOUNT + FSD_MOUNTS_MAX, 1), -ENFILE);
	assert_int_equal(served_reopen(&served), 0);
	assert_int_equal(mount(MOUNT + FSD_MOUNTS_MAX, 1), -ENFILE);
}

/* Else the log would have the end of a mount, and not its begin: no server could go on. */
static void a_mount_whose_first_call_is_refused_is_none(void **state)
{
	const union wire_fs_fixed m = {
		.mount = { .head.op = FS_MOUNT, .magic = FS_MAGIC, .version = FS_VERSION },
	};
	struct served_call call = { .conn = &first, .head = { MOUNT + 1, 1, 2, 0 } };
	struct fsd_service_info info;

	(void)state;
	assert_int_equal(served_ask(&served, &call, &m, SIZE(mount), NULL), -EALREADY);
	fsd_service_info(served.service, &info);
	assert_int_equal(info.mounts, 1);
	assert_true(fsd_service_leave(served.service, MOUNT + 1) >= 0);
	assert_int_equal(fsd_service_commit(served.service), 0);
	assert_int_equal(served_reopen(&served), 0);
	assert_int_equal(mount(MOUNT + 1, 1), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_read_repeated_while_its_bytes_move_brings_them_to_the_new_connection),
		TEST(a_write_repeated_while_its_bytes_move_happens_once),
		TEST(a_write_without_its_bytes_is_in_no_log_and_no_read),
		TEST(answered_that_jumps_back_is_the_same_for_the_next_server),
		TEST(the_end_of_a_mount_is_in_the_log_before_its_reply),
		TEST(a_mount_goes_on_while_a_call_awaits_a_lock),
		TEST(replies_of_locks_are_forgotten_when_the_mount_names_them),
		TEST(a_mount_has_room_for_so_many_calls_that_await_a_lock),
		TEST(a_checkpoint_has_room_for_all_replies_and_requests_for_locks),
		TEST(a_server_that_finishes_leaves_no_log),
		TEST(a_log_of_another_version_is_refused),
		TEST(a_damaged_batch_is_no_end_of_the_log),
		TEST(a_last_batch_that_is_torn_is_none),
		cmocka_unit_test(two_mounts_of_one_client_are_refused),
		TEST(a_mount_whose_first_call_is_refused_is_none),
		TEST(one_mount_too_many_is_told_so_and_not_that_it_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
