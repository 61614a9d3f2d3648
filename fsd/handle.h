/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Open files and map holders.
 *
 * A client that holds a file's map reads and writes extents one-sidedly, unseen by the donor. An
 * extent freed under such a holder therefore stays in limbo until each holder has answered the
 * recall or lost its QPs.
 */
#ifndef WEIR_FSD_HANDLE_H
#define WEIR_FSD_HANDLE_H

#include "fsd/internal.h"

/* Return: 0; -ENFILE; -ENOMEM. */
int fsd_handle_open(struct fsd_client *client, struct fsd_inode *inode);
/* Return: 0 (the inode may be freed); -EBADF the file is not open. */
int fsd_handle_close(struct fsd_client *client, struct fsd_inode *inode);
/* Counts @more opens of a file that is open. */
void fsd_handle_count(struct fsd_client *client, struct fsd_inode *inode, uint32_t more);
bool fsd_handle_is_open(const struct fsd_client *client, const struct fsd_inode *inode);

/* Records that a client, which has the file open, receives the current map. */
void fsd_handle_grant_map(struct fsd_client *client, struct fsd_inode *inode);
/* The client has returned all maps up to @epoch. */
void fsd_handle_map_returned(struct fsd_client *client, struct fsd_inode *inode, uint64_t epoch);
/* The client has returned all maps. */
void fsd_handle_map_forgotten(struct fsd_client *client, struct fsd_inode *inode);

/* Whether any client may hold a map of the file. */
bool fsd_handle_is_held(const struct fsd_inode *inode);

/**
 * fsd_handle_recall() - recall extents that were removed from a file's map
 * @freed: given; recalled from map holders or, without holders, freed at once
 */
void fsd_handle_recall(struct fsd *fsd, struct fsd_inode *inode, struct fsd_freed *freed);

/* Sends a client's recalls again, after some could not be sent. */
void fsd_handle_recall_again(struct fsd_client *client);

/*
 * The size that truncations left to a client's earlier writes: as long as the client holds only
 * maps that a truncation recalled, all its writes precede the truncation.
 *
 * Return: UINT64_MAX if nothing was cut off.
 */
uint64_t fsd_handle_size_max(const struct fsd_client *client, const struct fsd_inode *inode);

/* The server ends with its clients: frees their handles, and leaves the inodes as they are. */
void fsd_handle_abandon(struct fsd_client *client);

/* The client leaves: drops its opens, locks and maps. */
void fsd_handle_drop_client(struct fsd_client *client);

#endif
