/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who has a file open, and who holds its map.
 *
 * A holder of a map reads and writes extents one-sidedly, and the donor cannot see it. So an
 * extent that is freed under a holder stays in limbo until each one has answered the recall, or
 * its QPs are gone.
 */
#ifndef WEIR_FSD_HANDLE_H
#define WEIR_FSD_HANDLE_H

#include "fsd/internal.h"

/* Return: 0; -ENFILE; -ENOMEM. */
int fsd_handle_open(struct fsd_client *client, struct fsd_inode *inode);
/* The file may be gone afterwards. Return: 0; -EBADF it isn't open. */
int fsd_handle_close(struct fsd_client *client, struct fsd_inode *inode);
bool fsd_handle_is_open(const struct fsd_client *client, const struct fsd_inode *inode);

/* A client that has the file open gets its map as it is now. */
void fsd_handle_grant_map(struct fsd_client *client, struct fsd_inode *inode);
/* It holds no map up to @epoch any more. */
void fsd_handle_map_returned(struct fsd_client *client, struct fsd_inode *inode, uint64_t epoch);
/* It holds none at all. */
void fsd_handle_map_forgotten(struct fsd_client *client, struct fsd_inode *inode);

/**
 * fsd_handle_recall() - extents were carved out of a file's map
 * @freed: given; recalled from those who hold the map, or free at once
 */
void fsd_handle_recall(struct fsd *fsd, struct fsd_inode *inode, struct fsd_freed *freed);

/* The client goes: its opens, its locks and its maps. */
void fsd_handle_drop_client(struct fsd_client *client);

#endif
