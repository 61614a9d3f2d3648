/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Invariants of a file server between any two requests. */
#ifndef WEIR_TESTS_FUZZ_FS_CHECK_H
#define WEIR_TESTS_FUZZ_FS_CHECK_H

#include "fsd/internal.h"

/* The k-th inode, in no order that lasts; NULL behind the last. */
struct fsd_inode *check_inode(const struct fsd *fsd, uint64_t k);

/* Names, links, parents, opens and handles agree. */
void check_tree(const struct fsd *fsd);

/*
 * No block has two files, a block that a file gets is zero, and so is a file's memory behind its
 * size. Then writes to both ends of each block, as clients would.
 */
void check_blocks(const struct fsd *fsd);

/* A reply has the length of its parts. */
void check_reply(uint8_t op, const uint8_t *reply, size_t length);

#endif
