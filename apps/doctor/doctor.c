/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir doctor: checks this machine, prints remedies, and proves the path. */
#include "apps/common/cmd.h"
#include "apps/common/device.h"
#include "apps/doctor/check.h"

#include <getopt.h>
#include <stdio.h>

static const char help[] =
	"Usage: weir doctor [OPTION...]\n"
	"Checks what weir needs on this machine and prints a remedy for each problem. Then\n"
	"proves the path: lends memory in one process, and writes and reads it in another.\n\n"
	"  -f, --fix              load missing modules and set up Soft-RoCE (root)\n"
	"  -j, --json             for programs\n" DEVICE_HELP "  -h, --help\n\n"
	"Exit status: 0 if nothing is broken, otherwise 1.\n";

static int examine(const char *cmd, const char *wanted, bool fix, bool json)
{
	struct report report = { 0 };
	const char *device;
	int status;

	if (fix && !device_is_second_execution()) {
		fix_fuse();
		fix_soft_roce();
	}
	status = device_choose(cmd, wanted, &device);
	if (status)
		return status;
	check_rdma_devices(&report);
	check_softnic(&report);
	check_soft_roce(&report);
	check_locked_memory(&report);
	check_huge_pages(&report);
	check_memory(&report);
	check_fuse(&report);
	check_port(&report);
	check_path(&report, device);
	if (json)
		report_print_json(&report);
	else
		report_print(&report);
	return report_count(&report, VERDICT_FAIL) ? EXIT_FAILED : EXIT_OK;
}

int cmd_doctor(int argc, char **argv)
{
	static const struct option options[] = {
		{ "fix", no_argument, NULL, 'f' },
		{ "json", no_argument, NULL, 'j' },
		{ "device", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL },
	};
	bool fix = false, json = false;
	const char *device = NULL;
	int opt;

	while ((opt = getopt_long(argc, argv, "fjd:h", options, NULL)) != -1) {
		switch (opt) {
		case 'f':
			fix = true;
			break;
		case 'j':
			json = true;
			break;
		case 'd':
			device = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_OK;
		default:
			return usage_error(argv[0], NULL);
		}
	}
	if (optind != argc)
		return usage_error(argv[0], "unexpected '%s'", argv[optind]);
	return examine(argv[0], device, fix, json);
}
