/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks Soft-RoCE: the kernel's RDMA over any network interface, for hosts without an RDMA NIC. */
#include "apps/doctor/check.h"
#include "apps/doctor/sysfs.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static bool file_mentions(const char *path, const char *what)
{
	FILE *file = fopen(path, "re");
	char line[1024];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, what);
	if (file)
		fclose(file);
	return found;
}

static bool module_exists(void)
{
	struct utsname kernel;
	char path[256];

	uname(&kernel);
	if (!access("/sys/module/rdma_rxe", F_OK))
		return true;
	snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", kernel.release);
	if (file_mentions(path, "/rdma_rxe.ko"))
		return true;
	snprintf(path, sizeof(path), "/lib/modules/%s/modules.builtin", kernel.release);
	return file_mentions(path, "/rdma_rxe.ko");
}

/* The interface of the default route, the likely place for Soft-RoCE. */
static void default_interface(char *name, size_t size)
{
	FILE *file = fopen("/proc/net/route", "re");
	char line[256], interface[32];
	unsigned int destination;

	snprintf(name, size, "NETDEV");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%31s %x", interface, &destination) == 2 && !destination) {
			snprintf(name, size, "%s", interface);
			break;
		}
	if (file)
		fclose(file);
}

void check_soft_roce(struct report *report)
{
	char device[64], interface[32];

	if (sysfs_rdma_device(device, sizeof(device)))
		return;
	default_interface(interface, sizeof(interface));
	if (module_exists()) {
		report_add(report, "Soft-RoCE", VERDICT_OK,
			   "available: another way to reach hosts without an RDMA NIC");
		report_remedy(
			report,
			"as root, on each host: modprobe rdma_rxe && rdma link add rxe0 type rxe "
			"netdev %s (or weir doctor --fix)",
			interface);
		return;
	}
	report_add(report, "Soft-RoCE", VERDICT_WARN,
		   "this kernel has no module rdma_rxe: without an RDMA NIC, softnic only");
	report_remedy(
		report,
		"install the kernel's extra modules, or boot a distribution's kernel; then, on "
		"each host: modprobe rdma_rxe && rdma link add rxe0 type rxe netdev %s",
		interface);
}

bool fix_soft_roce(void)
{
	char device[64], interface[32];

	if (sysfs_rdma_device(device, sizeof(device)))
		return true;
	default_interface(interface, sizeof(interface));
	return fix_step((const char *const[]){ "modprobe", "rdma_rxe", NULL }) &&
	       fix_step((const char *const[]){ "rdma", "link", "add", "rxe0", "type", "rxe",
					       "netdev", interface, NULL }) &&
	       fix_step((const char *const[]){ "modprobe", "rdma_ucm", NULL });
}
