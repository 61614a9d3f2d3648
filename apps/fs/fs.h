/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The commands of "weir fs", which work on files of a mount. See archive/archive.h for two more. */
#ifndef WEIR_APPS_FS_FS_H
#define WEIR_APPS_FS_FS_H

/* Each parses its own options. @cmd: "weir fs check", for messages. Return: an exit status. */
int fs_check(const char *cmd, int argc, char **argv);
int fs_warm(const char *cmd, int argc, char **argv);
int fs_du(const char *cmd, int argc, char **argv);
int fs_df(const char *cmd, int argc, char **argv);
int fs_top(const char *cmd, int argc, char **argv);
int fs_snapshot(const char *cmd, int argc, char **argv);

#endif
