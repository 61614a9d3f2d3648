/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir fs export and import, and the names that they use in an archive and in a tree. */
#ifndef WEIR_APPS_FS_ARCHIVE_ARCHIVE_H
#define WEIR_APPS_FS_ARCHIVE_ARCHIVE_H

/* The archive's last entry: the checksums of all files, for "b2sum -c". */
#define ARCHIVE_SUMS ".weir-sums"
/* Of an import under way, at the root of the tree: its entries so far. */
#define ARCHIVE_JOURNAL ".weir-import"

/* Return: an exit status. */
int archive_export(const char *cmd, int argc, char **argv);
int archive_import(const char *cmd, int argc, char **argv);

#endif
