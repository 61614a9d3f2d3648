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
	if (!mkdtemp(root))
		return -1;
	make("/proc/self", "mountinfo",
	     "23 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
	     "41 31 0:38 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
	return 0;
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

static void make_version_1(const char *group)
{
	char text[256];

	snprintf(text, sizeof(text), "9:name=systemd:/\n4:cpu,memory:%s\n1:cpuset:/c\n0::/\n",
		 group);
	make("/proc", "meminfo", "MemAvailable:  1048576 kB\n");
	make("/proc/self", "cgroup", text);
}

static void version_1_limits_by_the_memory_hierarchy_alone(void **state)
{
	(void)state;
	make_version_1("/a/b");
	make("/proc/self", "mountinfo",
	     "32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
	     "35 31 0:32 / /sys/fs/cgroup/cpu,memory rw shared:5 - cgroup cgroup rw,cpu,memory\n"
	     "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
	make("/sys/fs/cgroup/cpuset/a/b", "memory.limit_in_bytes", "1048576\n");
	make("/sys/fs/cgroup/cpuset/a/b", "memory.usage_in_bytes", "0\n");
	make("/sys/fs/cgroup/cpu,memory/a/b", "memory.limit_in_bytes", "67108864\n");
	make("/sys/fs/cgroup/cpu,memory/a/b", "memory.usage_in_bytes", "41943040\n");
	make("/sys/fs/cgroup/cpu,memory/a/b", "memory.stat",
	     "active_file 1048576\ninactive_file 0\n"
	     "total_active_file 2097152\ntotal_inactive_file 8388608\n");
	assert_int_equal(available_memory(root), 34 * MIB);
	make("/sys/fs/cgroup/cpu,memory/a", "memory.limit_in_bytes", "50331648\n");
	make("/sys/fs/cgroup/cpu,memory/a", "memory.usage_in_bytes", "46137344\n");
	assert_int_equal(available_memory(root), 4 * MIB);
	make("/sys/fs/cgroup/cpu,memory", "memory.limit_in_bytes", "9223372036854771712\n");
	make("/sys/fs/cgroup/cpu,memory", "memory.usage_in_bytes", "9663676416\n");
	assert_int_equal(available_memory(root), 4 * MIB);
}

static void a_container_sees_its_group_at_the_mount_point(void **state)
{
	(void)state;
	make_version_1("/docker/c/d");
	make("/proc/self", "mountinfo",
	     "34 31 0:32 /docker/other /elsewhere ro - cgroup cgroup rw,memory\n"
	     "35 31 0:32 /docker/c /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
	make("/elsewhere", "memory.limit_in_bytes", "0\n");
	make("/elsewhere", "memory.usage_in_bytes", "0\n");
	make("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "50331648\n");
	make("/sys/fs/cgroup/memory", "memory.usage_in_bytes", "46137344\n");
	assert_int_equal(available_memory(root), 4 * MIB);
	make("/sys/fs/cgroup/memory/d", "memory.limit_in_bytes", "1048576\n");
	make("/sys/fs/cgroup/memory/d", "memory.usage_in_bytes", "0\n");
	assert_int_equal(available_memory(root), 1 * MIB);
}

#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_A_WORLD(without_limits_memory_is_unbounded),
		IN_A_WORLD(a_machine_says_by_itself),
		IN_A_WORLD(a_group_may_leave_less_but_for_the_caches_of_files),
		IN_A_WORLD(parent_groups_limit_too),
		IN_A_WORLD(version_1_limits_by_the_memory_hierarchy_alone),
		IN_A_WORLD(a_container_sees_its_group_at_the_mount_point),
	};

	return cmocka_run_group_tests_name("serve available", tests, NULL, NULL);
}
