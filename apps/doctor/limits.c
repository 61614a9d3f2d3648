/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks the limits of memory that can be registered and lent. */
#include "apps/doctor/check.h"
#include "apps/doctor/sysfs.h"
#include "apps/common/size.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LOCKED_BYTES_ENOUGH (1ull << 30)
#define MEMORY_BYTES_ENOUGH (1ull << 30)

void check_locked_memory(struct report *report)
{
	struct rlimit limit;

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= LOCKED_BYTES_ENOUGH) {
		report_add(report, "locked memory", VERDICT_OK, "%s",
			   limit.rlim_max == RLIM_INFINITY ? "unlimited" :
							     size_format(limit.rlim_max).text);
		return;
	}
	if (!geteuid()) {
		report_add(report, "locked memory", VERDICT_OK,
			   "limited to %s, but root is exempt where it has CAP_IPC_LOCK",
			   size_format(limit.rlim_max).text);
		return;
	}
	report_add(
		report, "locked memory", VERDICT_WARN,
		"RLIMIT_MEMLOCK is %s: a NIC and Soft-RoCE can register no more; softnic can",
		size_format(limit.rlim_max).text);
	report_remedy(report,
		      "put '* - memlock unlimited' into /etc/security/limits.d/weir.conf and "
		      "log in again; in a unit: LimitMEMLOCK=infinity");
}

void check_huge_pages(struct report *report)
{
	uint64_t free_pages = 0, page_kib = 0;
	char transparent[64] = "";

	sysfs_meminfo("HugePages_Free", &free_pages);
	sysfs_meminfo("Hugepagesize", &page_kib);
	sysfs_line("/sys/kernel/mm/transparent_hugepage/enabled", transparent, sizeof(transparent));
	if (free_pages) {
		report_add(report, "huge pages", VERDICT_OK, "%s free in pages of %s",
			   size_format(free_pages * page_kib << 10).text,
			   size_format(page_kib << 10).text);
		return;
	}
	if (strstr(transparent, "[madvise]") || strstr(transparent, "[always]")) {
		report_add(report, "huge pages", VERDICT_OK,
			   "none reserved; transparent huge pages on request");
		return;
	}
	report_add(report, "huge pages", VERDICT_WARN,
		   "none: registration and first touch are slower");
	report_remedy(report, "sysctl vm.nr_hugepages=N, 512 for each GiB lent");
}

/* The room below the tightest memory.max of this process's cgroups, within its cgroup namespace. */
static uint64_t cgroup_room(void)
{
	char line[512], path[640];
	uint64_t limit, used, room = UINT64_MAX;
	char *slash;

	if (!sysfs_line("/proc/self/cgroup", line, sizeof(line)) || strncmp(line, "0::", 3))
		return room;
	for (;;) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", line + 3);
		if (sysfs_number(path, &limit)) {
			snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.current", line + 3);
			if (sysfs_number(path, &used) && limit - used < room)
				room = used < limit ? limit - used : 0;
		}
		slash = strrchr(line + 3, '/');
		if (!slash || !line[3] || !line[4])
			return room;
		*(slash == line + 3 ? slash + 1 : slash) = '\0';
	}
}

void check_memory(struct report *report)
{
	uint64_t available_kib = 0, room = cgroup_room();
	uint64_t available;

	sysfs_meminfo("MemAvailable", &available_kib);
	available = available_kib << 10;
	if (room < available)
		report_add(report, "memory", room < MEMORY_BYTES_ENOUGH ? VERDICT_WARN : VERDICT_OK,
			   "%s may be lent: the control group's limit (memory.max)",
			   size_format(room).text);
	else
		report_add(report, "memory",
			   available < MEMORY_BYTES_ENOUGH ? VERDICT_WARN : VERDICT_OK,
			   "%s available to lend", size_format(available).text);
}
