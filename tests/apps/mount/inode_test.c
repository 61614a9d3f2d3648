/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: mount inode; suites: fs */
/* Inodes of a mount whose donor errs, is late, or cannot be reached for a while. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "apps/mount/fuse/ops.h"

static struct mount m;
static const struct mount_options options;

static int setup(void **state)
{
	(void)state;
	memset(&m, 0, sizeof(m));
	m.options = &options;
	assert_int_equal(names_init(&m.names), 0);
	assert_int_equal(deferred_queue_init(&m.deferred), 0);
	return inodes_init(&m.inodes);
}

static int teardown(void **state)
{
	(void)state;
	inodes_fini(&m.inodes);
	deferred_queue_fini(&m.deferred);
	assert_int_equal(m.names.table.nr, 0);
	names_fini(&m.names);
	return 0;
}

static struct inode *add_inode(uint32_t mode, uint64_t change)
{
	const struct wire_fs_attr attr = { .ino = 5, .mode = mode, .change = change };
	struct inode *inode = inode_add(&m, &attr, 0);

	assert_non_null(inode);
	return inode;
}

static void names_end_with_their_directory_whatever_the_donor_says_of_it(void **state)
{
	struct inode *dir = add_inode(S_IFDIR, 1);

	(void)state;
	atomic_store(&m.share.alone_ns, UINT64_MAX);
	assert_true(names_learn(dir, names_note_question(dir), 0, "a", 7));
	assert_ptr_equal(add_inode(S_IFREG, 2), dir);
	inode_put(dir, 2);
	assert_int_equal(m.names.table.nr, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_end_with_their_directory_whatever_the_donor_says_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
