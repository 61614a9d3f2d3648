/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Validation of requests; attributes, including extended attributes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <cmocka.h>

#include "tests/fsd/host.h"

static struct host host;
static struct fsd_peer p;

static int setup(void **state)
{
	(void)state;
	host_init(&host, 1 << 20, 1 << 20);
	peer_join(&p, &host);
	return do_make(&p, FS_ROOT, "f", S_IFREG | 0600, FS_MAKE_OPEN, NULL);
}

static int teardown(void **state)
{
	(void)state;
	peer_leave(&p);
	host_fini(&host);
	return 0;
}

static const struct {
	const char *what, *name;
	int status;
} names[] = {
	{ "an empty name", "", -EINVAL },      { "the directory itself", ".", -EINVAL },
	{ "its parent", "..", -EINVAL },       { "a path", "a/b", -EINVAL },
	{ "three dots are a name", "...", 0 }, { "a hidden file", ".a", 0 },
};

static void names_are_checked(void **state)
{
	char longest[FS_NAME_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int status = do_make(&p, FS_ROOT, names[i].name, S_IFREG | 0600, 0, NULL);

		if (status != names[i].status)
			fail_msg("%s: status %d", names[i].what, status);
	}
	memset(longest, 'x', sizeof(longest));
	longest[FS_NAME_MAX + 1] = 0;
	assert_int_equal(do_lookup(&p, FS_ROOT, longest), -ENAMETOOLONG);
	longest[FS_NAME_MAX] = 0;
	assert_int_equal(do_make(&p, FS_ROOT, longest, S_IFREG | 0600, 0, NULL), 0);
	assert_int_equal(do_lookup(&p, FS_ROOT, longest), 0);
	assert_int_equal(do_rename(&p, FS_ROOT, "f", FS_ROOT, "..", 0), -EINVAL);
	assert_int_equal(do_rename(&p, FS_ROOT, "f", FS_ROOT, "", 0), -EINVAL);
	assert_int_equal(do_rename(&p, FS_ROOT, "f", FS_ROOT, "g", 4), -EINVAL);
}

static int send_bytes(const void *bytes, size_t length)
{
	char *message = malloc(length); /* exactly as long, so that the sanitizer finds overruns */

	memcpy(message, bytes, length);
	memset(&p.answer, 0, offsetof(struct fsd_answer, bytes));
	fsd_request(p.client, &p.answer, message, length);
	free(message);
	assert_int_equal(p.answer.times, 1);
	return p.answer.status;
}

static void lengths_are_checked(void **state)
{
	struct {
		struct wire_fs_rename rename;
		char strings[4];
	} m = { .rename = { .head = { .op = FS_RENAME, .ino = FS_ROOT, .name_length = 1 },
			    .parent = FS_ROOT,
			    .new_length = 1 },
		.strings = "fgxx" };
	struct wire_fs_head getattr = { .op = FS_GETATTR, .ino = FS_ROOT };

	(void)state;
	for (size_t length = 1; length < sizeof(m.rename) + 2; length++)
		assert_int_equal(send_bytes(&m, length), -EPROTO);
	assert_int_equal(send_bytes(&m, sizeof(m.rename) + 3), -EPROTO);
	m.rename.head.name_length = UINT32_MAX;
	assert_int_equal(send_bytes(&m, sizeof(m.rename) + 2), -EPROTO);
	m.rename.head.name_length = 1;
	m.rename.new_length = UINT32_MAX;
	assert_int_equal(send_bytes(&m, sizeof(m.rename) + 2), -EPROTO);
	m.rename.new_length = 1;
	assert_int_equal(send_bytes(&m, sizeof(m.rename) + 2), 0);
	getattr.name_length = 1;
	assert_int_equal(send_bytes(&getattr, sizeof(getattr)), -EPROTO);
}

static void numbers_are_checked(void **state)
{
	struct wire_fs_head head = { .op = 29 };

	(void)state;
	assert_int_equal(do_getattr(&p, 0), -ESTALE);
	assert_int_equal(do_getattr(&p, UINT64_MAX), -ESTALE);
	assert_int_equal(do_link(&p, 2, 12345, "x"), -ESTALE);
	assert_int_equal(do_link(&p, 2, 2, "x"), -ENOTDIR);
	assert_int_equal(do_rename(&p, FS_ROOT, "f", 12345, "x", 0), -ESTALE);
	assert_int_equal(do_lookup(&p, 2, "x"), -ENOTDIR);
	assert_int_equal(do_map(&p, FS_ROOT, 0, 1), -EISDIR);
	for (; head.op < 1000; head.op++)
		if (head.op < FS_CLOSE || head.op > FS_SNAPSHOT)
			assert_int_equal(send_bytes(&head, sizeof(head)), -EOPNOTSUPP);
	head.op = 0;
	assert_int_equal(send_bytes(&head, sizeof(head)), -EOPNOTSUPP);
}

static void modes_are_checked(void **state)
{
	(void)state;
	assert_int_equal(do_make(&p, FS_ROOT, "a", 0600, 0, NULL), -EINVAL);
	assert_int_equal(do_make(&p, FS_ROOT, "a", S_IFREG | 010000000, 0, NULL), -EINVAL);
	assert_int_equal(do_make(&p, FS_ROOT, "a", S_IFDIR | 0700, FS_MAKE_OPEN, NULL), -EINVAL);
	assert_int_equal(do_make(&p, FS_ROOT, "a", S_IFREG | 0600, 4, NULL), -EINVAL);
	assert_int_equal(do_make(&p, FS_ROOT, "a", S_IFREG | 0600, 0, "target"), -ENAMETOOLONG);
	assert_int_equal(do_make(&p, FS_ROOT, "a", S_IFIFO | 0600, 0, NULL), 0);
	assert_int_equal(do_make(&p, FS_ROOT, "b", S_IFSOCK | 0600, 0, NULL), 0);
	assert_int_equal(do_make(&p, FS_ROOT, "c", S_IFBLK | 0600, 0, NULL), 0);
}

static void attributes_are_set(void **state)
{
	struct wire_fs_setattr set = {
		.head = { .op = FS_SETATTR, .ino = 2 },
		.mask = FS_SET_MODE | FS_SET_UID | FS_SET_GID | FS_SET_ATIME | FS_SET_MTIME,
		.mode = S_IFDIR | 04711, /* the type must not change */
		.uid = 1,
		.gid = 2,
		.atime = { 123, 456, 0 },
		.mtime = { -5, 999999999, 0 },
	};
	struct wire_fs_attr got;

	(void)state;
	assert_int_equal(ask(&p, &set, sizeof(set), NULL, NULL, 0), 0);
	got = attr(&p);
	assert_int_equal(got.mode, S_IFREG | 04711);
	assert_int_equal(got.uid, 1);
	assert_int_equal(got.gid, 2);
	assert_int_equal(got.atime.sec, 123);
	assert_int_equal(got.atime.nsec, 456);
	assert_int_equal(got.mtime.sec, -5);
	assert_int_equal(got.mtime.nsec, 999999999);
	set.mtime.nsec++;
	assert_int_equal(ask(&p, &set, sizeof(set), NULL, NULL, 0), -EINVAL);
	set.mask = 1024;
	assert_int_equal(ask(&p, &set, sizeof(set), NULL, NULL, 0), -EINVAL);
	set.mask = FS_SET_ATIME_NOW | FS_SET_MTIME_NOW;
	assert_int_equal(ask(&p, &set, sizeof(set), NULL, NULL, 0), 0);
	assert_int_equal(attr(&p).atime.sec, 1);
}

static void a_clients_ctime_is_taken_if_it_is_later(void **state)
{
	const struct wire_fs_time later = { attr(&p).ctime.sec + 5, 7, 0 };
	struct wire_fs_setattr set = {
		.head = { .op = FS_SETATTR, .ino = 2 },
		.mask = FS_SET_MODE | FS_SET_CTIME,
		.ctime = later,
	};

	(void)state;
	assert_int_equal(ask(&p, &set, sizeof(set), NULL, NULL, 0), 0);
	assert_int_equal(attr(&p).ctime.sec, later.sec);
	assert_int_equal(attr(&p).ctime.nsec, later.nsec);
	set.ctime.sec--;
	assert_int_equal(ask(&p, &set, sizeof(set), NULL, NULL, 0), 0);
	assert_int_equal(attr(&p).ctime.sec, later.sec);
	assert_true(attr(&p).ctime.nsec > later.nsec);
	set.ctime.nsec = 1000000000;
	assert_int_equal(ask(&p, &set, sizeof(set), NULL, NULL, 0), -EINVAL);
}

static void a_commit_takes_attributes_along(void **state)
{
	struct wire_fs_setattr set = {
		.head = { .op = FS_COMMIT, .ino = 2 },
		.mask = FS_SET_MODE | FS_SET_MTIME,
		.mode = 0604,
		.size = 9,
		.mtime = { 5, 6, 0 },
	};
	const uint64_t change = attr(&p).change;

	(void)state;
	assert_int_equal(ask(&p, &set, sizeof(set), NULL, NULL, 0), 0);
	assert_int_equal(attr(&p).mode, S_IFREG | 0604);
	assert_int_equal(attr(&p).mtime.sec, 5);
	assert_int_equal(attr(&p).size, 9);
	assert_int_equal(attr(&p).change, change + 1);
	set.size = 8;
	assert_int_equal(ask(&p, &set, sizeof(set), NULL, NULL, 0), 0);
	assert_int_equal(attr(&p).size, 9);
	set.mask |= FS_SET_SIZE;
	assert_int_equal(ask(&p, &set, sizeof(set), NULL, NULL, 0), -EINVAL);
}

static int set_xattr(const char *name, const void *value, size_t length, uint32_t flags)
{
	struct wire_fs_xattr x = { .head = { .op = FS_SETXATTR, .ino = 2 },
				   .flags = flags,
				   .value_length = length };

	return ask(&p, &x, sizeof(x), name, value, length);
}

static int name_xattr(enum wire_fs_op op, const char *name)
{
	struct wire_fs_head head = { .op = op, .ino = 2 };

	return ask(&p, &head, sizeof(head), name, NULL, 0);
}

static void extended_attributes_are_kept(void **state)
{
	static const char big[FS_XATTR_MAX + 1];

	(void)state;
	assert_int_equal(do_getattr(&p, 2), 0);
	assert_int_equal(attr(&p).flags, FS_ATTR_PLAIN);
	assert_int_equal(name_xattr(FS_GETXATTR, "user.a"), -ENODATA);
	assert_int_equal(set_xattr("user.a", "1", 1, XATTR_REPLACE), -ENODATA);
	assert_int_equal(set_xattr("user.a", "1", 1, XATTR_CREATE), 0);
	assert_int_equal(set_xattr("user.a", "2", 1, XATTR_CREATE), -EEXIST);
	assert_int_equal(set_xattr("user.a", "33", 2, XATTR_REPLACE), 0);
	assert_int_equal(set_xattr("user.b", NULL, 0, 0), 0);
	assert_int_equal(name_xattr(FS_GETXATTR, "user.a"), 0);
	assert_int_equal(p.answer.length, sizeof(struct wire_fs_reply) + 2);
	assert_memory_equal(body(&p), "33", 2);
	assert_int_equal(name_xattr(FS_LISTXATTR, NULL), 0);
	assert_int_equal(p.answer.length, sizeof(struct wire_fs_reply) + 14);
	assert_memory_equal(body(&p), "user.a\0user.b", 14);
	assert_int_equal(do_getattr(&p, 2), 0);
	assert_int_equal(attr(&p).flags, 0);
	assert_int_equal(name_xattr(FS_REMOVEXATTR, "user.a"), 0);
	assert_int_equal(name_xattr(FS_REMOVEXATTR, "user.a"), -ENODATA);
	assert_int_equal(set_xattr("user.big", big, FS_XATTR_MAX, 0), 0);
	assert_int_equal(set_xattr("user.big", big, FS_XATTR_MAX + 1, 0), -E2BIG);
	assert_int_equal(set_xattr("system.posix_acl_access", "x", 1, 0), -EOPNOTSUPP);
	assert_int_equal(set_xattr("user", "x", 1, 0), -EOPNOTSUPP);
	assert_int_equal(set_xattr("user.", "x", 1, 0), -EINVAL);
	assert_int_equal(set_xattr("", "x", 1, 0), -EINVAL);
	assert_int_equal(set_xattr("user.c", "x", 1, 4), -EINVAL);
}

static void a_list_of_extended_attributes_stays_within_its_bound(void **state)
{
	char name[FS_NAME_MAX + 1];
	int rc = 0;

	(void)state;
	snprintf(name, sizeof(name), "user.%0*d", FS_NAME_MAX - 5, 0);
	for (unsigned int i = 0; !rc; i++) {
		name[5] = 'a' + i;
		rc = set_xattr(name, "x", 1, 0);
	}
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(name_xattr(FS_LISTXATTR, NULL), 0);
	assert_in_range(p.answer.length, FS_XATTR_MAX - FS_NAME_MAX, FS_XATTR_MAX + 8);
}

static void a_request_without_a_call_is_done_and_not_answered(void **state)
{
	struct wire_fs_head head = { .op = FS_UNLINK, .ino = FS_ROOT, .name_length = 1 };
	char message[sizeof(head) + 1];

	(void)state;
	memcpy(message, &head, sizeof(head));
	message[sizeof(head)] = 'f';
	fsd_request(p.client, NULL, message, sizeof(message));
	assert_int_equal(do_lookup(&p, FS_ROOT, "f"), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_are_checked),
		TEST(lengths_are_checked),
		TEST(numbers_are_checked),
		TEST(modes_are_checked),
		TEST(attributes_are_set),
		TEST(a_clients_ctime_is_taken_if_it_is_later),
		TEST(a_commit_takes_attributes_along),
		TEST(extended_attributes_are_kept),
		TEST(a_list_of_extended_attributes_stays_within_its_bound),
		TEST(a_request_without_a_call_is_done_and_not_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
