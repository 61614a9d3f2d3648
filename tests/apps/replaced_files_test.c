/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: weir replaced files; suites: apps */
/* A file that is replaced as a whole has its new name on the disk before anybody counts on it. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/key/key_list.h"
#include "apps/mount/sealed/state.h"
#include "lib/conn/key.h"
#include "lib/sealed/slot.h"
#include "tests/support/cmocka_all.h"

static char place[64], path[sizeof(place) + 8];
static struct stat old;
static unsigned int folders;

int __real_fsync(int fd);
int __wrap_fsync(int fd);

/* Counts folders that are synced after the file has its new name. */
int __wrap_fsync(int fd)
{
	struct stat st, now;

	assert_int_equal(fstat(fd, &st), 0);
	if (S_ISDIR(st.st_mode)) {
		assert_int_equal(stat(path, &now), 0);
		folders += now.st_ino != old.st_ino;
	}
	return __real_fsync(fd);
}

static int begin(void **state)
{
	(void)state;
	folders = 0;
	old.st_ino = 0;
	strcpy(place, "/tmp/weir-replaced-XXXXXX");
	if (!mkdtemp(place))
		return -1;
	snprintf(path, sizeof(path), "%s/file", place);
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(place);
}

static void a_list_of_keys_is_on_the_disk(void **state)
{
	struct key_list *list = key_list_new();
	struct weir_error error;

	(void)state;
	assert_non_null(list);
	list->owner = geteuid();
	list->group = getegid();
	assert_int_equal(key_list_write(path, list, &error), 0);
	assert_int_equal(folders, 1);
	assert_int_equal(stat(path, &old), 0);
	assert_int_equal(key_list_write(path, list, &error), 0);
	assert_int_equal(folders, 2);
	key_list_free(list);
}

static void a_state_is_on_the_disk(void **state)
{
	struct weir_key key = { .length = 64 };
	struct weir_sealed_keys *keys = weir_slot_keys_new(&key, "test");
	struct seen_blocks seen;
	struct seal_state *open;
	struct weir_error error;
	enum seal_state_age age;
	int64_t saved;

	(void)state;
	assert_non_null(keys);
	seen_init(&seen);
	assert_int_equal(seal_state_open(path, keys, &seen, &open, &age, &saved, &error), 0);
	assert_int_equal(folders, 1);
	assert_int_equal(stat(path, &old), 0);
	assert_int_equal(seal_state_close(open), 0);
	assert_int_equal(folders, 2);
	seen_fini(&seen);
	weir_slot_keys_free(keys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_list_of_keys_is_on_the_disk, begin, end),
		cmocka_unit_test_setup_teardown(a_state_is_on_the_disk, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
