/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir lend: changes how much memory a running donor lends. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
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
	"Usage: weir lend [OPTION...] PID SIZE\n"
	"Changes how much memory a donor on this host ('weir serve' with this PID) lends in\n"
	"total, at most as much as at its start. The donor takes nothing back. It asks block\n"
	"devices of several donors to move the excess, and returns that memory to the system.\n"
	"Memory that no client can move stays lent. 'weir stat DONOR' shows the progress.\n";

struct lend {
	const char *cmd;
	pid_t pid;
	uint64_t bytes;
	bool json;
};

static const struct cmdline_option lend_options[] = {
	CMDLINE_JSON(struct lend, json),
	{ NULL },
};

static const struct cmdline lend_line = {
	.usage = usage,
	.options = lend_options,
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

/* @start_bytes: the most that the donor lends, from its start; UINT64_MAX: unknown */
static void report(const struct lend *lend, uint64_t start_bytes)
{
	struct json json;

	if (lend->bytes > start_bytes)
		fprintf(stderr, "%s: %s is more than the donor was started with: it lends %s\n",
			lend->cmd, size_format(lend->bytes).text, size_format(start_bytes).text);
	if (!lend->json)
		return;
	json_begin(&json, stdout);
	json_int(&json, "pid", lend->pid);
	json_uint(&json, "asked_bytes", lend->bytes);
	json_uint(&json, "limit_bytes", lend->bytes < start_bytes ? lend->bytes : start_bytes);
	json_end(&json);
}

static int tell_donor(const struct lend *lend)
{
	const union sigval value = { .sival_ptr = (void *)(uintptr_t)lend->bytes };
	struct donor_list donors = { 0 };
	uint64_t start_bytes = UINT64_MAX;

	if (!lend_is_donor(lend->pid))
		return failure(lend->cmd, "%ld: not a process of weir serve", (long)lend->pid);
	if (!donor_list_add(&donors, lend->pid) && donors.count)
		start_bytes = donors.found->page.start_bytes;
	donor_list_free(&donors);
	if (sigqueue(lend->pid, LEND_SIGNAL, value))
		return failure(lend->cmd, "%ld: %s", (long)lend->pid, strerror(errno));
	report(lend, start_bytes);
	return EXIT_OK;
}

int cmd_lend(int argc, char **argv)
{
	struct lend lend = { .cmd = argv[0] };
	int status = cmdline_parse(&lend_line, argc, argv, &lend);

	if (status != CMDLINE_PARSED)
		return status;
	if (!pid_parse(argv[optind], &lend.pid))
		return usage_error(argv[0], "'%s': not a process id", argv[optind]);
	if (size_parse(argv[optind + 1], &lend.bytes))
		return usage_error(argv[0], "%s: not a size; try 512M, 4G or 0", argv[optind + 1]);
	return tell_donor(&lend);
}
