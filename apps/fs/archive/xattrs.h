/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Extended attributes of an archive's entry. */
#ifndef WEIR_APPS_FS_ARCHIVE_XATTRS_H
#define WEIR_APPS_FS_ARCHIVE_XATTRS_H

struct archive_entry;

/*
 * libarchive writes each attribute twice: under its name, and for tar(1) with some characters of
 * the name as %XX, which a reader takes for another attribute. Removes the latter. Return: 0 or
 * -ENOMEM.
 */
int xattrs_mend(struct archive_entry *entry);

#endif
