/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir lab: reproduces the papers' figures on a simulated NIC. The experiments are in Python. */
#include "apps/common/cmd.h"
#include "apps/common/program.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAB_FILE "/lab/__main__.py"
#define PACKAGED_PYTHON "/usr/bin/python3" /* the Python that Debian's matplotlib belongs to */

/* Finds the folder that contains lab/ and sim/: beside this program, or installed. */
static int find_lab(char folder[PATH_MAX], char *program, size_t size)
{
	if (program_folder(folder)) {
		snprintf(program, size, "%s" LAB_FILE, folder);
		if (!access(program, R_OK))
			return 0;
	}
	snprintf(folder, PATH_MAX, "%s", WEIR_LIBEXECDIR);
	snprintf(program, size, "%s" LAB_FILE, folder);
	return access(program, R_OK) ? -ENOENT : 0;
}

int cmd_lab(int argc, char **argv)
{
	char folder[PATH_MAX], program[PATH_MAX + sizeof(LAB_FILE)], **args;
	sigset_t interrupt;

	if (find_lab(folder, program, sizeof(program)))
		return failure(argv[0],
			       "found no lab/ beside this program or in %s: install all of weir",
			       WEIR_LIBEXECDIR);
	args = calloc((size_t)argc + 2, sizeof(*args));
	if (!args || setenv("PYTHONPATH", folder, 1))
		return failure(argv[0], "out of memory");
	/*
	 * Python prints a long traceback for a Ctrl-C during its start. The lab unblocks SIGINT
	 * later.
	 */
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupt, NULL);
	args[0] = PACKAGED_PYTHON;
	args[1] = program;
	memcpy(&args[2], &argv[1], (size_t)argc * sizeof(*args)); /* with the NULL at the end */
	execv(args[0], args);
	args[0] = "python3";
	execvp(args[0], args);
	return failure(argv[0], "cannot run python3: %s", strerror(errno));
}
