/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks the limits of memory that can be registered and lent. */
#include "apps/doctor/check.h"
#include "apps/doctor/sysfs.h"
#include "apps/common/size.h"
#include "apps/serve/available_memory.h"
#include "apps/serve/donor_page.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LOCKED_BYTES_ENOUGH (1ull << 30)
#define MEMORY_BYTES_ENOUGH (1ull << 30)
#define DONOR_BYTES_ENOUGH (256ull << 20) /* as in the alert WeirMachineShortOfMemory */

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

void check_memory(struct report *report)
{
	uint64_t available = available_memory("");

	report_add(report, "memory", available < MEMORY_BYTES_ENOUGH ? VERDICT_WARN : VERDICT_OK,
		   "%s available to lend, within the limits of the control groups",
		   size_format(available).text);
	if (available < MEMORY_BYTES_ENOUGH)
		report_remedy(report, "lend less, so that the kernel kills nobody: weir lend, or "
			      "weir serve --spare; look for large processes: top -o %%MEM");
}

/* A donor may run in a control group with less memory than this command has. */
void check_donor_memory(struct report *report)
{
	struct donor_list donors = { 0 };
	const struct donor_found *least = NULL;
	bool is_short;

	donor_list_add(&donors, 0);
	for (size_t i = 0; i < donors.count; i++)
		if (!least ||
		    donors.found[i].page.available_bytes < least->page.available_bytes)
			least = &donors.found[i];
	if (least) {
		is_short = least->page.available_bytes < DONOR_BYTES_ENOUGH;
		report_add(report, "donor memory", is_short ? VERDICT_WARN : VERDICT_OK,
			   "%s available to the donor at %s (PID %ld), the least of %zu here",
			   size_format(least->page.available_bytes).text, least->page.address,
			   (long)least->pid, donors.count);
		if (is_short)
			report_remedy(report, "the kernel may kill the donor: weir lend %ld SIZE, "
				      "or more memory for its control group", (long)least->pid);
	}
	donor_list_free(&donors);
}
