/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Changes completed by a client: reservations, and batches of changes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/fsd/host.h"

static struct host host;
static struct fsd_peer p, q;

/* ---- a batch under way ---- */

static struct {
	struct wire_fs_batch head;
	char bytes[12000];
} batch;

static void begin(uint64_t number)
{
	memset(&batch, 0, sizeof(batch));
	batch.head = (struct wire_fs_batch){ .head.op = FS_BATCH, .number = number };
}

static void add(int64_t sec, const void *fixed, size_t size, const char *name, const char *second)
{
	const size_t name_length = strlen(name), second_length = strlen(second);
	struct wire_fs_change change = { .time.sec = sec, .length = (uint32_t)size };
	char *at = batch.bytes + batch.head.bytes;
	struct wire_fs_head head;

	change.length += (uint32_t)(name_length + second_length);
	memcpy(at, &change, sizeof(change));
	memcpy(at + sizeof(change), fixed, size);
	memcpy(&head, fixed, sizeof(head));
	head.name_length = (uint32_t)name_length;
	memcpy(at + sizeof(change), &head, sizeof(head));
	memcpy(at + sizeof(change) + size, name, name_length);
	memcpy(at + sizeof(change) + size + name_length, second, second_length);
	batch.head.bytes += (uint32_t)(sizeof(change) + (change.length + 7) / 8 * 8);
	batch.head.changes++;
}

static void add_name(uint64_t dir, uint64_t ino, uint32_t mode, const char *name,
		     const char *target)
{
	const struct wire_fs_name fixed = {
		.head = { .op = FS_NAME, .ino = dir, .uid = 7, .gid = 8 },
		.ino = ino,
		.mode = mode,
		.target_length = (uint32_t)strlen(target),
	};

	add(100, &fixed, sizeof(fixed), name, target);
}

static void add_close(uint64_t ino, uint64_t size)
{
	const struct wire_fs_setattr fixed = { .head = { .op = FS_CLOSE, .ino = ino },
					       .size = size };

	add(101, &fixed, sizeof(fixed), "", "");
}

static void add_unlink(const char *name)
{
	const struct wire_fs_head fixed = { .op = FS_UNLINK, .ino = FS_ROOT };

	add(102, &fixed, sizeof(fixed), name, "");
}

static int send(struct fsd_peer *peer)
{
	return ask(peer, &batch.head, sizeof(batch.head), NULL, batch.bytes, batch.head.bytes);
}

/* The result of a change of the last batch. */
static int result(const struct fsd_peer *peer, unsigned int place)
{
	const uint8_t *at = peer->answer.bytes + sizeof(struct wire_fs_batched);
	struct wire_fs_result one;

	for (;; at += sizeof(one) + one.length) {
		memcpy(&one, at, sizeof(one));
		if (!place--)
			return one.status;
	}
}

/* ---- reservations ---- */

static struct wire_fs_reserved reserved;
static struct wire_fs_attr first_file;

static int reserve(struct fsd_peer *peer, uint32_t files, uint32_t numbers)
{
	struct wire_fs_reserve wanted = { .head.op = FS_RESERVE,
					  .files = files,
					  .numbers = numbers };
	int rc = ask(peer, &wanted, sizeof(wanted), NULL, NULL, 0);

	if (!rc) {
		memcpy(&reserved, peer->answer.bytes, sizeof(reserved));
		memcpy(&first_file, peer->answer.bytes + sizeof(reserved), sizeof(first_file));
	}
	return rc;
}

static int setup(void **state)
{
	(void)state;
	host_init(&host, 8 << 20, 1 << 20);
	peer_join(&p, &host);
	fsd_work(host.fsd); /* takes memory, then in plenty */
	return reserve(&p, 2, 8);
}

static int teardown(void **state)
{
	(void)state;
	peer_leave(&p);
	host_fini(&host);
	return 0;
}

static void second_client_mounts(void)
{
	peer_join(&q, &host);
	assert_int_equal(p.nr_told, 1);
	assert_int_equal(p.told[0].head.op, FS_SHARE);
}

static void share(void)
{
	struct wire_fs_head shared = { .op = FS_SHARED };

	ask(&p, &shared, sizeof(shared), NULL, NULL, 0);
}

/* ---- tests ---- */

static void a_file_gets_its_name_size_and_times(void **state)
{
	struct wire_fs_attr got;

	(void)state;
	assert_int_equal(reserved.files, 2);
	assert_int_equal(first_file.nlink, 0);
	begin(1);
	add_name(FS_ROOT, first_file.ino, S_IFREG | 0640, "f", "");
	add_close(first_file.ino, 5000);
	assert_int_equal(send(&p), 0);
	assert_int_equal(result(&p, 0), 0);
	assert_int_equal(result(&p, 1), 0);
	assert_int_equal(do_lookup(&p, FS_ROOT, "f"), 0);
	got = attr(&p);
	assert_int_equal(got.ino, first_file.ino);
	assert_int_equal(got.mode, S_IFREG | 0640);
	assert_int_equal(got.uid, 7);
	assert_int_equal(got.gid, 8);
	assert_int_equal(got.nlink, 1);
	assert_int_equal(got.size, 5000);
	assert_int_equal(got.blocks, 2 * FS_BLOCK / 512);
	assert_int_equal(got.mtime.sec, 100);
	assert_int_equal(got.ctime.sec, 100);
	assert_int_equal(do_getattr(&p, FS_ROOT), 0);
	assert_int_equal(attr(&p).mtime.sec, 100);
}

static void directories_and_links_take_numbers(void **state)
{
	(void)state;
	begin(1);
	add_name(FS_ROOT, reserved.first, S_IFDIR | 0755, "d", "");
	add_name(reserved.first, reserved.first + 1, S_IFLNK | 0777, "l", "far");
	assert_int_equal(send(&p), 0);
	assert_int_equal(script(&p, "nlink d 2; list d 3"), 0);
	assert_int_equal(walk(&p, "d/l"), reserved.first + 1);
	begin(2);
	add_name(FS_ROOT, reserved.first + 1, S_IFDIR | 0755, "used", "");
	assert_int_equal(send(&p), 0);
	assert_int_equal(result(&p, 0), -ESTALE);
	begin(3);
	add_name(FS_ROOT, reserved.first + 8, S_IFDIR | 0755, "beyond", "");
	assert_int_equal(send(&p), 0);
	assert_int_equal(result(&p, 0), -ESTALE);
	begin(4);
	add_name(FS_ROOT, reserved.first + 2, S_IFIFO | 0600, "pipe", "");
	assert_int_equal(send(&p), 0);
	assert_int_equal(result(&p, 0), -EINVAL);
}

static void a_reserved_file_is_named_once(void **state)
{
	(void)state;
	begin(1);
	add_name(FS_ROOT, first_file.ino, S_IFREG | 0640, "f", "");
	add_name(FS_ROOT, first_file.ino, S_IFREG | 0640, "again", "");
	assert_int_equal(send(&p), 0);
	assert_int_equal(result(&p, 0), 0);
	assert_int_equal(result(&p, 1), -ESTALE);
	assert_int_equal(script(&p, "nlink f 1; no again"), 0);
}

static void a_batch_sent_again_takes_effect_once(void **state)
{
	(void)state;
	begin(1);
	add_name(FS_ROOT, first_file.ino, S_IFREG | 0640, "f", "");
	add_unlink("f");
	add_name(FS_ROOT, reserved.first, S_IFDIR | 0755, "f", "");
	assert_int_equal(send(&p), 0);
	assert_int_equal(send(&p), -EALREADY);
	assert_int_equal(do_rmdir(&p, FS_ROOT, "f"), 0);
	assert_int_equal(send(&p), -EALREADY);
	assert_int_equal(do_lookup(&p, FS_ROOT, "f"), -ENOENT);
	begin(3);
	assert_int_equal(send(&p), -EPROTO);
	begin(0);
	assert_int_equal(send(&p), -EPROTO);
	begin(2);
	assert_int_equal(send(&p), 0);
}

static void after_a_name_that_fails_no_name_changes(void **state)
{
	(void)state;
	assert_int_equal(script(&p, "file f"), 0);
	begin(1);
	add_name(FS_ROOT, reserved.first, S_IFDIR | 0755, "before", "");
	add_name(FS_ROOT, first_file.ino, S_IFREG | 0640, "f", "");
	add_name(FS_ROOT, reserved.first + 1, S_IFDIR | 0755, "after", "");
	assert_int_equal(send(&p), 0);
	assert_int_equal(result(&p, 0), 0);
	assert_int_equal(result(&p, 1), -EEXIST);
	assert_int_equal(result(&p, 2), -ECANCELED);
	assert_int_equal(script(&p, "is before; no after"), 0);
	assert_int_equal(send(&p), -ESTALE);
}

static void a_file_that_fails_stops_nothing(void **state)
{
	(void)state;
	begin(1);
	add_close(12345, 1);
	add_name(FS_ROOT, reserved.first, S_IFDIR | 0755, "after", "");
	assert_int_equal(send(&p), 0);
	assert_int_equal(result(&p, 0), -ESTALE);
	assert_int_equal(result(&p, 1), 0);
}

static void a_client_asked_to_share_may_still_tell_its_changes(void **state)
{
	(void)state;
	second_client_mounts();
	assert_int_equal(q.answer.times, 0);
	assert_int_equal(reserve(&p, 1, 1), -EAGAIN);
	begin(1);
	add_name(FS_ROOT, first_file.ino, S_IFREG | 0640, "f", "");
	assert_int_equal(send(&p), 0);
	assert_int_equal(result(&p, 0), 0);
	share();
	assert_int_equal(q.answer.times, 1);
	assert_int_equal(do_lookup(&q, FS_ROOT, "f"), 0);
	assert_int_equal(reserve(&p, 1, 1), -EAGAIN);
	peer_leave(&q);
}

static void a_silent_client_changes_no_names_later(void **state)
{
	(void)state;
	assert_int_equal(script(&p, "file old"), 0);
	second_client_mounts();
	host.now_ns += 10ull * FS_ALONE_MS * 1000000;
	fsd_expired(host.fsd);
	assert_int_equal(q.answer.times, 1);
	assert_int_equal(script(&q, "unlink old; file old"), 0);
	begin(1);
	add_close(first_file.ino, 1);
	add_unlink("old");
	add_name(FS_ROOT, first_file.ino, S_IFREG | 0640, "f", "");
	assert_int_equal(send(&p), 0);
	assert_int_equal(result(&p, 1), -ESTALE);
	assert_int_equal(result(&p, 2), -ECANCELED);
	assert_int_equal(script(&q, "is old; no f"), 0);
	peer_leave(&q);
}

/* Otherwise the file would stay open, and no other client would ever have the lease again. */
static void a_close_after_a_lost_name_closes(void **state)
{
	const uint64_t second_file = first_file.ino + 1;
	const struct wire_fs_head release = { .op = FS_RELEASE, .ino = second_file };

	(void)state;
	assert_int_equal(script(&p, "file old"), 0);
	peer_join_for_leases(&q, &host);
	host.now_ns += 10ull * FS_ALONE_MS * 1000000;
	fsd_expired(host.fsd);
	begin(1);
	add_unlink("old");
	add_name(FS_ROOT, first_file.ino, S_IFREG | 0640, "f", "");
	add_close(first_file.ino, 1);
	add(103, &release, sizeof(release), "", "");
	assert_int_equal(send(&p), 0);
	assert_int_equal(result(&p, 0), -ESTALE);
	assert_int_equal(result(&p, 1), -ECANCELED);
	assert_int_equal(result(&p, 2), 0);
	assert_int_equal(result(&p, 3), 0);
	assert_int_equal(send(&p), -ESTALE);
	share();
	host.now_ns += FS_QUIET_MS * 1000000ull;
	assert_int_equal(do_getattr(&q, FS_ROOT), 0);
	assert_int_equal(q.answer.sharing, FS_REPLY_LEASED);
	peer_leave(&q);
}

static void files_without_a_name_end_with_the_client(void **state)
{
	struct fsd_info info;

	(void)state;
	peer_leave(&p);
	while (fsd_has_work(host.fsd))
		fsd_work(host.fsd);
	fsd_info(host.fsd, &info);
	assert_int_equal(info.files, 1);
	assert_int_equal(info.bytes_used, 0);
	peer_join(&p, &host);
}

static void a_donor_short_of_memory_reserves_nothing(void **state)
{
	char name[201];
	int rc = 0;

	(void)state;
	for (unsigned int i = 0; !rc; i++) {
		snprintf(name, sizeof(name), "%0200u", i);
		rc = do_make(&p, FS_ROOT, name, S_IFREG | 0600, 0, NULL);
	}
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(reserve(&p, 1, 1), -EAGAIN);
}

static void malformed_batches_change_nothing_more(void **state)
{
	struct wire_fs_head head = { .op = FS_NAME, .ino = FS_ROOT };
	struct wire_fs_name name = { .head = head, .ino = first_file.ino, .mode = S_IFREG };

	(void)state;
	assert_int_equal(ask(&p, &name, sizeof(name), "f", NULL, 0), -EOPNOTSUPP);
	assert_int_equal(reserve(&p, FS_RESERVE_FILES_MAX + 1, 0), -EINVAL);
	assert_int_equal(reserve(&p, 0, FS_RESERVE_NUMBERS_MAX + 1), -EINVAL);
	begin(1);
	batch.head.changes = FS_BATCH_MAX + 1;
	assert_int_equal(send(&p), -EINVAL);
	begin(1);
	add_name(FS_ROOT, reserved.first, S_IFDIR | 0755, "d", "");
	batch.head.changes = FS_BATCH_MAX; /* and there are no more */
	assert_int_equal(send(&p), 0);
	assert_int_equal(result(&p, 0), 0);
	assert_int_equal(result(&p, 1), -ECANCELED);
	assert_int_equal(result(&p, FS_BATCH_MAX - 1), -ECANCELED);
	begin(2);
	head = (struct wire_fs_head){ .op = FS_READDIR, .ino = FS_ROOT };
	add(1, &head, sizeof(head), "", "");
	head.op = FS_BATCH;
	add(1, &head, sizeof(head), "", "");
	assert_int_equal(send(&p), 0);
	assert_int_equal(result(&p, 0), -EOPNOTSUPP);
	assert_int_equal(result(&p, 1), -EOPNOTSUPP);
	begin(3);
	add_unlink("d");
	((struct wire_fs_change *)batch.bytes)->length = 4000;
	assert_int_equal(send(&p), 0);
	assert_int_equal(result(&p, 0), -ECANCELED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_gets_its_name_size_and_times),
		TEST(directories_and_links_take_numbers),
		TEST(a_reserved_file_is_named_once),
		TEST(a_batch_sent_again_takes_effect_once),
		TEST(after_a_name_that_fails_no_name_changes),
		TEST(a_file_that_fails_stops_nothing),
		TEST(a_client_asked_to_share_may_still_tell_its_changes),
		TEST(a_silent_client_changes_no_names_later),
		TEST(a_close_after_a_lost_name_closes),
		TEST(files_without_a_name_end_with_the_client),
		TEST(a_donor_short_of_memory_reserves_nothing),
		TEST(malformed_batches_change_nothing_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
