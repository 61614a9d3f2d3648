/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Files that are replaced as a whole. */
#ifndef WEIR_APPS_FS_FOLDER_H
#define WEIR_APPS_FS_FOLDER_H

/*
 * After a rename() to @name: the new name is on the disk, too, when this returns.
 * Return: 0, or a negative errno.
 */
int folder_sync(const char *name);

#endif
