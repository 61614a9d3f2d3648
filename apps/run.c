/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir run: any verbs program, on softnic. */
#include "apps/cmd.h"
#include "apps/device.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_CANNOT_EXECUTE = 126, EXIT_NOT_FOUND = 127 };

static const char help[] =
	"Usage: weir run [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
	"Runs a program that speaks verbs on softnic, weir's own RDMA device in software.\n"
	"It reaches other such programs of this user on this host, and sees no other device.\n\n"
	"  -d, --device softnic   the only one there is to choose\n"
	"  -q, --quiet            do not say which device it is\n"
	"  -h, --help\n\n"
	"Exit status: the program's; 127 not found, 126 it can't be executed.\n\n"
	"  weir run -- ibv_devinfo\n"
	"  weir run -- ib_write_bw & sleep 1; weir run -- ib_write_bw localhost\n";

static int execute(const char *cmd, char **argv, int quiet)
{
	int err = device_preload(cmd);

	if (err)
		return err;
	if (!quiet)
		fprintf(stderr, "using softnic (this host only)\n");
	execvp(argv[0], argv);
	err = errno;
	failure(cmd, "%s: %s", argv[0], strerror(err));
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
}

int cmd_run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL },
	};
	int quiet = 0;
	int opt;

	while ((opt = getopt_long(argc, argv, "+d:qh", options, NULL)) != -1) {
		switch (opt) {
		case 'd':
			if (strcmp(optarg, "softnic"))
				return usage_error(argv[0],
						   "--device %s: a program on a real device needs no weir run",
						   optarg);
			break;
		case 'q':
			quiet = 1;
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_OK;
		default:
			return usage_error(argv[0], NULL);
		}
	}
	if (optind == argc)
		return usage_error(argv[0], "which program?");
	return execute(argv[0], argv + optind, quiet);
}
