/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The program behind "weir fs export" and "weir fs import". No other program links
 * libarchive, because a dozen libraries come along.
 */
#include "apps/common/cmd.h"
#include "apps/fs/archive/archive.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	const char *name = argc ? strrchr(argv[0], ' ') : NULL;
	int status;

	if (name && !strcmp(name, " export"))
		status = archive_export(argv[0], argc, argv);
	else if (name && !strcmp(name, " import"))
		status = archive_import(argv[0], argc, argv);
	else
		return failure("weir-archive", "'weir fs export' and 'weir fs import' run this");
	if ((fflush(stdout) || ferror(stdout)) && !status)
		return failure(argv[0], "cannot write to standard output: %s", strerror(errno));
	return status;
}
