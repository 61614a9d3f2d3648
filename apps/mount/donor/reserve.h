/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Files and numbers reserved by the donor, so that this client makes files and directories by
 * itself (FS_RESERVE). The files are open, and may hold their first blocks. A client that makes
 * nothing for a second gives the files back.
 *
 * Locks: reserve.lock guards everything here, and is held alone, or within mount.names.
 */
#ifndef WEIR_APPS_MOUNT_DONOR_RESERVE_H
#define WEIR_APPS_MOUNT_DONOR_RESERVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/fs.h"

struct mount;

struct reserved_file {
	struct wire_fs_attr attr;
	size_t map_length;
	/* a wire_fs_map with a head of zeroes, and the extents */
	char map[sizeof(struct wire_fs_map) +
		 FS_FIRST_BYTES / FS_BLOCK * sizeof(struct wire_fs_extent)];
};

struct reserve {
	pthread_mutex_t lock;
	struct reserved_file file[FS_RESERVE_FILES_MAX];
	unsigned int files;
	uint64_t number, end_number;
	unsigned int changes; /* of names, until the next attempt */
	uint64_t used_ns; /* when a file was taken last */
	bool is_asking; /* a thread asks the donor */
	bool is_refused; /* for good */
};

void reserve_init(struct reserve *reserve);
void reserve_fini(struct reserve *reserve);

/*
 * Notes a change of names, and after several reserves files or numbers. Context: outside callbacks;
 * calls the donor.
 */
void reserve_note_change(struct mount *m);
/* Return: whether a file was left. */
bool reserve_take_file(struct mount *m, struct reserved_file *file);
/* The file was not used. */
void reserve_return_file(struct mount *m, const struct reserved_file *file);
/* Return: the next number, or 0. */
uint64_t reserve_take_number(struct mount *m);
/*
 * Gives back all files, unless @all only after a second without use. Return: whether files are
 * left. Context: the main thread.
 */
bool reserve_give_back(struct mount *m, bool all);

#endif
