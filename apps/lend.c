/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir lend: changes how much memory a running donor lends. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/lend.h"
#include "apps/common/pid.h"
#include "apps/common/size.h"
#include "apps/serve/donor_page.h"

#include <errno.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"Usage: weir lend PID SIZE\n"
	"Changes how much memory a donor on this host ('weir serve' with this PID) lends in\n"
	"total, at most as much as at its start. The donor takes nothing back. It asks block\n"
	"devices of several donors to move the excess, and returns that memory to the system.\n"
	"Memory that no client can move stays lent. 'weir stat DONOR' shows the progress.\n";

static const struct cmdline lend_line = {
	.usage = usage,
	.notes = "  weir lend 4242 1G\n",
	.arguments = "PID SIZE",
	.arguments_min = 2,
	.arguments_max = 2,
};

bool lend_is_donor(pid_t pid)
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
	struct donor_list donors = { 0 };
	const union sigval value = { .sival_ptr = (void *)(uintptr_t)bytes };

	if (!lend_is_donor(pid))
		return failure(cmd, "%s: not a process of weir serve", text);
	if (!donor_list_add(&donors, pid) && donors.count &&
	    bytes > donors.found->page.start_bytes)
		fprintf(stderr, "%s: %s is more than the donor was started with: it lends %s\n",
			cmd, size_format(bytes).text,
			size_format(donors.found->page.start_bytes).text);
	donor_list_free(&donors);
	if (sigqueue(pid, LEND_SIGNAL, value))
		return failure(cmd, "%s: %s", text, strerror(errno));
	return EXIT_OK;
}

int cmd_lend(int argc, char **argv)
{
	int status = cmdline_parse(&lend_line, argc, argv, NULL);
	uint64_t bytes;
	pid_t pid;

	if (status != CMDLINE_PARSED)
		return status;
	if (!pid_parse(argv[optind], &pid))
		return usage_error(argv[0], "'%s': not a process id", argv[optind]);
	if (size_parse(argv[optind + 1], &bytes))
		return usage_error(argv[0], "%s: not a size; try 512M, 4G or 0", argv[optind + 1]);
	return lend(argv[0], argv[optind], pid, bytes);
}
