/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* FS_CHECK finds no fault in a sound state, and each kind of fault in a damaged one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "fsd/inode.h"
#include "tests/fsd/host.h"

#define MANY 5000

static struct host host;
static struct fsd_peer p;

static int setup(void **state)
{
	(void)state;
	host_init(&host, 1 << 20, 1 << 20);
	peer_join(&p, &host);
	assert_int_equal(script(&p, "mkdir a; mkdir a/b; file a/f; link a/f a/b/g; file h; "
				    "symlink h s; open a/f"), 0);
	return do_write(&p, walk(&p, "a/f"), 8192, "bytes", 5);
}

static int teardown(void **state)
{
	(void)state;
	peer_leave(&p);
	host_fini(&host);
	return 0;
}

/* The sums of all parts; the first fault. */
static struct wire_fs_checked check_all(void)
{
	struct wire_fs_checked all = { .cursor = 0 }, part;
	unsigned int parts = 0;

	do {
		struct wire_fs_check check = { .head.op = FS_CHECK, .cursor = all.cursor };

		assert_int_equal(ask(&p, &check, sizeof(check), NULL, NULL, 0), 0);
		memcpy(&part, p.answer.bytes, sizeof(part));
		assert_int_equal(p.answer.length, sizeof(part));
		all.cursor = part.cursor;
		all.total = part.total;
		all.unused = part.unused;
		all.inodes += part.inodes;
		all.names += part.names;
		all.file_names += part.file_names;
		all.file_links += part.file_links;
		all.mapped += part.mapped;
		if (part.faults && !all.faults)
			all.fault = part.fault;
		all.faults += part.faults;
		assert_true(++parts < MANY);
	} while (all.cursor);
	return all;
}

static void check_sound(uint64_t inodes, uint64_t names)
{
	struct wire_fs_checked all = check_all();

	assert_int_equal(all.faults ? all.fault : FS_FAULT_NONE, FS_FAULT_NONE);
	assert_int_equal(all.inodes, inodes);
	assert_int_equal(all.names, names);
	assert_int_equal(all.file_names, all.file_links);
	assert_int_equal(all.mapped + all.unused, all.total);
}

static void a_sound_state_has_no_fault(void **state)
{
	(void)state;
	check_sound(6, 6);
	assert_true(check_all().mapped);
	assert_int_equal(script(&p, "unlink a/f; unlink a/b/g"), 0); /* open still */
	check_sound(6, 4);
	assert_int_equal(script(&p, "open a/b; rmdir a/b"), 0);
	check_sound(6, 3);
}

static void many_parts_cover_all(void **state)
{
	char name[16];

	(void)state;
	for (unsigned int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		assert_int_equal(do_make(&p, walk(&p, "a/b"), name, S_IFREG | 0600, 0, NULL), 0);
	}
	check_sound(6 + MANY, 6 + MANY);
}

/* The table of inodes doubles in the middle. */
static void growth_between_parts_hides_nothing(void **state)
{
	struct wire_fs_check check = { .head.op = FS_CHECK };
	struct wire_fs_checked part;
	struct fsd_inode *victim;
	uint64_t faults;
	char name[16];

	(void)state;
	for (unsigned int round = 0; round < 3; round++) {
		faults = 0;
		for (unsigned int i = 0; i < MANY; i++) {
			snprintf(name, sizeof(name), "r%ui%u", round, i);
			assert_int_equal(do_make(&p, walk(&p, "a"), name, S_IFREG | 0600, 0, NULL),
					 0);
		}
		victim = fsd_inode_find(host.fsd, walk(&p, "h"));
		victim->opens++;
		check.cursor = 0;
		for (unsigned int n = 0;; n++) {
			assert_int_equal(ask(&p, &check, sizeof(check), NULL, NULL, 0), 0);
			memcpy(&part, p.answer.bytes, sizeof(part));
			faults += part.faults;
			check.cursor = part.cursor;
			if (!part.cursor)
				break;
			for (unsigned int i = 0; i < 3 * MANY / 2 && n == round; i++) {
				snprintf(name, sizeof(name), "g%ui%u", round, i);
				assert_int_equal(do_make(&p, FS_ROOT, name, S_IFREG | 0600, 0,
							 NULL), 0);
			}
		}
		victim->opens--;
		assert_true(faults >= 1);
	}
}

static struct fsd_inode *inode_at(const char *path)
{
	return fsd_inode_find(host.fsd, walk(&p, path));
}

static void check_fault(enum wire_fs_fault fault)
{
	struct wire_fs_checked all = check_all();

	assert_true(all.faults);
	assert_int_equal(all.fault, fault);
}

static void damaged_names_are_found(void **state)
{
	struct fsd_inode *a = inode_at("a");
	struct fsd_inode *was = a->dir.slot[0].name->inode;

	(void)state;
	a->dir.names++;
	check_fault(FS_FAULT_NAMES);
	a->dir.names--;
	a->dir.slot[1].cookie = a->dir.slot[0].cookie;
	check_fault(FS_FAULT_NAMES);
	a->dir.slot[1].cookie = a->dir.slot[1].name->cookie;
	a->dir.slot[0].name->dir = was;
	check_fault(FS_FAULT_NAMES);
	a->dir.slot[0].name->dir = a;
	check_sound(6, 6);
}

static void damaged_links_are_found(void **state)
{
	struct fsd_inode *a = inode_at("a"), *f = inode_at("a/f");
	struct wire_fs_checked all;

	(void)state;
	a->nlink++;
	check_fault(FS_FAULT_LINKS);
	a->nlink--;
	f->nlink++;
	all = check_all();
	assert_int_equal(all.file_links, all.file_names + 1);
	f->nlink--;
}

static void a_directory_without_a_way_up_is_found(void **state)
{
	struct fsd_inode *a = inode_at("a"), *b = inode_at("a/b");
	struct wire_fs_checked all;

	(void)state;
	a->dir.parent = b;
	all = check_all();
	assert_true(all.faults >= 2); /* of both, and of the root's name */
	a->dir.parent = host.fsd->root;
	check_sound(6, 6);
}

static void damaged_extents_and_sums_are_found(void **state)
{
	struct fsd_inode *f = inode_at("a/f");
	struct wire_fs_checked all;

	(void)state;
	f->map.bytes += FS_BLOCK;
	check_fault(FS_FAULT_EXTENTS);
	f->map.bytes -= FS_BLOCK;
	host.fsd->space.free -= FS_BLOCK;
	all = check_all();
	assert_int_equal(all.mapped + all.unused + FS_BLOCK, all.total);
	host.fsd->space.free += FS_BLOCK;
}

static void damaged_opens_are_found(void **state)
{
	struct fsd_inode *f = inode_at("a/f");

	(void)state;
	f->opens--;
	check_fault(FS_FAULT_OPENS);
	f->opens++;
	check_sound(6, 6);
}

static void a_check_changes_nothing(void **state)
{
	struct wire_fs_check check = { .head.op = FS_CHECK, .cursor = 12345 };

	(void)state;
	assert_false(fsd_may_change(&check, sizeof(check)));
	assert_int_equal(ask(&p, &check, sizeof(check), NULL, NULL, 0), 0); /* any cursor */
	check.cursor = UINT64_MAX;
	assert_int_equal(ask(&p, &check, sizeof(check), NULL, NULL, 0), 0);
	assert_int_equal(ask(&p, &check, sizeof(check), "name", NULL, 0), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_sound_state_has_no_fault, setup, teardown),
		cmocka_unit_test_setup_teardown(many_parts_cover_all, setup, teardown),
		cmocka_unit_test_setup_teardown(growth_between_parts_hides_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(damaged_names_are_found, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_links_are_found, setup, teardown),
		cmocka_unit_test_setup_teardown(a_directory_without_a_way_up_is_found, setup,
						teardown),
		cmocka_unit_test_setup_teardown(damaged_extents_and_sums_are_found, setup,
						teardown),
		cmocka_unit_test_setup_teardown(damaged_opens_are_found, setup, teardown),
		cmocka_unit_test_setup_teardown(a_check_changes_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
