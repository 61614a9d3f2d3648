/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir key: creates the secret that donor and clients share. */
#include "apps/common/cmd.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <weir/key.h>

static const char help[] =
	"Usage: weir key new FILE\n"
	"Writes a new random key to FILE, which must not exist, readable by its owner only.\n"
	"Copy it to the clients by a channel you trust; pass it with --key FILE.\n\n"
	"  -h, --help\n";

int cmd_key(int argc, char **argv)
{
	static const struct option options[] = { { "help", no_argument, NULL, 'h' }, { NULL } };
	struct weir_error error;
	int opt = getopt_long(argc, argv, "h", options, NULL);

	if (opt == 'h') {
		fputs(help, stdout);
		return EXIT_OK;
	}
	if (opt != -1)
		return usage_error(argv[0], NULL);
	if (argc - optind != 2 || strcmp(argv[optind], "new"))
		return usage_error(argv[0], "expected: new FILE");
	if (weir_key_create(argv[optind + 1], &error))
		return failure(argv[0], "%s", error.text);
	printf("%s: a new key, mode 0600\n", argv[optind + 1]);
	return EXIT_OK;
}
