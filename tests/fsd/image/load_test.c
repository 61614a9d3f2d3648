/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Images that no server saves: each is refused. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "fsd/image/format.h"
#include "fsd/image/image.h"
#include "fsd/lock.h"

#define BYTES (4u << 20)

enum { ROOT = FS_ROOT, DIR, BELOW, REMOVED, FILE_INO, INODES = FILE_INO };

/* A tree: the root has "a" and "f", "a" has "b"; an open directory has no name. */
struct image_plan {
	uint64_t parent[INODES + 1];
	uint64_t names[INODES + 1][3]; /* inodes that each directory names; 0: no more */
	uint32_t nlink[INODES + 1];
	uint64_t calls[2]; /* that wait for a lock */
	bool has_spare; /* of the lock */
};

static const struct image_plan good = {
	.parent = { 0, ROOT, ROOT, DIR, REMOVED, 0 },
	.names = { { 0 }, { DIR, FILE_INO }, { BELOW } },
	.nlink = { 0, 3, 3, 2, 0, 1 },
	.calls = { 1, 2 },
};

static char calls[3];

static int take_chunk(void *arg, uint64_t length, struct wire_fs_chunk *chunk, void **memory)
{
	(void)arg;
	*chunk = (struct wire_fs_chunk){ .length = length };
	*memory = NULL;
	return 0;
}

static uint64_t room(void *arg)
{
	(void)arg;
	return BYTES;
}

static void move(void *arg, const struct fsd_data *piece)
{
	(void)arg;
	(void)piece;
}

static void wall(void *arg, struct wire_fs_time *now)
{
	(void)arg;
	*now = (struct wire_fs_time){ .sec = 1 };
}

static uint64_t number(const void *call)
{
	return (uint64_t)((const char *)call - calls);
}

static void *find_call(void *arg, uint64_t client, uint64_t call)
{
	(void)arg;
	(void)client;
	return call == 1 || call == 2 ? &calls[call] : NULL;
}

static void put_names(struct fsd_bytes *image, const uint64_t *names)
{
	for (uint32_t i = 0; names[i]; i++) {
		const char text = (char)('a' + i);

		fsd_bytes_put(image,
			      &(struct image_name){ .cookie = 3 + i, .ino = names[i], .length = 1 },
			      sizeof(struct image_name));
		fsd_bytes_put(image, &text, 1);
	}
}

static void put_inode(struct fsd_bytes *image, const struct image_plan *plan, uint64_t ino)
{
	struct image_inode inode = {
		.ino = ino,
		.mode = ino == FILE_INO ? S_IFREG | 0600 : S_IFDIR | 0700,
		.nlink = plan->nlink[ino],
		.parent = plan->parent[ino],
		.next_cookie = ino == FILE_INO ? 0 : 9,
	};

	while (plan->names[ino][inode.parts])
		inode.parts++;
	fsd_bytes_put(image, &inode, sizeof(inode));
	put_names(image, plan->names[ino]);
}

/* A client with a file and a directory open, a lock, and two requests that wait for it. */
static void put_client(struct fsd_bytes *image, const struct image_plan *plan)
{
	const struct image_handle open[] = { { FILE_INO, 1, 0 }, { REMOVED, 1, 0 } };
	const struct image_client client = { .id = 1, .is_mounted = 1, .handles = 2 };
	const struct image_locks locks = { .ino = FILE_INO, .held = 1, .waiting = 2 };
	struct image_lock lock = { .client = 1, .end = UINT64_MAX, .type = F_WRLCK,
				   .has_spare = plan->has_spare };

	fsd_bytes_put(image, &client, sizeof(client));
	fsd_bytes_put(image, open, sizeof(open));
	fsd_bytes_put(image, &locks, sizeof(locks));
	fsd_bytes_put(image, &lock, sizeof(lock));
	for (unsigned int i = 0; i < 2; i++) {
		lock.owner = i + 1;
		lock.call = plan->calls[i];
		fsd_bytes_put(image, &lock, sizeof(lock));
	}
}

static uint64_t loaded_bytes; /* of metadata, in the last image that was loaded */

static int load(const struct image_plan *plan)
{
	const struct fsd_host host = {
		.take_chunk = take_chunk,
		.room = room,
		.wall = wall,
		.data = move,
	};
	const struct fsd_options options = { .bytes_max = BYTES, .chunk_bytes = BYTES };
	const struct fsd_image_calls image_calls = { number, find_call, NULL };
	const struct image_head head = { .magic = IMAGE_MAGIC,
					 .next_ino = INODES + 1,
					 .next_client = 2,
					 .inodes = INODES,
					 .clients = 1,
					 .locks = 1 };
	struct fsd_bytes image = { 0 };
	struct fsd_reader reader;
	struct fsd *fsd;
	int rc;

	fsd_bytes_put(&image, &head, sizeof(head));
	for (uint64_t ino = ROOT; ino <= INODES; ino++)
		put_inode(&image, plan, ino);
	put_client(&image, plan);
	reader = (struct fsd_reader){ image.at, image.length };
	rc = fsd_image_load(&host, &options, &image_calls, &reader, &fsd);
	if (!rc) {
		loaded_bytes = fsd->meta_bytes;
		fsd_close(fsd);
	}
	fsd_bytes_free(&image);
	return rc;
}

static void a_good_image_is_loaded(void **state)
{
	(void)state;
	assert_int_equal(load(&good), 0);
}

static void a_lock_keeps_the_memory_for_its_split(void **state)
{
	struct image_plan plan = good;
	uint64_t before;

	(void)state;
	assert_int_equal(load(&plan), 0);
	before = loaded_bytes;
	plan.has_spare = true;
	assert_int_equal(load(&plan), 0);
	assert_int_equal(loaded_bytes - before, sizeof(struct fsd_lock));
}

static void a_directory_that_is_named_twice_in_its_parent_is_refused(void **state)
{
	struct image_plan plan = good;

	(void)state;
	plan.names[DIR][1] = BELOW;
	assert_int_equal(load(&plan), -EIO);
	plan.nlink[DIR]++;
	plan.nlink[BELOW] += 2;
	assert_int_equal(load(&plan), -EIO);
}

static void a_directory_that_is_its_own_parent_is_refused(void **state)
{
	struct image_plan plan = good;

	(void)state;
	plan.parent[BELOW] = BELOW;
	plan.names[DIR][0] = 0;
	plan.nlink[DIR] = 2;
	plan.names[BELOW][0] = BELOW;
	plan.nlink[BELOW] = 3;
	assert_int_equal(load(&plan), -EIO);
}

static void directories_in_a_ring_are_refused(void **state)
{
	struct image_plan plan = good;

	(void)state;
	plan.names[ROOT][0] = FILE_INO;
	plan.names[ROOT][1] = 0;
	plan.nlink[ROOT] = 2;
	plan.parent[DIR] = BELOW;
	plan.names[BELOW][0] = DIR;
	plan.nlink[BELOW] = 3;
	assert_int_equal(load(&plan), -EIO);
}

static void a_directory_below_a_removed_one_is_refused(void **state)
{
	struct image_plan plan = good;

	(void)state;
	plan.names[DIR][0] = 0;
	plan.nlink[DIR] = 2;
	plan.parent[BELOW] = REMOVED;
	plan.names[REMOVED][0] = BELOW;
	plan.nlink[REMOVED] = 1;
	assert_int_equal(load(&plan), -EIO);
}

static void a_directory_without_a_name_in_its_parent_is_refused(void **state)
{
	struct image_plan plan = good;

	(void)state;
	plan.parent[REMOVED] = ROOT;
	assert_int_equal(load(&plan), -EIO);
}

static void a_call_that_waits_for_two_locks_is_refused(void **state)
{
	struct image_plan plan = good;

	(void)state;
	plan.calls[1] = plan.calls[0];
	assert_int_equal(load(&plan), -EIO);
	plan.calls[1] = 7;
	assert_int_equal(load(&plan), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_image_is_loaded),
		cmocka_unit_test(a_lock_keeps_the_memory_for_its_split),
		cmocka_unit_test(a_directory_that_is_named_twice_in_its_parent_is_refused),
		cmocka_unit_test(a_directory_that_is_its_own_parent_is_refused),
		cmocka_unit_test(directories_in_a_ring_are_refused),
		cmocka_unit_test(a_directory_below_a_removed_one_is_refused),
		cmocka_unit_test(a_directory_without_a_name_in_its_parent_is_refused),
		cmocka_unit_test(a_call_that_waits_for_two_locks_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
