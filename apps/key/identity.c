/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir key identity: a donor's own pair of keys, by which clients know the donor. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/key/commands.h"

#include <sodium.h>
#include <stdio.h>
#include <unistd.h>
#include <weir/key.h>

static const struct cmdline identity_line = {
	.usage = "Usage: weir key identity FILE\n"
		 "Makes a donor's identity in FILE, if there is none, and prints the line for\n"
		 "the files of clients' keys. Pass it with 'weir serve --identity FILE'.\n",
	.arguments = "FILE",
	.arguments_min = 1,
	.arguments_max = 1,
};

int key_identity_get(const char *cmd, const char *path, unsigned char public[32])
{
	struct weir_identity *identity;
	struct weir_error error;

	if ((access(path, F_OK) && weir_identity_create(path, &error)) ||
	    weir_identity_load(path, &identity, &error))
		return failure(cmd, "%s", error.text);
	weir_identity_public(identity, public);
	weir_identity_free(identity);
	return 0;
}

int key_identity(const char *cmd, int argc, char **argv)
{
	int status = cmdline_parse(&identity_line, argc, argv, NULL);
	unsigned char public[32];
	char digits[65];

	if (status != CMDLINE_PARSED)
		return status;
	status = key_identity_get(cmd, argv[optind], public);
	if (!status)
		printf("donor %s\n", sodium_bin2hex(digits, sizeof(digits), public,
						    sizeof(public)));
	return status;
}
