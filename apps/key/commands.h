/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir key: keys, and a donor's list of keys. */
#ifndef WEIR_APPS_KEY_COMMANDS_H
#define WEIR_APPS_KEY_COMMANDS_H

/* The commands. argv[0] is the command's name for getopt. Return: an exit status. */
int key_add(const char *cmd, int argc, char **argv);
int key_rotate(const char *cmd, int argc, char **argv);
int key_revoke(const char *cmd, int argc, char **argv);
/* Makes the file of an identity if it is missing. Return: 0, with its public key; EXIT_FAILED. */
int key_identity_get(const char *cmd, const char *path, unsigned char public[32]);
int key_identity(const char *cmd, int argc, char **argv);
int key_show(const char *cmd, int argc, char **argv);

#endif
