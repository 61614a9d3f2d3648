/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir key: creates the secret that donor and clients share. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <weir/key.h>

static const char usage[] =
	"Usage: weir key new FILE\n"
	"Writes a new random key to FILE, which must not exist, readable by its owner only.\n"
	"Copy it to the clients by a channel you trust; pass it with --key FILE.\n";

static const struct cmdline key_line = {
	.usage = usage,
	.arguments = "new FILE",
	.arguments_min = 2,
	.arguments_max = 2,
};

int cmd_key(int argc, char **argv)
{
	int status = cmdline_parse(&key_line, argc, argv, NULL);
	struct weir_error error;

	if (status != CMDLINE_PARSED)
		return status;
	if (strcmp(argv[optind], "new"))
		return usage_error(argv[0], "expected: %s", key_line.arguments);
	if (weir_key_create(argv[optind + 1], &error))
		return failure(argv[0], "%s", error.text);
	printf("%s: a new key, mode 0600\n", argv[optind + 1]);
	return EXIT_OK;
}
