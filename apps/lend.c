/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir lend: changes how much a donor lends, while it runs. */
#include "apps/common/cmd.h"
#include "apps/lend.h"
#include "apps/common/pid.h"
#include "apps/common/size.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
	"Usage: weir lend PID SIZE\n"
	"Has a donor of this machine, 'weir serve' with this PID, lend so much in all from now on; more\n"
	"than it was started with stands for that. Nothing that is lent already is taken away. Block devices\n"
	"of several donors are asked to give back what is beyond, move it to others, and the memory\n"
	"goes to the system; what nobody can move stays. 'weir stat DONOR' shows how far that is.\n\n"
	"  -h, --help\n\n"
	"  weir lend 4242 1G\n";

static bool is_donor(pid_t pid)
{
	char path[64], comm[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/comm", (long)pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fgets(comm, sizeof(comm), file))
		comm[strcspn(comm, "\n")] = '\0';
	fclose(file);
	return !strcmp(comm, LEND_COMM);
}

static int lend(const char *cmd, const char *text, pid_t pid, uint64_t bytes)
{
	const union sigval value = { .sival_ptr = (void *)(uintptr_t)bytes };

	if (!is_donor(pid))
		return failure(cmd, "%s: no such process is a weir serve", text);
	if (sigqueue(pid, LEND_SIGNAL, value))
		return failure(cmd, "%s: %s", text, strerror(errno));
	return EXIT_OK;
}

int cmd_lend(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ NULL },
	};
	uint64_t bytes;
	pid_t pid;
	int opt;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (opt != 'h')
			return usage_error(argv[0], NULL);
		fputs(help, stdout);
		return EXIT_OK;
	}
	if (argc - optind != 2)
		return usage_error(argv[0], "expected: PID SIZE");
	if (!pid_parse(argv[optind], &pid))
		return usage_error(argv[0], "'%s' is no process's number", argv[optind]);
	if (size_parse(argv[optind + 1], &bytes))
		return usage_error(argv[0], "%s: not a size; try 512M, 4G or 0", argv[optind + 1]);
	return lend(argv[0], argv[optind], pid, bytes);
}
