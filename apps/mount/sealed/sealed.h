/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sealed files: the donor stores ciphertext, and this client alone has the key (weir/sealed.h says
 * how a block is sealed). All of a mount but this room, and the few places that ask it, thinks of
 * the stored bytes: sizes, maps and commits are those of slots.
 *
 * An extended attribute of the root marks the tree. It has a salt, from which the keys are derived,
 * and proves the key. A mount without the key refuses a tree with the mark, and a mount with
 * a key refuses a tree with files and without the mark. So plaintext and ciphertext never mix.
 * The kernel neither sees nor changes the mark.
 *
 * One client at a time mounts the tree, and nobody else changes it.
 *
 * A block is bound to the file's inode number and to its place. The mount remembers the generation
 * of each block that it has read or written (seen.c), perhaps in a file for the next mount
 * (state.h).
 */
#ifndef WEIR_APPS_MOUNT_SEALED_SEALED_H
#define WEIR_APPS_MOUNT_SEALED_SEALED_H

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "apps/mount/sealed/seen.h"
#include "apps/mount/sealed/size.h"
#include "apps/mount/sealed/state.h"
#include "lib/base/rate_limit.h"

struct inode;
struct mount;
struct weir_error;
struct wire_fs_mounted;

/* Blocks of the longest transfer, which may begin and end inside of one. */
#define SEALED_BLOCKS_MAX (((1u << 20) / FS_BLOCK) + 1)
#define SEALED_BUFFER (SEALED_BLOCKS_MAX * WEIR_SEALED_SLOT)

/**
 * struct sealed_tree - of a mount
 * @keys: of the tree's data
 * @writer, @counter: of the slots that this mount seals
 * @latest: the greatest generation given; atomic
 * @cipher: of writes
 * @pool: of buffers for slots; a transfer takes one after its FUSE buffer, and waits for nothing
 *	else while it holds both
 * @seen: generations; @state: their file, or NULL
 * @lock: guards @log
 * @told: the log knows of another client; of the main thread
 */
struct sealed_tree {
	struct weir_sealed_keys *keys;
	uint8_t writer[WEIR_SLOT_WRITER];
	atomic_ullong counter;
	uint64_t latest;
	uint32_t cipher;
	struct weir_pool *pool;
	struct seen_blocks seen;
	struct seal_state *state;
	bool told;
};

/* The mark: an extended attribute of the root. */
#define SEALED_MARK "trusted.weir.sealed"

/**
 * sealed_join() - check the mark of a tree, or put one on an empty tree
 * @mounted: the donor's reply to FS_MOUNT
 *
 * If other clients have mounted a tree to seal, waits for their end, at most the mount's timeout.
 * Fills m->sealed if the options name a key. Return: 0, or an exit status after a message.
 */
int sealed_join(struct mount *m, const struct wire_fs_mounted *mounted);
void sealed_leave(struct mount *m);
/* Another client has come. Context: the main thread. */
void sealed_warned(struct mount *m);

/* Serve a read or a write of the kernel. Context: a receiving thread. */
void sealed_read(fuse_req_t req, size_t size, uint64_t offset, struct fuse_file_info *fi);
void sealed_write(fuse_req_t req, size_t size, uint64_t offset, struct fuse_file_info *fi);

/**
 * sealed_cut() - before a file gets another size: shorten its last block, if it becomes shorter
 * @size: the new size of the data
 *
 * The caller has entered the gate alone. This client holds no map of the file afterwards.
 *
 * Return: 0, or an errno for the program.
 */
int sealed_cut(struct inode *inode, uint64_t size);
/* The donor has made the file shorter. */
void sealed_was_cut(struct inode *inode, uint64_t size);
/*
 * The donor has made an inode, perhaps with a number that it had already used. If @m is sealed, no
 * older slot of that number is valid in it.
 */
void sealed_was_made(struct mount *m, uint64_t ino);
/* The donor says that an inode is gone, and the kernel has forgotten it. */
void sealed_is_gone(struct mount *m, uint64_t ino);

/**
 * sealed_punch() - before a hole: zero its parts of blocks that it does not cover
 * @offset, @end: of the hole
 * @first, @after: receive the blocks that it covers, up to before @after; perhaps none
 *
 * The caller has entered the gate alone. This client holds no map of the file afterwards.
 *
 * Return: 0, or an errno for the program.
 */
int sealed_punch(struct inode *inode, uint64_t offset, uint64_t end, uint64_t *first,
		 uint64_t *after);
/* The donor has made the hole of these blocks. */
void sealed_was_punched(struct inode *inode, uint64_t first, uint64_t after);

#endif
