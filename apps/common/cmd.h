/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The subcommands of weir. Each parses its own options; main() has set argv[0] to
 * "weir NAME", so that getopt's complaints name the command.
 */
#ifndef WEIR_APPS_COMMON_CMD_H
#define WEIR_APPS_COMMON_CMD_H

#define WEIR_VERSION_TEXT "weir " WEIR_VERSION

enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1, /* what was asked for could not be done */
	EXIT_USAGE = 2, /* what was asked for makes no sense */
};

int cmd_serve(int argc, char **argv);
int cmd_lend(int argc, char **argv);
int cmd_mount(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_ping(int argc, char **argv);
int cmd_perf(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_fault(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_blk(int argc, char **argv);
int cmd_share(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_key(int argc, char **argv);
int cmd_lab(int argc, char **argv);

/**
 * usage_error() - complain about the command line
 * @cmd: argv[0] of the command: "weir ping"
 *
 * Prints "weir ping: MESSAGE" and where help is to be had. getopt has printed its own message
 * already: @format may be NULL then.
 * Return: EXIT_USAGE.
 */
int usage_error(const char *cmd, const char *format, ...) __attribute__((format(printf, 2, 3)));

/**
 * failure() - say what went wrong
 * Return: EXIT_FAILED.
 */
int failure(const char *cmd, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
