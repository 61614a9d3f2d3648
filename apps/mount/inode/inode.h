/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The inodes known to the kernel, by the donor's numbers.
 *
 * A program's writes reach the donor's memory at once. Their new size and times reach the donor
 * only with FS_COMMIT: at close, at fsync, and before calls that depend on them. Until then the
 * inode is *dirty*, and the local attributes are newer than the donor's. While this client is
 * alone, attributes set on an open file are deferred to FS_COMMIT, too. close(2) waits for the
 * commit, unless the log takes changes (change_log.h). FS_CLOSE takes later changes along.
 *
 * While this client is alone, attributes that it has learned are current, because each operation
 * replies the attributes that it changed.
 */
#ifndef WEIR_APPS_MOUNT_INODE_INODE_H
#define WEIR_APPS_MOUNT_INODE_INODE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "apps/mount/direct/direct.h"
#include "apps/mount/inode/rw_gate.h"
#include "apps/mount/inode/map.h"
#include "apps/mount/inode/names.h"
#include "apps/mount/inode/traffic.h"
#include "wire/fs.h"

struct mount;
struct donor_message;
struct fuse_req;
struct io;

struct inode {
	struct mount *mount;
	uint64_t ino;
	struct inode *next; /* in its bucket; under the inodes' lock */
	struct inode *next_commit; /* list of inodes_commit_ahead() */
	uint64_t refs; /* lookups by the kernel, and uses; under the inodes' lock */
	struct inode *next_owing; /* list of inode_owe(), which has a reference; under the same */
	bool is_owing; /* in that list; under the same */
	unsigned int owed_closes; /* under the same */

	pthread_mutex_t lock; /* guards the fields below */
	/* the donor's as of attr.change, except for fields in @set or @sent */
	struct wire_fs_attr attr;
	unsigned int known; /* phase in which attr is the newest but for local changes; sharing.h */
	uint64_t size;
	uint64_t end; /* of this client's writes that the donor may not know; 0: none */
	uint64_t written; /* bytes since the last commit, to estimate blocks */
	bool dirty;
	bool told; /* the donor may know a size that is not 0 */
	uint32_t set; /* FS_SET_* of local changes in attr, not sent, ... */
	uint32_t sent; /* ... and of changes sent by a commit in progress */
	bool posix_locks; /* locks were taken: close must drop them */
	bool xattrs; /* an attribute was set: ignore FS_ATTR_PLAIN in replies in flight */
	uint64_t named; /* number of the naming change, or 0; change_log.h */
	unsigned int committing; /* FS_COMMITs, FS_SETATTRs and FS_CLOSEs in flight */
	bool frees_blocks; /* one of these calls frees blocks, so attr.blocks is not current */
	unsigned int opens;
	int error; /* of a commit without a waiter, for the next fsync or close */
	uint64_t pages; /* the attr.change for which the kernel's pages are valid */
	uint64_t sized; /* the attr.change for which the kernel's size is not too small */

	/* Of requests past the kernel; see direct.h. */
	struct direct_grants grants; /* under direct.lock */
	atomic_uint nr_grants;
	atomic_bool written_past; /* the kernel may keep no attributes */
	unsigned int page_drops; /* under way; lock */
	bool kernel_pages; /* the kernel may have pages, or attributes, of before the next write */
	bool mapped; /* by a program, which changes pages without a call */

	struct traffic_counts traffic;

	struct rw_gate gate;
	struct map map;
	uint64_t recalled; /* maps with an epoch up to this are invalid */
	bool recalling;
	bool first_blocks; /* allocated at the open of the empty file, not written yet */
	unsigned int holes_phase; /* in which the map's holes were seen; see sharing.h */
	bool map_unused; /* the map came with an open, and no transfer has used it */
	struct rw_gate_pass recall;

	struct known_dir names; /* of a directory; under names.lock */

	uint64_t next_offset; /* where a sequential write would continue */
	uint64_t ahead; /* bytes to allocate ahead of a sequential writer */
	bool map_rpc_pending; /* an FS_MAP or FS_ALLOC for the range below is in flight, ... */
	uint64_t ask, ask_end;
	struct io *map_rpc_waiters; /* ... and these transfers wait for it, too */
};

struct inodes {
	pthread_mutex_t lock; /* guards this struct, and refs and the lists of each inode */
	struct inode **bucket;
	size_t buckets; /* a power of two */
	size_t nr;
	struct inode *owing;
	bool is_paying; /* inodes_pay() runs, and then looks again */
};

int inodes_init(struct inodes *inodes);
void inodes_fini(struct inodes *inodes);

/**
 * inode_add() - look up or create an inode, and count a lookup by the kernel
 * @phase: of the reply with @attr
 *
 * Learns @attr.
 *
 * Return: the inode, or NULL if out of memory.
 */
struct inode *inode_add(struct mount *m, const struct wire_fs_attr *attr, unsigned int phase);
/* Takes a reference to a known inode. Return: the inode, or NULL if unknown. */
struct inode *inode_get(struct mount *m, uint64_t ino);
void inode_ref(struct inode *inode);
void inode_put(struct inode *inode, uint64_t refs);

/*
 * Learns attributes from the donor unless newer ones are known. @phase: of the reply, or
 * SHARING_NO_PHASE, which leaves current attributes current.
 */
void inode_learn(struct inode *inode, const struct wire_fs_attr *attr, unsigned int phase);
/* The same after an operation that sets the size; the caller holds the gate alone. */
void inode_learn_size(struct inode *inode, const struct wire_fs_attr *attr, unsigned int phase);
/* The same of an inode that the kernel may know, and of one that the donor has no more. */
void inode_learn_changed(struct mount *m, const struct wire_fs_attr *attr, unsigned int phase);
/* Another link of the inode may change at the same time: the donor is to be asked. */
void inode_doubt_links(struct inode *inode);
/* The attributes for the kernel. */
void inode_stat(struct inode *inode, struct stat *st);
/* A copy of the attributes; the size may be the donor's. */
void inode_attr(struct inode *inode, struct wire_fs_attr *attr);
void attr_stat(const struct wire_fs_attr *attr, struct stat *st);

/* How long the kernel may keep the attributes, which were true in @phase. */
double inode_cache_seconds(struct inode *inode, unsigned int phase);

/* Whether the local attributes are current: there is no need to ask the donor. */
bool inode_is_current(struct inode *inode);
/* Advances attr.ctime by this client's clock. Inode's lock held. */
struct wire_fs_time inode_changed_now(struct inode *inode);
/* Notes a write of @length bytes up to @end. */
void inode_wrote(struct inode *inode, uint64_t end, uint64_t length);

/*
 * Before a write up to @end, alone in the gate: tells the donor a new size of a file that has one
 * there. Return: 0, or an errno for the program.
 */
int inode_grow(struct inode *inode, uint64_t end);

/* A pool's server has stored a write, and says the attributes. */
void inode_stored(struct inode *inode, const struct wire_fs_attr *attr);

/**
 * inode_commit() - send local changes to the donor, and wait
 * @req: may be interrupted; or NULL
 *
 * Return: 0, also without changes; the donor's error; -EINTR; or the error of an earlier commit
 * without a waiter.
 */
int inode_commit(struct inode *inode, struct fuse_req *req);
/* The same without waiting: the commit precedes any later message to the donor. */
void inode_commit_ahead(struct inode *inode);
/* The same, and waits only if other clients could see the file. */
int inode_flush(struct inode *inode);
/*
 * For close(2): inode_commit(). But while this client is alone, a donor that does not answer in
 * time is no error: nobody else looks at the file, and the main thread commits again. While the log
 * takes changes, the commit waits, too: mostly FS_CLOSE follows at once and takes the size along.
 */
int inode_flush_last(struct inode *inode);
/* Gives up one open at the donor, with the changes not sent yet. Does not wait. */
void inode_close(struct inode *inode);
/*
 * Notes that @closes and the changes of @inode are still to be sent: the main thread will. Needs no
 * memory and never blocks.
 */
void inode_owe(struct inode *inode, unsigned int closes);
/* The same, after CHANGE_LOG_MS. */
void inode_owe_soon(struct inode *inode);
/* Sends what is owed. Context: the main thread. Return: whether something is owed still. */
bool inodes_pay(struct mount *m);
/* Commits all inodes without waiting. Context: the main thread. */
void inodes_commit_ahead(struct mount *m);
/* Commits all dirty inodes. No other thread uses the inodes any more. */
void inodes_commit(struct mount *m);

/**
 * inode_set() - set attributes
 * @q: an FS_SETATTR; if it sets the size, the caller holds the gate alone. Its phase becomes that
 *	of the attributes
 *
 * Return: 0, or an errno for the program.
 */
int inode_set(struct inode *inode, struct donor_message *q);

/* Before a change that leaves a hole at the start: gives the first blocks back, if unused. */
void inode_trim(struct inode *inode);

/* Enter the gate alone, sleeping if necessary, and forget the map. */
void inode_enter_alone(struct inode *inode);
/* The same, and keep the map. */
void inode_enter_writing(struct inode *inode);
/* The same until a time of day. Return: 0; -EBUSY: not entered. */
int inode_enter_writing_until(struct inode *inode, const struct timespec *until);
/* Enter the gate as transfers do, sleeping if necessary. */
void inode_enter_shared(struct inode *inode);
void inode_leave(struct inode *inode);

/**
 * inode_learn_map() - learn a map from the donor
 * @reply: a wire_fs_map, whose head is ignored, and its extents; not trusted
 * @length: bytes of @reply
 * @at: start of the range requested
 * @map: receives the wire_fs_map
 *
 * The caller has entered the gate, or nobody else knows the file yet, and holds the inode's lock.
 *
 * Return: 0; -EAGAIN a recall has overtaken the reply; -EIO; -ENOMEM.
 */
int inode_learn_map(struct inode *inode, const void *reply, size_t length, uint64_t at,
		    struct wire_fs_map *map);

/* Handles the donor's recall of an inode's maps up to @epoch. Never blocks. */
void inode_recall(struct mount *m, uint64_t ino, uint64_t epoch);

#endif
