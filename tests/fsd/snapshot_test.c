/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copies of directories. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "fsd/internal.h"
#include "tests/fsd/host.h"

#define LARGE (40 * FS_BLOCK)
#define PATIENCE_MS 1000
#define SLICE_NAMES 600 /* more than a slice makes or removes */
#define MANY (4 * SLICE_NAMES)

static struct host host;
static struct fsd_peer p, q;
static char data[LARGE], got[LARGE];

static int take(struct fsd_peer *peer, const char *from, const char *to, const char *name)
{
	struct wire_fs_snapshot wanted = {
		.head = { .op = FS_SNAPSHOT, .ino = walk(peer, from) },
		.parent = walk(peer, to),
		.patience_ms = PATIENCE_MS,
	};
	int rc = ask(peer, &wanted, sizeof(wanted), name, NULL, 0);

	while (rc == PENDING && fsd_has_work(host.fsd)) {
		fsd_work(host.fsd);
		rc = peer->answer.times ? peer->answer.status : PENDING;
	}
	return rc;
}

static void write_file(const char *path, uint64_t offset, size_t length, char with)
{
	memset(data, with, sizeof(data));
	assert_int_equal(do_open(&p, walk(&p, path), 0), 0);
	assert_int_equal(do_write(&p, walk(&p, path), offset, data, length), 0);
	assert_int_equal(do_release(&p, walk(&p, path)), 0);
}

static const char *read_file(const char *path, uint64_t offset, size_t length)
{
	memset(got, 0x55, sizeof(got));
	assert_int_equal(do_open(&p, walk(&p, path), 0), 0);
	assert_int_equal(do_read(&p, walk(&p, path), offset, got, length), 0);
	assert_int_equal(do_release(&p, walk(&p, path)), 0);
	return got;
}

/* A tree below "d", and a directory "s" for copies. */
static int setup(void **state)
{
	(void)state;
	host_init(&host, 1 << 20, 1 << 18);
	peer_join(&p, &host);
	assert_int_equal(script(&p, "mkdir d; mkdir s; mkdir d/sub; file d/f; file d/sub/g; "
				    "link d/f d/sub/also; symlink far d/l; chmod 0751 d/sub"), 0);
	write_file("d/f", 0, 5000, 'a');
	write_file("d/sub/g", 8 * FS_BLOCK, FS_BLOCK, 'b');
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	peer_leave(&p);
	host_fini(&host);
	return 0;
}

static struct wire_fs_attr attr_of(const char *path)
{
	assert_int_equal(do_getattr(&p, walk(&p, path)), 0);
	return attr(&p);
}

static void check_same(const char *path, const char *copy)
{
	struct wire_fs_attr a = attr_of(path), b = attr_of(copy);

	assert_int_not_equal(a.ino, b.ino);
	b.ino = a.ino;
	b.change = a.change;
	assert_memory_equal(&a, &b, sizeof(a));
}

static void a_copy_has_everything(void **state)
{
	struct wire_fs_xattr x = { .head = { .op = FS_SETXATTR, .ino = walk(&p, "d/f") },
				   .value_length = 5 };
	struct wire_fs_head get = { .op = FS_GETXATTR };

	(void)state;
	assert_int_equal(ask(&p, &x, sizeof(x), "user.a", "value", 5), 0);
	assert_int_equal(take(&p, "d", "s", "one"), 0);
	assert_int_equal(attr(&p).ino, walk(&p, "s/one"));
	check_same("d", "s/one");
	check_same("d/f", "s/one/f");
	check_same("d/sub", "s/one/sub");
	check_same("d/sub/g", "s/one/sub/g");
	check_same("d/l", "s/one/l");
	assert_int_equal(script(&p, "same s/one/f s/one/sub/also; nlink s/one/f 2; nlink d/f 2; "
				    "list s/one 5"), 0);
	assert_memory_equal(read_file("s/one/f", 0, 5000), read_file("d/f", 0, 5000), 5000);
	assert_int_equal(read_file("s/one/f", 0, 5000)[4999], 'a');
	assert_int_equal(read_file("s/one/sub/g", 8 * FS_BLOCK, FS_BLOCK)[0], 'b');
	assert_int_equal(read_file("s/one/sub/g", 0, FS_BLOCK)[7], 0);
	get.ino = walk(&p, "s/one/f");
	assert_int_equal(ask(&p, &get, sizeof(get), "user.a", NULL, 0), 0);
	assert_memory_equal(body(&p), "value", 5);
}

static void a_copy_stays_as_it_is(void **state)
{
	(void)state;
	assert_int_equal(take(&p, "d", "s", "one"), 0);
	write_file("d/f", 0, 5000, 'z');
	assert_int_equal(script(&p, "unlink d/sub/g; rename d/l d/m; file d/new"), 0);
	assert_int_equal(read_file("s/one/f", 0, 5000)[0], 'a');
	assert_int_equal(script(&p, "is s/one/sub/g; is s/one/l; no s/one/new; no s/one/m"), 0);
	write_file("s/one/f", 0, 10, 'q');
	assert_int_equal(read_file("d/f", 0, 5000)[0], 'z');
}

static void the_place_of_copies_is_left_out(void **state)
{
	(void)state;
	assert_int_equal(take(&p, "", "s", "all"), 0);
	assert_int_equal(script(&p, "is s/all/d/f; no s/all/s"), 0);
	assert_int_equal(take(&p, "s", "s", "again"), 0);
	assert_int_equal(script(&p, "is s/again/all/d/f; no s/again/again"), 0);
	assert_int_equal(take(&p, "s/all", "s/all/d", "inner"), 0);
	assert_int_equal(script(&p, "list s/all/d/inner 2"), 0);
}

static void a_copy_that_fails_leaves_nothing(void **state)
{
	struct fsd_info before, after;

	(void)state;
	assert_int_equal(script(&p, "file s/large; mkdir s/x"), 0);
	write_file("s/large", 0, LARGE, 'l');
	assert_int_equal(take(&p, "d", "s", "x"), -EEXIST);
	fsd_info(host.fsd, &before);
	for (unsigned int bytes = 0; bytes < 8000; bytes += 40) {
		const uint64_t meta = host.fsd->meta_bytes_max;
		int rc;

		/* names leave an eighth */
		host.fsd->meta_bytes_max = (host.fsd->meta_bytes + bytes) * 8 / 7;
		rc = take(&p, "d", "s", "one");
		host.fsd->meta_bytes_max = meta;
		if (!rc)
			break;
		assert_int_equal(rc, -ENOSPC);
		while (fsd_has_work(host.fsd))
			fsd_work(host.fsd);
		fsd_info(host.fsd, &after);
		assert_int_equal(after.files, before.files);
		assert_int_equal(after.bytes_used, before.bytes_used);
		assert_int_equal(script(&p, "no s/one; list s 4"), 0);
	}
	assert_int_equal(script(&p, "is s/one/sub/g"), 0);
	for (unsigned int i = 0; i < 4; i++)
		write_file("d/f", i * (uint64_t)LARGE, LARGE, 'f');
	assert_int_equal(take(&p, "d", "s", "two"), -ENOSPC);
	assert_int_equal(script(&p, "no s/two"), 0);
}

static void blocks_ahead_are_not_copied(void **state)
{
	(void)state;
	assert_int_equal(do_open(&p, walk(&p, "d/f"), 0), 0);
	assert_int_equal(do_alloc(&p, walk(&p, "d/f"), 0, LARGE), 0);
	assert_int_equal(take(&p, "d", "s", "one"), 0);
	assert_int_equal(attr_of("s/one/f").blocks, 2 * FS_BLOCK / 512);
	assert_int_equal(do_release(&p, walk(&p, "d/f")), 0);
}

static void other_clients_are_in_the_way(void **state)
{
	struct wire_fs_head shared = { .op = FS_SHARED };

	(void)state;
	peer_join(&q, &host);
	assert_int_equal(take(&p, "d", "s", "one"), -EBUSY);
	ask(&p, &shared, sizeof(shared), NULL, NULL, 0);
	assert_int_equal(take(&p, "d", "s", "one"), -EBUSY);
	assert_int_equal(take(&q, "d", "s", "one"), -EBUSY);
	peer_leave(&q);
	assert_int_equal(take(&p, "d", "s", "one"), 0);
}

static void begin(struct fsd_peer *peer, struct fsd_answer *answer)
{
	struct wire_fs_snapshot wanted = {
		.head = { .op = FS_SNAPSHOT, .ino = walk(peer, "d") },
		.parent = walk(peer, "s"),
		.patience_ms = PATIENCE_MS,
	};

	assert_int_equal(ask_for(peer, answer, &wanted, sizeof(wanted), "one", NULL, 0), PENDING);
}

static uint64_t inodes(void)
{
	return host.fsd->inodes.nr;
}

/* Does a slice. Return: the inodes made or freed. */
static uint64_t slice(void)
{
	const uint64_t before = inodes();

	fsd_work(host.fsd);
	return inodes() > before ? inodes() - before : before - inodes();
}

static void make_many(void)
{
	char name[16];

	for (unsigned int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(do_make(&p, walk(&p, "d"), name, S_IFIFO | 0644, 0, NULL), 0);
	}
}

/* The first names are copied. */
static void copy_some(struct fsd_answer *answer)
{
	const uint64_t before = inodes();

	begin(&p, answer);
	while (inodes() < before + SLICE_NAMES / 2)
		assert_true(slice() < SLICE_NAMES);
	assert_int_equal(answer->times, 0);
}

static void changes_wait_for_a_copy(void **state)
{
	struct fsd_answer copied, made;
	struct wire_fs_make make = { .head = { .op = FS_MAKE, .ino = walk(&p, "d") },
				     .mode = S_IFIFO };
	const uint64_t first_copied = host.fsd->next_ino + MANY;

	(void)state;
	make_many();
	copy_some(&copied);
	assert_int_equal(ask_for(&p, &made, &make, sizeof(make), "late", NULL, 0), PENDING);
	assert_int_equal(script(&p, "no s/one; no d/late; list d 2405"), 0);
	assert_int_equal(do_getattr(&p, first_copied), -ESTALE);
	assert_int_equal(do_getattr(&p, first_copied + 1), -ESTALE);
	while (!copied.times)
		assert_true(slice() < SLICE_NAMES);
	assert_int_equal(copied.status, 0);
	assert_int_equal(made.times, 1);
	assert_int_equal(made.status, 0);
	assert_int_equal(script(&p, "no s/one/late; is d/late; list s/one 2405"), 0);
	assert_int_equal(do_getattr(&p, first_copied + 1), 0);
}

static void a_copy_that_takes_too_long_is_removed_in_slices(void **state)
{
	struct fsd_answer copied, made;
	struct wire_fs_make make = { .head = { .op = FS_MAKE, .ino = walk(&p, "d") },
				     .mode = S_IFIFO };
	uint64_t before;

	(void)state;
	make_many();
	before = inodes();
	copy_some(&copied);
	assert_true(slice() < SLICE_NAMES);
	assert_int_equal(ask_for(&p, &made, &make, sizeof(make), "late", NULL, 0), PENDING);
	host.now_ns += PATIENCE_MS * 1000000ull;
	assert_true(slice() < SLICE_NAMES);
	assert_int_equal(copied.status, -ETIMEDOUT);
	assert_int_equal(made.times, 1);
	assert_true(inodes() > before + 1);
	assert_int_equal(take(&p, "d", "s", "one"), -EAGAIN);
	assert_int_equal(script(&p, "no s/one; rmdir s"), 0);
	while (host.fsd->snapshot)
		assert_true(slice() < SLICE_NAMES);
	assert_int_equal(inodes(), before);
}

static void a_client_leaves_its_copy(void **state)
{
	struct wire_fs_mount mount = { .head.op = FS_MOUNT, .magic = FS_MAGIC,
				       .version = FS_VERSION };
	struct fsd_answer copied;
	uint64_t before;

	(void)state;
	make_many();
	before = inodes();
	copy_some(&copied);
	peer_join_only(&q, &host);
	assert_int_equal(ask(&q, &mount, sizeof(mount), NULL, NULL, 0), PENDING);
	peer_leave(&p);
	assert_int_equal(copied.status, -ECONNRESET);
	assert_int_equal(q.answer.times, 1);
	while (host.fsd->snapshot)
		assert_true(slice() < SLICE_NAMES);
	assert_int_equal(inodes(), before);
	peer_leave(&q);
	peer_join(&p, &host);
}

static void bytes_are_copied_in_slices(void **state)
{
	const uint64_t size = 24u << 20, slice_bytes = 3u << 20;
	struct fsd_answer copied;
	struct fsd_info before, after;

	(void)state;
	peer_leave(&p);
	host_fini(&host);
	host_init(&host, 4 * size, 4 * size);
	peer_join(&p, &host);
	assert_int_equal(script(&p, "mkdir d; mkdir s; file d/f"), 0);
	assert_int_equal(do_fallocate(&p, walk(&p, "d/f"), 0, 0, size), 0);
	begin(&p, &copied);
	while (!copied.times) {
		fsd_info(host.fsd, &before);
		fsd_work(host.fsd);
		fsd_info(host.fsd, &after);
		assert_true(after.bytes_used - before.bytes_used < slice_bytes);
	}
	assert_int_equal(copied.status, 0);
	assert_int_equal(attr_of("s/one/f").blocks, size / 512);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_copy_has_everything),
		TEST(a_copy_stays_as_it_is),
		TEST(the_place_of_copies_is_left_out),
		TEST(a_copy_that_fails_leaves_nothing),
		TEST(blocks_ahead_are_not_copied),
		TEST(other_clients_are_in_the_way),
		TEST(changes_wait_for_a_copy),
		TEST(a_copy_that_takes_too_long_is_removed_in_slices),
		TEST(a_client_leaves_its_copy),
		TEST(bytes_are_copied_in_slices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
