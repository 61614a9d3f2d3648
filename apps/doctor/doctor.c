/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir doctor: checks this machine, prints remedies, and proves the path. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "apps/doctor/check.h"

static const char usage[] =
	"Usage: weir doctor [OPTION...]\n"
	"Checks what weir needs on this machine and prints a remedy for each problem. Then\n"
	"proves the path: lends memory in one process, and writes and reads it in another.\n";

struct doctor {
	const char *wanted;
	bool fix, json;
};

static const struct cmdline_option doctor_options[] = {
	{ "fix", 'f', NULL, "load missing modules and set up Soft-RoCE (root)",
	  CMDLINE_FLAG(struct doctor, fix) },
	CMDLINE_JSON(struct doctor, json),
	DEVICE_OPTION(struct doctor, wanted),
	{ NULL },
};

static const struct cmdline doctor_line = {
	.usage = usage,
	.options = doctor_options,
	.notes = "Exit status: 0 if nothing is broken and each repair succeeded, otherwise 1.\n",
};

/* Tries each repair, also after another has failed. */
static bool fix_all(const char *cmd)
{
	bool fuse = fix_fuse(), soft_roce = fix_soft_roce();

	if (!fuse || !soft_roce)
		failure(cmd, "--fix failed for%s%s: see above; without --fix each remedy is named",
			fuse ? "" : " fuse", soft_roce ? "" : " Soft-RoCE");
	return fuse && soft_roce;
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor doctor = { 0 };
	struct report report = { 0 };
	const char *device;
	int status = cmdline_parse(&doctor_line, argc, argv, &doctor);

	if (status != CMDLINE_PARSED)
		return status;
	if (doctor.fix && !device_is_second_execution() && !fix_all(argv[0]))
		return EXIT_FAILED;
	status = device_choose(argv[0], doctor.wanted, &device);
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
	if (doctor.json)
		report_print_json(&report);
	else
		report_print(&report);
	return report_count(&report, VERDICT_FAIL) ? EXIT_FAILED : EXIT_OK;
}
