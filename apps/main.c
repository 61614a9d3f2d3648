/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The weir command: finds and runs the subcommand. */
#include "apps/common/cmd.h"
#include "apps/common/device.h"
#include "apps/common/nearest.h"
#include "lib/base/secret.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

static const struct cmd {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
} cmds[] = {
	{ "serve", cmd_serve, "lend this machine's memory" },
	{ "lend", cmd_lend, "change how much a donor lends" },
	{ "mount", cmd_mount, "mount a donor's memory as a file system" },
	{ "files", cmd_files, "run a program that reads and writes such files past the kernel" },
	{ "fs", cmd_fs, "back up such files, bring them back, check and measure them" },
	{ "blk", cmd_blk, "make block devices of donors' memory, for swap too" },
	{ "pool", cmd_pool, "name many donors as one memory, and watch it" },
	{ "share", cmd_share, "share few queue pairs among many processes, fairly" },
	{ "top", cmd_top, "watch donors, sessions and tenants of this host, with rates" },
	{ "run", cmd_run, "run any verbs program on softnic, the software device" },
	{ "ping", cmd_ping, "measure round trips to a donor" },
	{ "perf", cmd_perf, "measure speed and cost of a donor's memory" },
	{ "stat", cmd_stat, "show the counters of softnic, of sessions, or of a donor" },
	{ "metrics", cmd_metrics, "show these counters as metrics, or serve them over HTTP" },
	{ "trace", cmd_trace, "show decisions of a program's sessions, and why" },
	{ "fault", cmd_fault, "inject faults into softnic in a running program" },
	{ "doctor", cmd_doctor, "check this machine, advise, and prove the path" },
	{ "lab", cmd_lab, "run the papers' experiments on a simulated NIC" },
	{ "config", cmd_config, "check and show the configuration of services" },
	{ "key", cmd_key, "make keys that donor and clients share, and change them" },
};

#define NR_CMDS (sizeof(cmds) / sizeof(cmds[0]))
#define HELP_WORDS_MAX 3 /* weir help pool volume create */

static int print_help(void)
{
	printf("Usage: weir COMMAND [OPTION...]\n"
	       "Remote memory over RDMA: fast, fair and easy to use.\n\n");
	for (size_t i = 0; i < NR_CMDS; i++)
		printf("  %-8s  %s\n", cmds[i].name, cmds[i].summary);
	printf("\n"
	       "  -h, --help     this help; see also 'weir help COMMAND'\n"
	       "  -V, --version  print the version\n\n"
	       "The memory is volatile: it ends with the donor. RDMA does not encrypt.\n");
	return EXIT_OK;
}

static int unknown_command(const char *typed)
{
	struct nearest nearest = nearest_begin(typed);

	for (size_t i = 0; i < NR_CMDS; i++)
		nearest_consider(&nearest, cmds[i].name);
	nearest_consider(&nearest, "help");
	return no_command("weir", typed, &nearest);
}

/* A failed write to standard output, as on a full disk, makes the command fail. */
static int flush_and_end(const char *cmd, int status)
{
	if ((!fflush(stdout) && !ferror(stdout)) || status)
		return status;
	return failure(cmd, "cannot write to standard output: %s", strerror(errno));
}

static int run_cmd(const struct cmd *cmd, int argc, char **argv)
{
	char name[32];

	/* The name that ps, top and weir stat show. */
	snprintf(name, sizeof(name), "weir-%s", cmd->name);
	prctl(PR_SET_NAME, name);
	name[strlen("weir")] = ' ';
	argv[0] = name;
	return flush_and_end(name, cmd->run(argc, argv));
}

static void warn_unlocked(int status)
{
	fprintf(stderr,
		"weir: keys may reach the swap, because memory cannot be locked: %s; raise the "
		"limit 'ulimit -l'\n",
		strerror(-status));
}

static int run_named(int argc, char **argv)
{
	for (size_t i = 0; i < NR_CMDS; i++)
		if (!strcmp(argv[1], cmds[i].name))
			return run_cmd(&cmds[i], argc - 1, argv + 1);
	return unknown_command(argv[1]);
}

/* 'weir help COMMAND' is 'weir COMMAND --help', and so is 'weir help COMMAND SUBCOMMAND'. */
static int run_help(int argc, char **argv)
{
	static char help[] = "--help";
	char *line[HELP_WORDS_MAX + 3] = { argv[0] };
	int words = argc - 2;

	if (!words)
		return flush_and_end("weir", print_help());
	if (words > HELP_WORDS_MAX)
		return usage_error("weir", "help takes the words of one COMMAND");
	for (int i = 0; i < words; i++)
		line[1 + i] = argv[2 + i];
	line[1 + words] = help;
	return run_named(words + 2, line);
}

/* For shells' completion: see cmdline_parse(). */
static int print_names(void)
{
	for (size_t i = 0; i < NR_CMDS; i++)
		puts(cmds[i].name);
	puts("help\n--help\n--version");
	return EXIT_OK;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	weir_secret_set_listener(warn_unlocked);
	device_init(argc, argv);
	if (!strcmp(name, "-h") || !strcmp(name, "--help"))
		return flush_and_end("weir", print_help());
	if (!strcmp(name, "help"))
		return run_help(argc, argv);
	if (!strcmp(name, "-V") || !strcmp(name, "--version")) {
		puts(WEIR_VERSION_TEXT);
		return flush_and_end("weir", EXIT_OK);
	}
	if (!strcmp(name, "--complete"))
		return flush_and_end("weir", print_names());
	if (!*name)
		return usage_error("weir", "no COMMAND given");
	return run_named(argc, argv);
}
