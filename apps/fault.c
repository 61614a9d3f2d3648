/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir fault: injects faults into softnic in a running program. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/pid.h"
#include "softnic/control/control.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_faults(void)
{
	putchar('\n');
	for (int i = OPTION_FIRST_FAULT; i < OPTIONS; i++)
		printf("  %-18s %s\n", option_name(i), option_help(i));
	printf("\n\"After N operations\" counts from now; 0: now. Numbers may end in K, M or G.\n"
	       "From a program's start: WEIR_SOFTNIC=NAME=VALUE,... in its environment.\n");
}

static const struct cmdline fault_line = {
	.usage = "Usage: weir fault PID NAME=VALUE[,NAME=VALUE...]\n"
		 "Injects faults into softnic in a running program of yours.\n",
	.print_more = print_faults,
	.notes = "  weir fault 4242 port_down_after=0,port_down_ms=500\n"
		 "  WEIR_SOFTNIC=seed=7,rnr=30,delay_us=200 weir run -- ib_send_bw\n",
	.arguments = "PID NAME=VALUE[,NAME=VALUE...]",
	.arguments_min = 2,
	.arguments_max = INT_MAX,
	.is_prefix = true,
};

static int explain_failure(const char *cmd, const char *pid, int rc)
{
	switch (rc) {
	case -ESRCH:
		return failure(cmd,
			       "%s: not a process of yours with softnic open; weir stat lists "
			       "them",
			       pid);
	case -EPERM:
		return failure(cmd,
			       "%s: softnic there accepts faults only from its own PID namespace",
			       pid);
	case -ETIMEDOUT:
		return failure(cmd, "%s: no answer; is the process stopped?", pid);
	default:
		return failure(cmd, "%s: %s", pid, strerror(-rc));
	}
}

int cmd_fault(int argc, char **argv)
{
	int rc, status = cmdline_parse(&fault_line, argc, argv, NULL);
	struct softnic_options options;
	char why[512];
	pid_t pid;

	if (status != CMDLINE_PARSED)
		return status;
	if (argc - optind > 2)
		return usage_error(argv[0], "%s: name all faults in one argument: %s,%s",
				   argv[optind + 2], argv[optind + 1], argv[optind + 2]);
	if (!pid_parse(argv[optind], &pid))
		return usage_error(argv[0], "'%s': not a process id", argv[optind]);
	option_defaults(&options);
	if (option_parse(argv[optind + 1], OPTION_FIRST_FAULT, &options, why, sizeof(why)))
		return usage_error(argv[0], "%s", why);
	if (!options.given)
		return usage_error(argv[0], "no fault given: NAME=VALUE[,NAME=VALUE...]");
	rc = softnic_control_set_faults(pid, &options);
	return rc ? explain_failure(argv[0], argv[optind], rc) : EXIT_OK;
}
