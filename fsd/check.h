/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A check of the server's state, in parts, while clients go on. */
#ifndef WEIR_FSD_CHECK_H
#define WEIR_FSD_CHECK_H

#include "fsd/internal.h"

/**
 * fsd_check_part() - check some inodes, and the names in them
 * @cursor: 0, or the cursor of the part before
 * @out: receives all but the head
 *
 * Inodes that are there from the first part to the last are checked at least once. Changes between
 * parts may have an inode checked twice, or make the sums differ: see wire_fs_checked.
 */
void fsd_check_part(const struct fsd *fsd, uint64_t cursor, struct wire_fs_checked *out);

#endif
