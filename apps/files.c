/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir files: runs a program that reads and writes files of a mount past the kernel. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "wire/files.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_CANNOT_EXECUTE = 126, EXIT_NOT_FOUND = 127 };

static const char usage[] =
	"Usage: weir files [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
	"Runs a program whose reads and writes of open files on mounts of 'weir mount' pass the\n"
	"kernel by, in memory shared with the mount. All else, and what is unusual, is left to\n"
	"the kernel.\n";

static const char notes[] =
	"Exit status: the program's; 127 program not found; 126 not executable; 2 invalid\n"
	"option.\n\n"
	"  weir files -- fio --filename=/mnt/far/file --rw=randread --bs=4k --size=1G --name=job\n";

struct files_choice {
	bool counts, always;
};

static const struct cmdline_option files_options[] = {
	{ "count", 'c', NULL,
	  "each process prints to standard error, at its end, how many reads\n"
	  "and writes passed the kernel by, and how many did not",
	  CMDLINE_FLAG(struct files_choice, counts) },
	{ "always", 'a', NULL,
	  "do not leave calls to the kernel that are too few to be worth a\n"
	  "spinning thread of the mount: slower, for tests",
	  CMDLINE_FLAG(struct files_choice, always) },
	{ NULL },
};

static const struct cmdline files_line = {
	.usage = usage,
	.options = files_options,
	.notes = notes,
	.arguments = "PROGRAM [ARGUMENT...]",
	.arguments_min = 1,
	.arguments_max = INT_MAX,
	.is_prefix = true,
};

int cmd_files(int argc, char **argv)
{
	struct files_choice choice = { 0 };
	int status = cmdline_parse(&files_line, argc, argv, &choice);
	const char *cmd = argv[0];

	if (status != CMDLINE_PARSED)
		return status;
	if ((choice.counts && setenv(FILES_COUNT_VARIABLE, "1", 1)) ||
	    (choice.always && setenv(FILES_ALWAYS_VARIABLE, "1", 1)))
		return failure(cmd, "out of memory");
	status = device_preload(cmd, DEVICE_FILES);
	if (status)
		return status;
	execvp(argv[optind], argv + optind);
	status = errno;
	failure(cmd, "%s: %s", argv[optind], strerror(status));
	return status == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
}
