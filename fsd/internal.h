/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Structures shared by the files of the server. Each noun has its functions in its own header. */
#ifndef WEIR_FSD_INTERNAL_H
#define WEIR_FSD_INTERNAL_H

#include <sys/queue.h>

#include "fsd/data/space.h"
#include "fsd/fsd.h"
#include "fsd/data/map.h"
#include "fsd/hashtable.h"

/* A name in a directory. */
struct fsd_name {
	struct fsd_hash_node link; /* fsd.names */
	struct fsd_inode *dir, *inode;
	uint64_t cookie;
	uint8_t length;
	char text[];
};

struct fsd_slot {
	uint64_t cookie;
	struct fsd_name *name; /* NULL: the name was removed */
};

/* A directory's names in order of cookies, which is the order of creation. */
struct fsd_dir {
	struct fsd_inode *parent; /* the root is its own parent */
	struct fsd_slot *slot;
	uint32_t nr, room; /* slots */
	uint32_t names; /* slots in use */
	uint64_t next_cookie;
};

TAILQ_HEAD(fsd_handle_list, fsd_handle);
TAILQ_HEAD(fsd_lock_list, fsd_lock);
TAILQ_HEAD(fsd_wait_list, fsd_wait);
TAILQ_HEAD(fsd_xattr_list, fsd_xattr);
TAILQ_HEAD(fsd_client_list, fsd_client);
TAILQ_HEAD(fsd_deferred_list, fsd_deferred);

struct fsd_inode {
	struct fsd_hash_node link; /* fsd.inodes */
	uint64_t ino, size, change;
	struct wire_fs_time atime, mtime, ctime;
	uint32_t mode, nlink, uid, gid, rdev;
	uint32_t opens; /* by all clients; the inode is freed at 0 opens and 0 names */
	uint64_t epoch; /* of the map; incremented when extents are freed */
	/* end of the blocks that fallocate(2) reserved, possibly past the size */
	uint64_t kept_end;
	bool is_ahead; /* empty, and holds the blocks of fsd_file_fill_ahead() */
	union {
		struct fsd_map map; /* regular file */
		struct fsd_dir dir;
		char *target; /* symbolic link of @size bytes */
	};
	struct fsd_handle_list handles;
	struct fsd_freed_list limbo; /* oldest first */
	struct fsd_lock_list locks;
	struct fsd_wait_list waits;
	uint32_t nr_locks, nr_waits;
	struct fsd_xattr_list xattrs;
};

/* A client's state for a file. */
struct fsd_handle {
	TAILQ_ENTRY(fsd_handle) of_inode, of_client;
	struct fsd_inode *inode;
	struct fsd_client *client;
	uint32_t opens;
	uint64_t oldest, newest; /* epochs of maps that the client may hold; newest 0: none */
};

enum fsd_client_state {
	FSD_NEW,
	FSD_MOUNTING, /* waits until the other clients share */
	FSD_MOUNTED,
};

struct fsd_client {
	TAILQ_ENTRY(fsd_client) entry;
	struct fsd *fsd;
	void *peer;
	uint64_t id;
	enum fsd_client_state state;
	bool has_leases; /* knows FS_REPLY_LEASED */
	bool caches; /* may cache names: the client was told that it is alone, or has the lease */
	bool asked_to_share; /* FS_SHARE is due or was sent, FS_SHARED has not arrived */
	bool is_told; /* FS_SHARE was sent */
	uint64_t share_deadline_ns; /* if asked to share: when the right to cache ends */
	uint64_t active_ns; /* of its last request that another's lease is in the way of */
	uint64_t batch; /* number of the last FS_BATCH, ... */
	bool batch_is_cut; /* ... of which changes were skipped */
	uint64_t first_number, end_number; /* of FS_RESERVE, not used yet */
	void *mount_call; /* in FSD_MOUNTING */
	uint64_t recall_ns; /* when to repeat recalls that could not be sent; 0: all were */
	struct fsd_handle_list handles;
	struct fsd_wait_list waits;
	uint32_t nr_locks, nr_waits, nr_deferred;
};

struct fsd {
	struct fsd_host host;
	struct fsd_options options;
	struct fsd_space space;
	struct fsd_hashtable inodes, names;
	struct fsd_inode *root;
	uint64_t next_ino, next_client;
	uint64_t changes; /* requests that may have changed the state, for FS_CHECK */
	uint64_t lock_steps; /* locks and waiting requests looked at, for tests */
	uint32_t nr_ahead; /* inodes that are ahead */
	/* of the donor's own memory, for everything except file data */
	uint64_t meta_bytes, meta_bytes_max;
	bool is_loading; /* an image, of which all has its place */
	struct fsd_client_list clients;
	struct fsd_deferred_list deferred; /* oldest first */
	struct fsd_snapshot *snapshot; /* a copy under way, or NULL */
	void *call; /* of the request that runs now; for fsd_host.data() */
	const struct wire_fs_time *as_of; /* of the change of a batch that runs now, or NULL */
	uint8_t reply[FSD_MESSAGE_MAX];
};

/*
 * Names, attributes and other metadata live in the donor's own memory. Charging limits them: a
 * client that creates files without end gets -ENOSPC instead of exhausting the donor's memory.
 *
 * Names and attributes leave an eighth for opens, and locks leave a quarter. So a client that makes
 * names or sets locks without end does not stop other clients from opening files, nor locks from
 * making names.
 */
enum fsd_meta_use { FSD_META_OPEN, FSD_META_NAME, FSD_META_LOCK };

int fsd_charge_for(struct fsd *fsd, enum fsd_meta_use use, uint64_t bytes); /* 0; -ENOSPC */
int fsd_charge(struct fsd *fsd, uint64_t bytes); /* the same for FSD_META_NAME */
uint64_t fsd_meta_room(const struct fsd *fsd); /* bytes left for names */
void fsd_uncharge(struct fsd *fsd, uint64_t bytes);

/* Whether the host moves the bytes of files: clients hold no maps. */
static inline bool fsd_moves_data(const struct fsd *fsd)
{
	return fsd->host.data;
}

static inline struct wire_fs_time fsd_now(const struct fsd *fsd)
{
	struct wire_fs_time now = { 0 };

	if (fsd->as_of)
		return *fsd->as_of;
	fsd->host.wall(fsd->host.arg, &now);
	return now;
}

#endif
