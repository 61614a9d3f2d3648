// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic sysfs tree; devices: softnic */
/* Paths of softnic's tree: which there are, where links lead, what files hold. */
#include <errno.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "softnic/sysfs/tree.h"

#define CLASS "/sys/class/infiniband"
#define RDMA "/sys/devices/softnic1/infiniband/softnic1"

static void read_text(const char *path, char *text)
{
	struct sysfs_node node;
	int n;

	if (!sysfs_find(path, true, &node))
		fail_msg("%s: not found", path);
	n = sysfs_read(&node, text);
	if (n < 0)
		fail_msg("%s: %s", path, strerror(-n));
	assert_int_equal(n, strlen(text));
}

static void paths_lead_where_the_kernels_would(void **state)
{
	static const struct {
		const char *path, *to;
		enum sysfs_kind kind;
	} cases[] = {
		{ CLASS, CLASS, SYSFS_DIRECTORY },
		{ CLASS "/", CLASS, SYSFS_DIRECTORY },
		{ "/sys//class/./infiniband", CLASS, SYSFS_DIRECTORY },
		{ CLASS "/softnic1", RDMA, SYSFS_DIRECTORY },
		{ CLASS "/softnic1/", RDMA, SYSFS_DIRECTORY },
		{ CLASS "/softnic1/..", "/sys/devices/softnic1/infiniband", SYSFS_DIRECTORY },
		{ CLASS "/softnic1/../..", "/sys/devices/softnic1", SYSFS_DIRECTORY },
		{ CLASS "/softnic1/device", "/sys/devices/softnic1", SYSFS_DIRECTORY },
		{ CLASS "/softnic1/device/device", "/sys/devices/softnic1/device", SYSFS_FILE },
		{ CLASS "/softnic1/subsystem/softnic0/fw_ver",
		  "/sys/devices/softnic0/infiniband/softnic0/fw_ver", SYSFS_FILE },
		{ CLASS "/softnic1/ports/2/gids/255", RDMA "/ports/2/gids/255", SYSFS_FILE },
		{ CLASS "/../infiniband_mad/abi_version", "/sys/class/infiniband_mad/abi_version",
		  SYSFS_FILE },
		{ CLASS "_verbs/softnic0/device/numa_node", "/sys/devices/softnic0/numa_node",
		  SYSFS_FILE },
		{ "/dev/infiniband/softnic1", "/dev/infiniband/softnic1", SYSFS_NODE },
		{ CLASS "/softnic1/device/net/lo", "/sys/class/net/lo", SYSFS_ELSEWHERE },
		{ CLASS "/softnic0/device/net/lo/mtu", "/sys/class/net/lo/mtu", SYSFS_ELSEWHERE },
		{ CLASS "/../net/lo/mtu", "/sys/class/net/lo/mtu", SYSFS_ELSEWHERE },
		{ CLASS "/..", "/sys/class", SYSFS_ELSEWHERE },
	};
	struct sysfs_node node;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!sysfs_find(cases[i].path, true, &node))
			fail_msg("%s: not found", cases[i].path);
		if (strcmp(node.path, cases[i].to) || node.kind != cases[i].kind)
			fail_msg("%s: %s, kind %d", cases[i].path, node.path, node.kind);
	}
}

static void the_last_link_is_kept_if_the_caller_asks(void **state)
{
	struct sysfs_node node;
	char text[SYSFS_TEXT_MAX];

	(void)state;
	assert_true(sysfs_find(CLASS "/softnic1", false, &node));
	assert_int_equal(node.kind, SYSFS_LINK);
	assert_string_equal(node.path, CLASS "/softnic1");
	assert_true(sysfs_read(&node, text) > 0);
	assert_string_equal(text, "../../devices/softnic1/infiniband/softnic1");
	assert_true(sysfs_find(CLASS "/softnic1/", false, &node));
	assert_int_equal(node.kind, SYSFS_DIRECTORY);
}

static void other_paths_are_the_kernels(void **state)
{
	static const char *const paths[] = {
		"",
		"/",
		"sys/class/infiniband",
		"/sys",
		"/sys/class",
		"/sys/class/net/lo",
		"/sys/class/infinibandx",
		"/sys/devices/softnic",
		"/sys/devices/softnic2",
		"/sys/devices/softnic01",
		"/sys/devices/softnic-1",
		"/sys/devices/softnic99999",
		CLASS "/mlx5_0x/..x",
		CLASS "/softnic0/none",
		CLASS "/softnic0/fw_ver/x",
		CLASS "/softnic0/fw_ver/",
		CLASS "/softnic0/ports/0",
		CLASS "/softnic0/ports/3",
		CLASS "/softnic0/ports/1/gids/256",
		"/sys/devices/softnic0/infiniband/softnic1",
	};
	char path[4096];
	struct sysfs_node node;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (sysfs_find(paths[i], true, &node) && node.kind != SYSFS_ELSEWHERE)
			fail_msg("%s: found %s", paths[i], node.path);
	memset(path, '/', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_false(sysfs_find(path, true, &node));
	snprintf(path, sizeof(path), CLASS "/%0*d", SYSFS_PATH_MAX, 0);
	assert_false(sysfs_find(path, true, &node));
}

static void files_hold_what_the_kernels_hold(void **state)
{
	static const struct {
		const char *path, *text;
	} cases[] = {
		{ CLASS "/softnic0/node_type", "1: CA\n" },
		{ CLASS "/softnic0/node_guid", "0277:6569:7200:0001\n" },
		{ CLASS "/softnic1/sys_image_guid", "0277:6569:7200:0101\n" },
		{ CLASS "/softnic0/ports/1/state", "4: ACTIVE\n" },
		{ CLASS "/softnic0/ports/1/phys_state", "5: LinkUp\n" },
		{ CLASS "/softnic0/ports/1/rate", "100 Gb/sec (4X EDR)\n" },
		{ CLASS "/softnic0/ports/1/cap_mask", "0x00010000\n" },
		{ CLASS "/softnic0/ports/1/gids/0", "fe80:0000:0000:0000:0277:6569:7200:0001\n" },
		{ CLASS "/softnic1/ports/2/gids/0", "fe80:0000:0000:0000:0277:6569:7200:0102\n" },
		{ CLASS "/softnic0/ports/1/gids/254", "0000:0000:0000:0000:0000:ffff:7f00:0001\n" },
		{ CLASS "/softnic0/ports/1/gids/255", "0000:0000:0000:0000:0000:0000:0000:0000\n" },
		{ CLASS "/softnic0/ports/1/gid_attrs/types/254", "RoCE v2\n" },
		{ CLASS "/softnic0/ports/1/gid_attrs/ndevs/254", "lo\n" },
		{ CLASS "/softnic0/ports/1/counters/symbol_error", "0\n" },
		{ CLASS "/softnic1/device/numa_node", "-1\n" },
		{ CLASS "_verbs/softnic1/ibdev", "softnic1\n" },
		{ CLASS "_mad/abi_version", "5\n" },
	};
	char text[SYSFS_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		read_text(cases[i].path, text);
		if (strcmp(text, cases[i].text))
			fail_msg("%s: %s", cases[i].path, text);
	}
}

static void an_empty_gid_has_neither_type_nor_netdev(void **state)
{
	static const char *const paths[] = {
		CLASS "/softnic0/ports/1/gid_attrs/types/255",
		CLASS "/softnic0/ports/1/gid_attrs/ndevs/255",
	};
	char text[SYSFS_TEXT_MAX];
	struct sysfs_node node;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_true(sysfs_find(paths[i], true, &node));
		assert_int_equal(sysfs_read(&node, text), -EINVAL);
	}
}

/* Counts the files below @path, and reads each; empty entries of the GID table are no error. */
static size_t walk(const char *path)
{
	char below[512], text[SYSFS_TEXT_MAX];
	struct dirent *entries;
	struct sysfs_node node;
	size_t files = 0;
	int n, i;

	assert_true(sysfs_find(path, false, &node));
	if (node.kind == SYSFS_FILE && !strstr(path, "counters"))
		assert_true(sysfs_read(&node, text) >= 0 || strstr(path, "gid_attrs"));
	if (node.kind != SYSFS_DIRECTORY)
		return 1;
	n = sysfs_list(&node, &entries);
	assert_true(n > 0);
	for (i = 0; i < n; i++) {
		snprintf(below, sizeof(below), "%s/%s", path, entries[i].d_name);
		files += walk(below);
	}
	free(entries);
	return files;
}

static void every_listed_name_is_found(void **state)
{
	struct if_nameindex *all = if_nameindex();
	size_t netdevs = 0;

	(void)state;
	while (all[netdevs].if_index)
		netdevs++;
	if_freenameindex(all);
	assert_int_equal(walk(CLASS), 2);
	assert_int_equal(walk("/dev/infiniband"), 2);
	assert_int_equal(walk("/sys/devices/softnic1/net"), netdevs);
	assert_int_equal(walk(RDMA "/ports/2/gids"), 256);
	assert_int_equal(walk(RDMA "/ports"), 2 * walk(RDMA "/ports/1"));
	assert_true(walk("/sys/devices/softnic0") > 2 * 3 * 256);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_lead_where_the_kernels_would),
		cmocka_unit_test(the_last_link_is_kept_if_the_caller_asks),
		cmocka_unit_test(other_paths_are_the_kernels),
		cmocka_unit_test(files_hold_what_the_kernels_hold),
		cmocka_unit_test(an_empty_gid_has_neither_type_nor_netdev),
		cmocka_unit_test(every_listed_name_is_found),
	};

	setenv("WEIR_SOFTNIC", "devices=2,ports=2", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
