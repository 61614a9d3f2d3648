/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: serve available memory; suites: serve */
/* available_memory() on simulated trees of /proc and /sys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "apps/serve/available_memory.h"

#define MIB (1ull << 20)

static char root[PATH_MAX];

static void make(const char *directory, const char *name, const char *text)
{
	char path[2 * PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s%s", root, directory);
	for (char *slash = path + strlen(root); slash; slash = strchr(slash + 1, '/')) {
		char was = *slash;

		*slash = '\0';
		mkdir(path, 0700);
		*slash = was;
	}
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s%s/%s", root, directory, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static int begin(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(root, sizeof(root), "%s/weir-available-XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(root) ? 0 : -1;
}

static int end(void **state)
{
	char command[PATH_MAX + 16];

	(void)state;
	snprintf(command, sizeof(command), "rm -r '%s'", root);
	return system(command);
}

static void without_limits_memory_is_unbounded(void **state)
{
	(void)state;
	assert_true(available_memory(root) == UINT64_MAX);
}

static void a_machine_says_by_itself(void **state)
{
	(void)state;
	make("/proc", "meminfo", "MemTotal:  9000 kB\nMemFree:  1 kB\nMemAvailable:  2048 kB\n");
	assert_int_equal(available_memory(root), 2 * MIB);
	make("/proc/self", "cgroup", "1:name=old:/elsewhere\n0::/\n");
	assert_int_equal(available_memory(root), 2 * MIB);
}

static void a_group_may_leave_less_but_for_the_caches_of_files(void **state)
{
	(void)state;
	make("/proc", "meminfo", "MemAvailable:  1048576 kB\n");
	make("/proc/self", "cgroup", "0::/a/b\n");
	make("/sys/fs/cgroup/a/b", "memory.max", "67108864\n");
	make("/sys/fs/cgroup/a/b", "memory.current", "41943040\n");
	make("/sys/fs/cgroup/a/b", "memory.stat",
	     "anon 31457280\nfile 10485760\nactive_file 2097152\n"
	     "inactive_file 8388608\n");
	assert_int_equal(available_memory(root), 34 * MIB);
	make("/sys/fs/cgroup/a/b", "memory.high", "52428800\n");
	assert_int_equal(available_memory(root), 20 * MIB);
	make("/sys/fs/cgroup/a/b", "memory.current", "83886080\n");
	assert_int_equal(available_memory(root), 0);
}

static void parent_groups_limit_too(void **state)
{
	(void)state;
	make("/proc", "meminfo", "MemAvailable:  1048576 kB\n");
	make("/proc/self", "cgroup", "0::/a/b\n");
	make("/sys/fs/cgroup/a/b", "memory.max", "max\n");
	make("/sys/fs/cgroup/a/b", "memory.current", "41943040\n");
	assert_int_equal(available_memory(root), 1024 * MIB);
	make("/sys/fs/cgroup/a", "memory.max", "50331648\n");
	make("/sys/fs/cgroup/a", "memory.current", "46137344\n");
	assert_int_equal(available_memory(root), 4 * MIB);
	make("/sys/fs/cgroup", "memory.max",
	     "50331648\n"); /* as in a container that sees its own group as the root */
	make("/sys/fs/cgroup", "memory.current", "48234496\n");
	assert_int_equal(available_memory(root), 2 * MIB);
}

#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_A_WORLD(without_limits_memory_is_unbounded),
		IN_A_WORLD(a_machine_says_by_itself),
		IN_A_WORLD(a_group_may_leave_less_but_for_the_caches_of_files),
		IN_A_WORLD(parent_groups_limit_too),
	};

	return cmocka_run_group_tests_name("serve available", tests, NULL, NULL);
}
