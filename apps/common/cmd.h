/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The subcommands of weir. Each parses its own options. main() has set argv[0] to "weir NAME", so
 * that getopt's messages name the command.
 */
#ifndef WEIR_APPS_COMMON_CMD_H
#define WEIR_APPS_COMMON_CMD_H

#define WEIR_VERSION_TEXT "weir " WEIR_VERSION

enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1, /* a valid command failed */
	EXIT_USAGE = 2, /* an invalid command line */
};

int cmd_serve(int argc, char **argv);
int cmd_lend(int argc, char **argv);
int cmd_mount(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_files(int argc, char **argv);
int cmd_fs(int argc, char **argv);
int cmd_ping(int argc, char **argv);
int cmd_perf(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_metrics(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_fault(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_blk(int argc, char **argv);
int cmd_pool(int argc, char **argv);
int cmd_share(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_key(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_lab(int argc, char **argv);

/* A command below a command, as in "weir key add"; with @part, as in "weir pool volume rm". */
struct subcommand {
	const char *name, *part;
	int (*run)(const char *cmd, int argc, char **argv);
};

/**
 * run_subcommand() - run the command that argv[1] names, with argv[2] if it has a part
 * @commands: ends with an entry without a name; those of one name stand together
 * @help: printed for -h and --help, also after a name whose commands have parts
 *
 * The command gets "weir KEY ADD" as @cmd and as its argv[0].
 *
 * Return: its exit status; EXIT_USAGE if there is no such command.
 */
int run_subcommand(const struct subcommand *commands, const char *help, int argc, char **argv);

enum cmd_report { CMD_REPORT_FAILURE, CMD_REPORT_FACT };

/*
 * Has @report print the messages of usage_error(), failure() and cmd_say() from now on, without
 * @cmd; NULL: standard error. Context: before the process has other threads.
 */
void cmd_report_by(void (*report)(enum cmd_report kind, const char *text));

/* Prints a fact on standard error, such as an address. @cmd: NULL: no prefix. */
void cmd_say(const char *cmd, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * usage_error() - report an error in the command line
 * @cmd: argv[0] of the command: "weir ping"
 * @format: the message, or NULL if getopt has printed one already
 *
 * Prints "weir ping: MESSAGE" and how to get help.
 *
 * Return: EXIT_USAGE.
 */
int usage_error(const char *cmd, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct nearest;

/* The same for a command that does not exist. @nearest: a search among those that do. */
int no_command(const char *cmd, const char *typed, const struct nearest *nearest);

/**
 * failure() - report a failure
 *
 * Return: EXIT_FAILED.
 */
int failure(const char *cmd, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
