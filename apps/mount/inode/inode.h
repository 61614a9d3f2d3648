/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The inodes that the kernel knows, by the donor's numbers.
 *
 * What a program writes lands in the donor's memory at once, but the new size and time are told
 * only by FS_COMMIT: at close, at fsync, and before the donor is asked for something that depends
 * on them. Until then the inode is *dirty*, and what is here counts rather than what the donor
 * says. While this client is alone the same goes for attributes that are set while the file is
 * open: FS_COMMIT takes them along.
 */
#ifndef WEIR_APPS_MOUNT_INODE_INODE_H
#define WEIR_APPS_MOUNT_INODE_INODE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "apps/mount/inode/rw_gate.h"
#include "apps/mount/inode/map.h"
#include "wire/fs.h"

struct mount;
struct donor_message;
struct io;

struct inode {
	struct mount *mount;
	uint64_t ino;
	struct inode *next; /* in its bucket; the inodes' lock */
	struct inode *next_commit; /* of inodes_commit_ahead() */
	uint64_t refs; /* lookups of the kernel, and uses; the inodes' lock */

	pthread_mutex_t lock; /* guards the rest */
	struct wire_fs_attr attr; /* the donor's, as of attr.change, but for what is set or sent */
	unsigned long changes; /* mount.changes when attr was learned */
	uint64_t size;
	uint64_t written; /* bytes since the last commit: an estimate for blocks */
	bool dirty;
	uint32_t set; /* FS_SET_* of what in attr the donor is yet to be told, ... */
	uint32_t sent; /* ... and of what is under way, if committing */
	bool posix_locks; /* some were taken: a close has to drop them */
	bool xattrs; /* one was set here: believe no FS_ATTR_PLAIN under way */
	unsigned int committing; /* FS_COMMITs and FS_SETATTRs under way, of inode_commit() */
	unsigned int opens;
	int error; /* of a commit that nobody waited for: for the next fsync or close */
	uint64_t pages; /* the attr.change that the kernel's pages go by */

	struct rw_gate gate;
	struct map map;
	uint64_t recalled; /* maps with an epoch up to this must not be used */
	bool recalling;
	struct rw_gate_pass recall;

	uint64_t next_offset; /* where a sequential writer goes on */
	uint64_t ahead; /* bytes to allocate beyond what it needs */
	bool map_rpc_pending; /* one FS_MAP or FS_ALLOC for the range below is under way, ... */
	uint64_t ask, ask_end;
	struct io *map_rpc_waiters; /* ... and these wait for it too */
};

struct inodes {
	pthread_mutex_t lock; /* guards all of it, and next and refs of each inode */
	struct inode **bucket;
	size_t buckets; /* a power of two */
	size_t nr;
};

int inodes_init(struct inodes *inodes);
void inodes_fini(struct inodes *inodes);

/**
 * inode_add() - the kernel is about to be told of an inode: one lookup more
 *
 * Learns @attr. Return: the inode, or NULL if there is no memory.
 */
struct inode *inode_add(struct mount *m, const struct wire_fs_attr *attr);
/* One reference more to an inode that is known; NULL if it isn't. */
struct inode *inode_get(struct mount *m, uint64_t ino);
void inode_ref(struct inode *inode);
void inode_put(struct inode *inode, uint64_t refs);

/* The donor has said what @attr is: believed unless newer things are known. */
void inode_learn(struct inode *inode, const struct wire_fs_attr *attr);
/* The same after an operation that set the size; the gate is held alone. */
void inode_learn_size(struct inode *inode, const struct wire_fs_attr *attr);
/* What the kernel is to be told. */
void inode_stat(struct inode *inode, struct stat *st);
void attr_stat(const struct wire_fs_attr *attr, struct stat *st);

/* Is there nothing that the donor could add? Only while this client is alone. */
bool inode_knows_best(struct inode *inode);
/* Something changes now, by this client's clock: attr.ctime grows. Inode's lock held. */
struct wire_fs_time inode_changed_now(struct inode *inode);
/* Data was written up to @end. */
void inode_wrote(struct inode *inode, uint64_t end, uint64_t length);

/**
 * inode_commit() - tell the donor of what was written and set, and wait
 *
 * Return: 0, also if there is nothing to tell; what the donor says; or the error of an earlier
 * commit that nobody waited for.
 */
int inode_commit(struct inode *inode);
/* The same without waiting: whatever is sent to the donor afterwards comes after it. */
void inode_commit_ahead(struct inode *inode);
/* The same, waiting only if anybody else could look: what a close owes. */
int inode_flush(struct inode *inode);
/* Without waiting, for all inodes. Context: the main thread. */
void inodes_commit_ahead(struct mount *m);
/* Commits whatever is dirty. Nobody else uses the inodes any more. */
void inodes_commit(struct mount *m);

/**
 * inode_set() - attributes are to be set
 * @q: a FS_SETATTR; if it sets the size, the gate is held alone
 *
 * Learns what comes of it. Return: 0 or what the program is told.
 */
int inode_set(struct inode *inode, const struct donor_message *q);

/* Pass the gate alone, sleeping if need be; what the donor's map says is forgotten. */
void inode_enter_alone(struct inode *inode);
void inode_leave(struct inode *inode);

/* The donor wants the maps of an inode back, up to an epoch. Never blocks. */
void inode_recall(struct mount *m, uint64_t ino, uint64_t epoch);

#endif
