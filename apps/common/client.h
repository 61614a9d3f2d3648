/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What every command that visits a donor does: choose a device, load the key, open a session. */
#ifndef WEIR_APPS_COMMON_CLIENT_H
#define WEIR_APPS_COMMON_CLIENT_H

#include <weir/key.h>
#include <weir/session.h>

#define CLIENT_HELP "  -k, --key FILE         the key that the other end was given\n"

struct cmd_client {
	struct weir_key *key;
	struct weir_session *session;
};

/**
 * client_open() - open a session; says on standard error why it can't
 * @cmd: argv[0] of the command
 * @device: what device_choose() gave
 * @key_path: a file, or NULL
 *
 * Return: 0, then the caller owes a client_close(); otherwise an exit status.
 */
int client_open(struct cmd_client *client, const char *cmd, const char *donor, const char *device,
		const char *key_path);
/* The same with all of the session's @given options but its key, which @key_path gives. */
int client_open_with(struct cmd_client *client, const char *cmd, const char *donor,
		     const struct weir_session_options *given, const char *key_path);
void client_close(struct cmd_client *client);

#endif
