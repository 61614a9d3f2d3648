/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The generations of blocks that a mount has read or written. They stay until the unmount, or
 * longer (state.h).
 *
 * A file has a floor, too: one generation for all blocks from some block on, which no older slot
 * passes. If the mount makes or cuts a file, the floor rises from there on. A hole that the mount
 * makes has a generation, too. Then no earlier slot comes back, even if this mount has never read
 * it. A file that is gone keeps a floor alone. Only the donor says that it is gone: if that is a
 * lie, the floor refuses all of the file.
 */
#ifndef WEIR_APPS_MOUNT_SEALED_SEEN_H
#define WEIR_APPS_MOUNT_SEALED_SEEN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* @lock guards all: @files, of struct seen_file, by inode number; @changes so far;
 * @has_lost: there was no memory for a change */
struct seen_blocks {
	pthread_mutex_t lock;
	void *files;
	uint64_t changes;
	bool has_lost;
};

#define SEEN_PAGE_BLOCKS 8u /* few, because most files are small */
/* Pages that are none: the floor, and the block where it begins; a hole: generation, first, end. */
#define SEEN_FLOOR UINT64_MAX
#define SEEN_HOLE (UINT64_MAX - 1)

/* The generations of SEEN_PAGE_BLOCKS blocks: from block @page * SEEN_PAGE_BLOCKS on. */
struct seen_entry {
	uint64_t ino, page;
	uint64_t generation[SEEN_PAGE_BLOCKS];
};

/* In a generation: this client has cut the block off, or tried to, so that it may be a hole; or the
 * block was never written. */
#define SEEN_MAY_BE_HOLE (1ull << 63)

void seen_init(struct seen_blocks *seen);
void seen_fini(struct seen_blocks *seen);

/* The generation of a block, perhaps with SEEN_MAY_BE_HOLE; 0: not known. */
uint64_t seen_find(struct seen_blocks *seen, uint64_t ino, uint64_t block);
/*
 * Notes a newer generation. Without memory, an older one or none stays known, and the log says so
 * once.
 */
void seen_note(struct seen_blocks *seen, uint64_t ino, uint64_t block, uint64_t generation);
/*
 * This client seals a slot. The donor may receive the slot even if the write fails. Return: the
 * block's generation so far; if that is not less, the slot is not valid, and needs another.
 */
uint64_t seen_seal(struct seen_blocks *seen, uint64_t ino, uint64_t block, uint64_t generation);
/* This client asks for a hole: any block from @first up to before @end may become one. */
void seen_cut(struct seen_blocks *seen, uint64_t ino, uint64_t first, uint64_t end);
/* The donor has made it. @generation: a new one. Old slots, read before or not, are not valid. */
void seen_punch(struct seen_blocks *seen, uint64_t ino, uint64_t first, uint64_t end,
		uint64_t generation);

/*
 * All blocks from @first on are gone, or have never been: of a new file, or one that the donor has
 * cut. @generation: a new one. Later slots have greater ones.
 */
void seen_raise(struct seen_blocks *seen, uint64_t ino, uint64_t first, uint64_t generation);
/* The donor says that the file is gone: no slot up to now is valid any more, nor is a hole. */
void seen_end(struct seen_blocks *seen, uint64_t ino, uint64_t generation);

/* Calls @fn for all, in any order, under the lock. Return: the changes that @fn has seen. */
uint64_t seen_walk(struct seen_blocks *seen, void (*fn)(void *arg, const struct seen_entry *entry),
		   void *arg);
/* Adds what an earlier walk has given. Return: false: no memory. */
bool seen_restore(struct seen_blocks *seen, const struct seen_entry *entry);
uint64_t seen_changes(struct seen_blocks *seen);

#endif
