/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir fs: tools for the files of a mount. */
#include "apps/fs/fs.h"
#include "apps/common/cmd.h"
#include "apps/common/program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ARCHIVE_PROGRAM "/weir-archive"

static const char help[] =
	"Usage: weir fs COMMAND [OPTION...] ARGUMENT...\n"
	"Tools for files on mounts of 'weir mount'.\n\n"
	"  export PATH FILE|-   write a directory to an archive on disk\n"
	"  import FILE|- PATH   bring an archive back\n"
	"  check PATH...        read all bytes, and verify what has checksums\n"
	"  warm PATH...         read files ahead, into this machine's memory\n"
	"  du [PATH...]         show the memory that directories hold\n"
	"  df [PATH...]         show mounts, their space, and the donors that lend it\n"
	"  snapshot PATH NAME   copy a directory as it is at one moment\n"
	"  top PATH             show which files are read and written most\n\n"
	"See also 'weir fs COMMAND --help'.\n";

/* Beside this program, or installed. */
static int run_archive(const char *cmd, int argc, char **argv)
{
	char path[PATH_MAX + sizeof(ARCHIVE_PROGRAM)];

	(void)argc;
	if (program_folder(path)) {
		strcat(path, ARCHIVE_PROGRAM);
		execv(path, argv);
	}
	execv(WEIR_LIBEXECDIR ARCHIVE_PROGRAM, argv);
	return failure(cmd, "cannot run %s: %s; install all of weir",
		       WEIR_LIBEXECDIR ARCHIVE_PROGRAM, strerror(errno));
}

static const struct subcommand commands[] = {
	{ "export", NULL, run_archive }, { "import", NULL, run_archive },
	{ "check", NULL, fs_check },	 { "warm", NULL, fs_warm },
	{ "du", NULL, fs_du },		 { "df", NULL, fs_df },
	{ "top", NULL, fs_top },	 { "snapshot", NULL, fs_snapshot },
	{ NULL },
};

int cmd_fs(int argc, char **argv)
{
	return run_subcommand(commands, help, argc, argv);
}
