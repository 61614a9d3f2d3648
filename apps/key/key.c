/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir key: creates the secret that donor and clients share, and keeps a donor's list of keys. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/key/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <weir/key.h>

static const char help[] =
	"Usage: weir key COMMAND\n"
	"  new FILE               writes a new random key to FILE, readable by its owner only\n"
	"  add KEYS NAME FILE     adds a new key to a donor's list, and writes it to FILE\n"
	"  rotate KEYS NAME FILE  adds a new key for NAME; the one from before stays valid\n"
	"  revoke KEYS NAME       removes the keys of NAME; their sessions end\n"
	"  list KEYS              shows the list without its secrets\n"
	"  identity FILE          makes a donor's identity, and prints its public key\n"
	"Copy FILE to the clients by a channel you trust; pass it with --key FILE. A donor has\n"
	"fixed keys with --key FILE, or a list that may change with --keys KEYS.\n"
	"See 'weir key COMMAND --help'.\n";

static const struct cmdline new_line = {
	.usage = "Usage: weir key new FILE\n"
		 "Writes a new random key to FILE, which must not exist, readable by its owner.\n"
		 "Copy it to the clients by a channel you trust; pass it with --key FILE.\n",
	.arguments = "FILE",
	.arguments_min = 1,
	.arguments_max = 1,
};

static int key_new(const char *cmd, int argc, char **argv)
{
	int status = cmdline_parse(&new_line, argc, argv, NULL);
	struct weir_error error;

	if (status != CMDLINE_PARSED)
		return status;
	if (weir_key_create(argv[optind], &error))
		return failure(cmd, "%s", error.text);
	printf("%s: a new key, mode 0600\n", argv[optind]);
	return EXIT_OK;
}

static const struct subcommand commands[] = {
	{ "new", NULL, key_new },	{ "add", NULL, key_add },   { "rotate", NULL, key_rotate },
	{ "revoke", NULL, key_revoke }, { "list", NULL, key_show },
	{ "identity", NULL, key_identity }, { NULL },
};

int cmd_key(int argc, char **argv)
{
	return run_subcommand(commands, help, argc, argv);
}
