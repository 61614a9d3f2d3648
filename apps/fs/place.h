/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The mount that a path is on. */
#ifndef WEIR_APPS_FS_PLACE_H
#define WEIR_APPS_FS_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

/**
 * struct fs_place - a directory or file on a mount
 * @path: absolute, without symbolic links
 * @mountpoint: of the mount
 * @donor: DONOR or POOL/VOLUME, as "weir mount" was told
 */
struct fs_place {
	char path[PATH_MAX], mountpoint[PATH_MAX], donor[256];
};

/**
 * place_find() - find the mount that a path is on
 *
 * A mount that is gone leaves an empty directory of the local disk. So other file systems are
 * refused.
 *
 * Return: 0, or an exit status after a message.
 */
int place_find(const char *cmd, const char *path, struct fs_place *place);

/* The mounts of this machine, one after another. */
struct place_list {
	FILE *table;
};

/* The caller owes a place_list_close(). Return: 0, or an exit status after a message. */
int place_list_open(struct place_list *list, const char *cmd);
/* @place: receives a mount; its path is the mount point. Return: false: there are no more. */
bool place_list_next(struct place_list *list, struct fs_place *place);
void place_list_close(struct place_list *list);

#endif
