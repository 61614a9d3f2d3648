/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names: creation, links, removal, renaming, and listing during changes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "tests/fsd/host.h"

static const struct {
	const char *name, *script;
	int status;
} cases[] = {
	{ "a file is found by its name", "file a; is a; nlink a 1", 0 },
	{ "a name is made once", "file a; file a", -EEXIST },
	{ "a directory counts itself and its parent's entry", "mkdir a; nlink a 2", 0 },
	{ "a directory counts its subdirectories", "mkdir a; mkdir a/b; mkdir a/c; nlink a 4", 0 },
	{ "files don't count as links of a directory", "mkdir a; file a/b; nlink a 2", 0 },
	{ "a file is no directory", "file a; file a/b", -ENOTDIR },
	{ "a hard link is the same file", "file a; link a b; same a b; nlink a 2", 0 },
	{ "a hard link keeps the file when the first name goes",
	  "file a; link a b; unlink a; no a; is b; nlink b 1", 0 },
	{ "a hard link doesn't replace", "file a; file b; link a b", -EEXIST },
	{ "a directory has no hard links", "mkdir a; link a b", -EPERM },
	{ "a symbolic link may be linked", "symlink x a; link a b; nlink a 2", 0 },
	{ "unlink wants a name", "unlink a", -ENOENT },
	{ "unlink spares directories", "mkdir a; unlink a", -EISDIR },
	{ "rmdir spares files", "file a; rmdir a", -ENOTDIR },
	{ "rmdir spares what is not empty", "mkdir a; file a/b; rmdir a", -ENOTEMPTY },
	{ "rmdir removes what has become empty",
	  "mkdir a; file a/b; unlink a/b; rmdir a; no a; list . 2", 0 },
	{ "rmdir uncounts the parent's link", "mkdir a; mkdir a/b; rmdir a/b; nlink a 2", 0 },

	{ "rename wants a name", "rename a b", -ENOENT },
	{ "rename moves a file", "file a; mkdir d; rename a d/b; no a; is d/b; list d 3", 0 },
	{ "rename keeps the inode", "file a; link a k; rename a b; same b k", 0 },
	{ "rename replaces a file", "file a; file b; link a k; rename a b; same b k; no a", 0 },
	{ "rename to another name of the same file does nothing",
	  "file a; link a b; rename a b; same a b; nlink a 2", 0 },
	{ "rename onto itself does nothing", "file a; rename a a; is a", 0 },
	{ "rename replaces an empty directory",
	  "mkdir a; mkdir a/x; mkdir b; rename a b; is b/x; no a; nlink b 3; list . 3", 0 },
	{ "rename spares a directory that is not empty", "mkdir a; mkdir b; file b/x; rename a b",
	  -ENOTEMPTY },
	{ "rename doesn't replace a directory by a file", "file a; mkdir b; rename a b", -EISDIR },
	{ "rename doesn't replace a file by a directory", "mkdir a; file b; rename a b", -ENOTDIR },
	{ "rename moves the link that .. is",
	  "mkdir a; mkdir b; mkdir a/x; rename a/x b/x; nlink a 2; nlink b 3", 0 },
	{ "a directory doesn't go into itself", "mkdir a; rename a a/b", -EINVAL },
	{ "a directory doesn't go below itself", "mkdir a; mkdir a/b; rename a a/b/c", -EINVAL },
	{ "a directory goes to where its child was",
	  "mkdir a; mkdir a/b; mkdir a/b/c; rename a/b/c a/c; rename a/b a/c/b; is a/c/b", 0 },
	{ "rename doesn't replace what it comes from", "mkdir a; mkdir a/b; rename a/b a",
	  -ENOTEMPTY },

	{ "noreplace renames", "file a; noreplace a b; is b; no a", 0 },
	{ "noreplace doesn't replace", "file a; file b; noreplace a b", -EEXIST },
	{ "exchange swaps", "file a; mkdir b; file b/x; exchange a b; is a/x; nlink b 1", 0 },
	{ "exchange swaps across directories",
	  "mkdir d; file d/a; mkdir b; exchange d/a b; nlink d 3; nlink b 1; list . 4", 0 },
	{ "exchange wants both", "file a; exchange a b", -ENOENT },
	{ "exchange doesn't put a directory into itself", "mkdir a; mkdir a/b; exchange a a/b",
	  -EINVAL },
	{ "exchange doesn't do so the other way round", "mkdir a; mkdir a/b; exchange a/b a",
	  -EINVAL },
};

static void names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct host host;
		struct fsd_peer p;
		int status;

		host_init(&host, 1 << 20, 1 << 20);
		peer_join(&p, &host);
		status = script(&p, cases[i].script);
		if (status != cases[i].status)
			fail_msg("%s: status %d", cases[i].name, status);
		peer_leave(&p);
		host_fini(&host);
	}
}

static struct host host;
static struct fsd_peer p;

static int setup(void **state)
{
	(void)state;
	host_init(&host, 4 << 20, 1 << 20);
	peer_join(&p, &host);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	peer_leave(&p);
	host_fini(&host);
	return 0;
}

static void a_listing_goes_on_while_names_go(void **state)
{
	struct wire_fs_readdir readdir = { .head = { .op = FS_READDIR, .ino = FS_ROOT } };
	unsigned int seen = 0;
	char name[16];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		assert_int_equal(do_make(&p, FS_ROOT, name, S_IFREG | 0600, 0, NULL), 0);
	}
	/* Like rm -r: remove everything that a listing returns, then list again. */
	for (;;) {
		size_t at = sizeof(struct wire_fs_reply), length;
		struct fsd_answer listing;

		assert_int_equal(ask_for(&p, &listing, &readdir, sizeof(readdir), NULL, NULL, 0),
				 0);
		length = listing.length;
		if (length == at)
			break;
		while (at < length) {
			struct wire_fs_dirent entry;

			memcpy(&entry, listing.bytes + at, sizeof(entry));
			readdir.cookie = entry.cookie;
			if (listing.bytes[at + sizeof(entry)] == 'f') {
				snprintf(name, sizeof(name), "%.*s", (int)entry.name_length,
					 (char *)listing.bytes + at + sizeof(entry));
				assert_int_equal(do_unlink(&p, FS_ROOT, name), 0);
				seen++;
			}
			at += sizeof(entry) + (entry.name_length + 7) / 8 * 8;
		}
	}
	assert_int_equal(seen, 1000);
	assert_int_equal(script(&p, "list . 2"), 0);
}

static void a_removed_directory_takes_no_names(void **state)
{
	uint64_t dir;

	(void)state;
	assert_int_equal(script(&p, "mkdir a; mkdir a/b; open a/b"), 0);
	dir = walk(&p, "a/b");
	assert_int_equal(script(&p, "rmdir a/b; rmdir a; file f"), 0);
	assert_int_equal(do_make(&p, dir, "x", S_IFREG | 0600, 0, NULL), -ENOENT);
	assert_int_equal(do_rename(&p, FS_ROOT, "f", dir, "f", 0), -ENOENT);
	assert_int_equal(do_getattr(&p, dir), 0);
	assert_int_equal(attr(&p).nlink, 0);
	assert_int_equal(do_release(&p, dir), 0);
	assert_int_equal(do_getattr(&p, dir), -ESTALE);
}

static void a_new_file_belongs_to_the_caller(void **state)
{
	(void)state;
	p.uid = 12;
	p.gid = 34;
	assert_int_equal(do_make(&p, FS_ROOT, "a", S_IFREG | 0640, 0, NULL), 0);
	assert_int_equal(attr(&p).uid, 12);
	assert_int_equal(attr(&p).gid, 34);
	assert_int_equal(attr(&p).mode, S_IFREG | 0640);
}

static void a_setgid_directory_hands_its_group_down(void **state)
{
	(void)state;
	p.gid = 34;
	assert_int_equal(script(&p, "mkdir d; chmod 2775 d"), 0);
	p.gid = 56;
	assert_int_equal(script(&p, "file d/f; mkdir d/d"), 0);
	walk(&p, "d/f");
	assert_int_equal(attr(&p).gid, 34);
	assert_int_equal(attr(&p).mode, S_IFREG | 0644);
	walk(&p, "d/d");
	assert_int_equal(attr(&p).gid, 34);
	assert_int_equal(attr(&p).mode, S_IFDIR | S_ISGID | 0755);
}

static void a_symbolic_link_is_read_back(void **state)
{
	struct wire_fs_head head = { .op = FS_READLINK };

	(void)state;
	assert_int_equal(script(&p, "symlink to/somewhere a"), 0);
	head.ino = walk(&p, "a");
	assert_int_equal(ask(&p, &head, sizeof(head), NULL, NULL, 0), 0);
	assert_int_equal(p.answer.length, sizeof(struct wire_fs_reply) + 12);
	assert_memory_equal(body(&p), "to/somewhere", 12);
	head.ino = FS_ROOT;
	assert_int_equal(ask(&p, &head, sizeof(head), NULL, NULL, 0), -EINVAL);
	assert_int_equal(do_make(&p, FS_ROOT, "b", S_IFLNK | 0777, 0, ""), -ENOENT);
}

static void an_open_of_an_existing_name_is_left_to_the_kernel(void **state)
{
	(void)state;
	assert_int_equal(do_make(&p, FS_ROOT, "a", S_IFREG | 0600, FS_MAKE_OPEN, NULL), 0);
	assert_int_equal(do_make(&p, FS_ROOT, "a", S_IFREG | 0600, FS_MAKE_OPEN, NULL), -ESTALE);
	assert_int_equal(do_make(&p, FS_ROOT, "a", S_IFREG | 0600, FS_MAKE_OPEN | FS_MAKE_EXCLUSIVE,
				 NULL),
			 -EEXIST);
}

static void names_without_end_are_refused_in_time(void **state)
{
	char name[16];
	int rc = 0, made = 0;

	(void)state;
	for (; !rc && made < 1000000; made++) {
		snprintf(name, sizeof(name), "%d", made);
		rc = do_make(&p, FS_ROOT, name, S_IFREG | 0600, 0, NULL);
	}
	assert_int_equal(rc, -ENOSPC);
	assert_in_range(made, 10000, 200000);
	assert_int_equal(do_unlink(&p, FS_ROOT, "17"), 0);
	assert_int_equal(do_make(&p, FS_ROOT, "17", S_IFREG | 0600, 0, NULL), 0);
}

static void times_show_changes(void **state)
{
	struct wire_fs_attr before, after;

	(void)state;
	script(&p, "mkdir d");
	walk(&p, "d");
	before = attr(&p);
	script(&p, "file d/f");
	walk(&p, "d");
	after = attr(&p);
	assert_true(after.mtime.nsec > before.mtime.nsec);
	assert_true(after.ctime.nsec > before.ctime.nsec);
	assert_int_equal(after.atime.nsec, before.atime.nsec);
	assert_true(after.change > before.change);
	walk(&p, "d/f");
	before = attr(&p);
	script(&p, "link d/f g");
	walk(&p, "g");
	after = attr(&p);
	assert_int_equal(after.mtime.nsec, before.mtime.nsec);
	assert_true(after.ctime.nsec > before.ctime.nsec);
}

/* A client treats a reply with a smaller ctime as older. */
static void a_clock_that_steps_back_hides_no_change(void **state)
{
	struct wire_fs_attr before, after;

	(void)state;
	host.now_ns = 2000000000;
	script(&p, "file f");
	walk(&p, "f");
	before = attr(&p);
	host.now_ns = 1000000000;
	script(&p, "link f g");
	walk(&p, "f");
	after = attr(&p);
	assert_int_equal(after.ctime.sec, before.ctime.sec);
	assert_true(after.ctime.nsec > before.ctime.nsec);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void a_change_replies_what_it_changed(void **state)
{
	uint64_t dir, file;

	(void)state;
	assert_int_equal(do_make(&p, FS_ROOT, "d", S_IFDIR | 0700, 0, NULL), 0);
	dir = attr(&p).ino;
	assert_int_equal(attr_at(&p, 1).ino, FS_ROOT);
	assert_int_equal(attr_at(&p, 1).nlink, 3);
	assert_int_equal(do_make(&p, dir, "f", S_IFREG | 0600, 0, NULL), 0);
	file = attr(&p).ino;
	assert_int_equal(attr_at(&p, 1).size, 1);
	assert_int_equal(do_link(&p, file, FS_ROOT, "g"), 0);
	assert_int_equal(attr(&p).nlink, 2);
	assert_int_equal(attr_at(&p, 1).size, 2);
	assert_int_equal(do_unlink(&p, dir, "f"), 0);
	assert_int_equal(attr(&p).size, 0);
	assert_int_equal(attr_at(&p, 1).ino, file);
	assert_int_equal(attr_at(&p, 1).nlink, 1);
	assert_int_equal(do_unlink(&p, FS_ROOT, "g"), 0);
	assert_int_equal(attr_at(&p, 1).ino, file);
	assert_int_equal(attr_at(&p, 1).mode, 0); /* gone */
	assert_int_equal(do_rmdir(&p, FS_ROOT, "d"), 0);
	assert_int_equal(attr(&p).nlink, 2);
	assert_int_equal(attr_at(&p, 1).ino, dir);
}

static void a_rename_replies_all_four(void **state)
{
	uint64_t dir, a, b;

	(void)state;
	assert_int_equal(do_make(&p, FS_ROOT, "d", S_IFDIR | 0700, 0, NULL), 0);
	dir = attr(&p).ino;
	assert_int_equal(do_make(&p, FS_ROOT, "a", S_IFREG | 0600, 0, NULL), 0);
	a = attr(&p).ino;
	assert_int_equal(do_make(&p, dir, "b", S_IFREG | 0600, FS_MAKE_OPEN, NULL), 0);
	b = attr(&p).ino;
	assert_int_equal(do_rename(&p, FS_ROOT, "a", dir, "b", 0), 0);
	assert_int_equal(attr_at(&p, 0).ino, FS_ROOT);
	assert_int_equal(attr_at(&p, 1).ino, dir);
	assert_int_equal(attr_at(&p, 2).ino, a);
	assert_int_equal(attr_at(&p, 3).ino, b);
	assert_int_equal(attr_at(&p, 3).nlink, 0);
	assert_int_equal(attr_at(&p, 3).mode, S_IFREG | 0600); /* still open */
	assert_int_equal(do_rename(&p, dir, "b", FS_ROOT, "c", 0), 0);
	assert_int_equal(attr_at(&p, 2).ino, a);
	assert_int_equal(attr_at(&p, 3).ino, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		TEST(a_listing_goes_on_while_names_go),
		TEST(a_removed_directory_takes_no_names),
		TEST(a_new_file_belongs_to_the_caller),
		TEST(a_setgid_directory_hands_its_group_down),
		TEST(a_symbolic_link_is_read_back),
		TEST(an_open_of_an_existing_name_is_left_to_the_kernel),
		TEST(names_without_end_are_refused_in_time),
		TEST(a_change_replies_what_it_changed),
		TEST(a_rename_replies_all_four),
		TEST(times_show_changes),
		TEST(a_clock_that_steps_back_hides_no_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
