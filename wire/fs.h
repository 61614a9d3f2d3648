/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file system's messages, between weir mount and weir serve.
 *
 * The donor keeps names and attributes; each operation is one call (weir_call). File data never
 * travels in messages: FS_MAP and FS_ALLOC return a file's extents in the volume, and the client
 * reads and writes there one-sidedly. The volume is a linear space of chunks, each a region of the
 * donor's (FS_VOLUME).
 *
 * Access to extents: a client *holds* a file's map from FS_MAP or FS_ALLOC until it answers an
 * FS_RECALL with FS_RETURN, returns the map unasked, or loses its QPs. Extents freed meanwhile stay
 * in limbo until each holder has returned the map, and are zeroed before reuse. Two operations also
 * return the map:
 * - the client's last FS_RELEASE of the file;
 * - operations that cut off extents (FS_SETATTR with a size, FS_FALLOCATE that punches a hole,
 *   FS_OPEN with O_TRUNC). The requesting client has nothing in flight to the file and has dropped
 *   the map, so it gets no recall. Clients hold maps of open files only.
 *
 * Sizes: FS_COMMIT names the end of the client's own writes, so a stale size never grows a file. A
 * truncation is later than the writes of a client that has to return its map. That client sends its
 * FS_COMMIT before its FS_RETURN, and the donor limits the size to what the truncation left.
 *
 * Locks: FS_SETLK replies the file's attributes, so that the new holder sees the writes of the
 * last. A client commits its writes before it gives a lock up.
 *
 * FS_ALLOC may leave extents beyond the end of a file, ahead of a writer. So may FS_MAKE and
 * FS_OPEN that are asked for the map of an empty file to write: FS_FIRST_BYTES, if the donor has
 * memory in plenty. The last opener's release frees them, unless FS_FALLOCATE created them.
 *
 * Compound replies: an operation on names replies the attributes of each inode that it changed, so
 * that no client needs to ask afterwards. Attributes of an inode that is gone are zeroes but for
 * @ino. FS_CLOSE is an FS_COMMIT and an FS_RELEASE.
 *
 * Caching: a client that is alone in mounting may cache names and attributes for FS_ALONE_MS.
 * Before the donor answers a second FS_MOUNT, it sends FS_SHARE to the first client. The first
 * client answers FS_SHARED once the kernel's cached entries have expired. From then on clients
 * without a lease cache nothing: close-to-open. FS_ALONE_MS count from the request, so a client
 * that does not answer has nothing cached either, and the donor waits no longer than three times
 * as long.
 *
 * Leases: among several clients, one may have the lease of all names and attributes, with the same
 * rights as a client that is alone (FS_REPLY_LEASED). The donor gives the lease to a client that
 * asks for anything, if the others have no file open and have asked for nothing for FS_QUIET_MS.
 * Before the donor handles the next request of another client, it recalls the lease by FS_SHARE,
 * and the request waits for FS_SHARED, as a mount does. Requests that concern no name, attribute or
 * byte do not wait. Only clients that mount with FS_MOUNT_LEASES have leases.
 *
 * Batches: a client with the right to cache names may complete changes by itself, and send the
 * changes later, in order, many to an FS_BATCH. FS_RESERVE hands out inodes for new names: open
 * files without a name, which may hold their first blocks, and numbers for other types. FS_NAME
 * gives such an inode a name. Batches are numbered: a batch sent again takes effect once. The
 * donor refuses changes of names (FS_NAME, FS_UNLINK, FS_RMDIR, FS_RENAME) in a batch once the
 * client has lost the right to cache. After such an error the donor skips later changes of names,
 * so the donor's names are those of some moment of the client's. Changes of files still take
 * effect: a close that is lost leaves the file open. The client answers FS_SHARED after the donor
 * has answered all batches.
 *
 * A pool's files: the file server keeps them in a volume of the pool, and has no memory to hand
 * out. Each client has a staging area at the server (FS_VOLUME's only chunk). FS_WRITE stores
 * bytes that the client has put there by RDMA, and FS_READ brings bytes there. No client holds a
 * map or caches names. Another server may take the volume over, so each message begins with a
 * wire_fs_call: a call that is repeated is answered as it was at first. An empty reply asks for
 * that. The status -ENOTCONN says that the mount has been away for too long, and is forgotten.
 *
 * Little-endian, packed by hand, sizes asserted. Strings carry their length and no NUL.
 */
#ifndef WEIR_WIRE_FS_H
#define WEIR_WIRE_FS_H

#include "wire/platform.h"

#define FS_VERSION 3
#define FS_VERSION_OLDEST 2 /* of a client that a donor serves */
#define FS_MAGIC 0x31536677 /* "wfS1" */
#define FS_ROOT 1
#define FS_BLOCK 4096 /* bytes; alignment of extents */
#define FS_NAME_MAX 255
#define FS_TARGET_MAX 4095 /* of a symbolic link */
#define FS_XATTR_MAX 8192 /* value, and list of names */
#define FS_EXTENTS_MAX 256 /* in one reply */
#define FS_CHUNKS_MAX 128 /* in one reply */
#define FS_ALONE_MS 1000
#define FS_QUIET_MS 1000
#define FS_FIRST_BYTES 16384 /* allocated ahead for the first writer of an empty file */

enum wire_fs_op {
	FS_MOUNT = 1, /* wire_fs_mount -> wire_fs_mounted */
	FS_VOLUME, /* wire_fs_volume -> wire_fs_chunk[] */
	FS_LOOKUP, /* name -> wire_fs_attr */
	FS_GETATTR, /* -> wire_fs_attr */
	FS_SETATTR, /* wire_fs_setattr -> wire_fs_attr */
	/*
	 * wire_fs_make, name, target -> wire_fs_attr, that of the directory, and a map if asked
	 * for; any type; FS_MAKE_OPEN also opens
	 */
	FS_MAKE,
	FS_LINK, /* wire_fs_link, name -> wire_fs_attr, that of the directory */
	FS_UNLINK, /* name -> wire_fs_attr of the directory, that of the inode */
	FS_RMDIR, /* name -> wire_fs_attr of the directory, that of the inode */
	/*
	 * wire_fs_rename, name, new name -> wire_fs_attr of the old directory, the new one, the
	 * inode, and the inode that had the new name, if any: else with @ino 0
	 */
	FS_RENAME,
	FS_READLINK, /* -> target */
	/*
	 * wire_fs_open -> wire_fs_attr, and a map if asked for; keeps an unlinked file alive until
	 * it is released
	 */
	FS_OPEN,
	FS_RELEASE, /* -> nothing; once per open */
	FS_READDIR, /* wire_fs_readdir -> wire_fs_dirent[] */
	FS_MAP, /* wire_fs_range -> wire_fs_map, wire_fs_extent[] */
	FS_ALLOC, /* wire_fs_range -> wire_fs_map, wire_fs_extent[]; fills all holes, or ENOSPC */
	FS_COMMIT, /* wire_fs_setattr without FS_SET_SIZE -> wire_fs_attr; data was written */
	FS_FALLOCATE, /* wire_fs_fallocate -> wire_fs_attr */
	FS_STATFS, /* -> wire_fs_statfs */
	FS_SETXATTR, /* wire_fs_xattr, name, value -> wire_fs_attr */
	FS_GETXATTR, /* name -> value */
	FS_LISTXATTR, /* -> names, each followed by a NUL */
	FS_REMOVEXATTR, /* name -> wire_fs_attr */
	FS_GETLK, /* wire_fs_lock -> wire_fs_lock */
	FS_SETLK, /* wire_fs_lock -> wire_fs_locked; with FS_LOCK_WAIT answered when granted */
	FS_CANCELLK, /* wire_fs_lock -> nothing; the FS_SETLK with this @cancel ends with -EINTR */
	FS_RETURN, /* wire_fs_recall -> nothing; the client holds no map up to that epoch */
	FS_SHARED, /* -> nothing; the client no longer caches names and attributes */
	FS_READ, /* wire_fs_transfer -> wire_fs_transferred; of a pool only, like the next two */
	FS_WRITE, /* wire_fs_transfer -> wire_fs_transferred */
	FS_UNMOUNT, /* wire_fs_call with a head -> nothing; the mount ends */
	FS_CLOSE, /* wire_fs_setattr as FS_COMMIT -> wire_fs_attr; closes even if it fails */
	FS_CHECK, /* wire_fs_check -> wire_fs_checked; donors without it answer -EOPNOTSUPP */
	/*
	 * wire_fs_reserve -> wire_fs_reserved; for each file a wire_fs_attr, and a map as
	 * wire_fs_map without its head. -EAGAIN: not now. Donors without it answer -EOPNOTSUPP
	 */
	FS_RESERVE,
	FS_NAME, /* wire_fs_name, name, target -> nothing; in an FS_BATCH only */
	FS_BATCH, /* wire_fs_batch, wire_fs_change[] -> wire_fs_batched, wire_fs_result[] */
	/*
	 * wire_fs_snapshot, name -> wire_fs_attr of the copy. The client is alone (else -EBUSY),
	 * has nothing in flight to files, and has committed all. Until the answer, requests that
	 * change files or names wait. -EFBIG: the copy is too large; -ETIMEDOUT: it would take
	 * too long; -EAGAIN: an earlier copy is being removed
	 */
	FS_SNAPSHOT,

	/* From the donor, unasked, one-way. */
	FS_RECALL = 64, /* wire_fs_recall: return the file's map */
	FS_SHARE, /* wire_fs_head alone: another client mounts, or needs what this one may cache */
};

/* Begins each message of a client, and each unasked message of the donor. */
struct wire_fs_head {
	uint16_t op;
	uint16_t flags; /* of FS_MOUNT: FS_MOUNT_*; else 0 */
	uint32_t uid, gid; /* of the requesting user, who owns files created */
	uint32_t name_length; /* of the first string, which follows the fixed part */
	uint64_t ino;
};
static_assert(sizeof(struct wire_fs_head) == 24, "wire_fs_head");

/* What a client may cache. Clients without leases take any value but 0 for FS_REPLY_SHARED. */
enum wire_fs_sharing {
	FS_REPLY_ALONE, /* names and attributes: no other client has mounted */
	FS_REPLY_SHARED, /* nothing */
	FS_REPLY_LEASED, /* names and attributes, ready for a recall at any time */
};

/* Begins each reply; the rest follows only if @status is 0. */
struct wire_fs_reply {
	int32_t status; /* 0 or a negative errno of Linux */
	uint32_t shared; /* enum wire_fs_sharing */
};
static_assert(sizeof(struct wire_fs_reply) == 8, "wire_fs_reply");

struct wire_fs_time {
	int64_t sec;
	uint32_t nsec;
	uint32_t zero;
};

struct wire_fs_attr {
	uint64_t ino; /* never reused */
	uint64_t size;
	uint64_t blocks; /* of 512 bytes, really allocated */
	uint64_t change; /* grows with each change of data or size, by 1 for an FS_COMMIT */
	struct wire_fs_time atime, mtime, ctime;
	uint32_t mode;
	uint32_t nlink;
	uint32_t uid, gid;
	uint32_t rdev;
	uint32_t flags; /* FS_ATTR_* */
};
static_assert(sizeof(struct wire_fs_attr) == 104, "wire_fs_attr");

#define FS_ATTR_PLAIN 1u /* no extended attributes: no need to ask */

#define FS_MOUNT_LEASES 1u /* the client knows FS_REPLY_LEASED */

struct wire_fs_mount {
	struct wire_fs_head head;
	uint32_t magic, version;
};

struct wire_fs_mounted {
	struct wire_fs_reply reply;
	struct wire_fs_attr root;
	uint64_t chunk_bytes; /* of each chunk but perhaps the last */
	uint64_t client; /* the client's number */
};

struct wire_fs_volume {
	struct wire_fs_head head;
	uint32_t first; /* first chunk wanted */
	uint32_t zero;
};

struct wire_fs_chunk { /* volume offset: sum of the preceding lengths */
	uint64_t addr;
	uint64_t length;
	uint32_t rkey;
	uint32_t zero;
};
static_assert(sizeof(struct wire_fs_chunk) == 24, "wire_fs_chunk");

#define FS_SET_MODE 1u
#define FS_SET_UID 2u
#define FS_SET_GID 4u
#define FS_SET_SIZE 8u
#define FS_SET_ATIME 16u
#define FS_SET_MTIME 32u
#define FS_SET_ATIME_NOW 64u
#define FS_SET_MTIME_NOW 128u
#define FS_SET_CTIME 256u /* used if later than the previous ctime, else the donor's time */
/*
 * Of FS_SETATTR: before the rest, free the blocks beyond the end that were allocated ahead, unless
 * another client holds the map. Returns the client's map, as a size does.
 */
#define FS_SET_TRIM 512u

struct wire_fs_setattr {
	struct wire_fs_head head;
	uint32_t mask;
	uint32_t mode, uid, gid;
	uint64_t size; /* FS_COMMIT: lower bound of the size */
	struct wire_fs_time atime, mtime, ctime;
};

#define FS_MAKE_OPEN 1u
/*
 * An existing name is -EEXIST. Without this flag and with FS_MAKE_OPEN the error is -ESTALE: the
 * kernel looks the name up, checks permissions and opens it.
 */
#define FS_MAKE_EXCLUSIVE 2u
#define FS_MAKE_MAP 4u /* with FS_MAKE_OPEN: reply the map, too, as wire_fs_map without its head */

struct wire_fs_make { /* head.ino: the directory */
	struct wire_fs_head head;
	uint32_t mode; /* type and permissions, umask applied */
	uint32_t rdev;
	uint32_t make; /* FS_MAKE_* */
	uint32_t target_length; /* symbolic link: after the name */
};

struct wire_fs_link { /* head.ino: the file */
	struct wire_fs_head head;
	uint64_t parent;
};

struct wire_fs_rename { /* head.ino: the old directory */
	struct wire_fs_head head;
	uint64_t parent;
	uint32_t flags; /* RENAME_NOREPLACE, RENAME_EXCHANGE */
	uint32_t new_length; /* of the new name, after the old one */
};

#define FS_OPEN_MAP 1u /* of a regular file: reply the map, too, as wire_fs_map without its head */

struct wire_fs_open {
	struct wire_fs_head head;
	uint32_t flags; /* of open(2); only O_TRUNC and the access mode matter */
	uint32_t open; /* FS_OPEN_* */
};

struct wire_fs_readdir {
	struct wire_fs_head head;
	uint64_t cookie; /* 0: from the start; else the last entry's */
};

/* Followed by the name, padded to 8 bytes. "." and ".." are included. */
struct wire_fs_dirent {
	uint64_t cookie; /* stays valid while other names come and go */
	uint32_t name_length;
	uint32_t zero;
	struct wire_fs_attr attr;
};

struct wire_fs_range {
	struct wire_fs_head head;
	uint64_t offset, length;
};

/* Followed by the extents that overlap the range, by offset; gaps are holes. */
struct wire_fs_map {
	struct wire_fs_reply reply;
	uint64_t epoch; /* of the map; named by recalls */
	uint64_t size; /* of the file */
	uint64_t end; /* the answer is complete up to this offset, possibly short of the range */
	uint32_t extents;
	uint32_t zero;
};

struct wire_fs_extent {
	uint64_t offset; /* in the file */
	uint64_t volume; /* in the volume */
	uint64_t length;
};
static_assert(sizeof(struct wire_fs_extent) == 24, "wire_fs_extent");

struct wire_fs_fallocate {
	struct wire_fs_head head;
	uint64_t offset, length;
	uint32_t mode; /* FALLOC_FL_KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE */
	uint32_t zero;
};

struct wire_fs_statfs {
	struct wire_fs_reply reply;
	uint64_t blocks, free; /* of FS_BLOCK */
	uint64_t files;
};

struct wire_fs_xattr {
	struct wire_fs_head head;
	uint32_t flags; /* XATTR_CREATE, XATTR_REPLACE */
	uint32_t value_length; /* after the name */
};

#define FS_LOCK_FLOCK 1u /* flock(2); else a POSIX record lock */
#define FS_LOCK_WAIT 2u

struct wire_fs_lock { /* requests set head.op; FS_GETLK's reply has a head of zeros */
	struct wire_fs_head head;
	uint64_t owner; /* within the client */
	uint64_t start, end; /* inclusive; UINT64_MAX: to the end of the file */
	uint64_t cancel; /* identifies a waiting request of this client */
	uint32_t type; /* F_RDLCK, F_WRLCK, F_UNLCK */
	uint32_t pid;
	uint32_t flags; /* FS_LOCK_* */
	int32_t status; /* FS_GETLK's reply: 0 */
};

/* State of the file when the donor grants a lock, with the writes of earlier holders. */
struct wire_fs_locked {
	struct wire_fs_reply reply;
	struct wire_fs_attr attr;
	uint8_t last_byte; /* of a regular file; 0 if it is empty */
	uint8_t zero[7];
};
static_assert(sizeof(struct wire_fs_locked) == 120, "wire_fs_locked");

struct wire_fs_recall {
	struct wire_fs_head head;
	uint64_t epoch;
};

struct wire_fs_check {
	struct wire_fs_head head;
	uint64_t cursor; /* 0: the first part of a check; else that of the part before */
};

enum wire_fs_fault {
	FS_FAULT_NONE,
	FS_FAULT_NAMES, /* a directory's list, its count and the table of names differ */
	FS_FAULT_LINKS, /* a directory has another number of directories than its links tell */
	FS_FAULT_PARENT, /* a directory does not lead to the root */
	FS_FAULT_EXTENTS, /* a file's extents overlap, or lie outside of the memory */
	FS_FAULT_OPENS, /* the opens of clients are not those of the inode */
};

/*
 * A part of a check of the server's state. The last five are sums, of which the client makes
 * sums over all parts. If no part tells of other @changes, @file_names is @file_links, and @mapped
 * with @unused is @total.
 */
struct wire_fs_checked {
	struct wire_fs_reply reply;
	uint64_t cursor; /* 0: this is the last part */
	uint64_t changes; /* grows with each request that may change the state */
	uint64_t total, unused; /* bytes of memory; those that are no file's */
	uint64_t fault_ino; /* of the first fault of this part */
	uint32_t fault; /* enum wire_fs_fault */
	uint32_t faults;
	uint64_t inodes, names;
	uint64_t file_names, file_links; /* of all but directories */
	uint64_t mapped; /* bytes of files */
};
static_assert(sizeof(struct wire_fs_checked) == 96, "wire_fs_checked");

#define FS_RESERVE_FILES_MAX 32
#define FS_RESERVE_NUMBERS_MAX 256

struct wire_fs_reserve {
	struct wire_fs_head head;
	uint32_t files; /* at most FS_RESERVE_FILES_MAX */
	uint32_t numbers; /* at most FS_RESERVE_NUMBERS_MAX; if any, they replace those of before */
};

struct wire_fs_reserved {
	struct wire_fs_reply reply;
	uint64_t first; /* number */
	uint32_t numbers;
	uint32_t files; /* possibly fewer */
};
static_assert(sizeof(struct wire_fs_reserved) == 24, "wire_fs_reserved");

/* Its owner, group and mode are those of the new inode, whatever the directory says. */
struct wire_fs_name { /* head.ino: the directory */
	struct wire_fs_head head;
	uint64_t ino; /* a reserved file; of a directory or symbolic link: a number, rising */
	uint32_t mode;
	uint32_t target_length; /* symbolic link: after the name */
};

#define FS_SNAPSHOT_BYTES_MAX (2ull << 30) /* of files, and ... */
#define FS_SNAPSHOT_NAMES_MAX 500000u /* ... names in a copy */
#define FS_SNAPSHOT_MS_MAX 10000u

struct wire_fs_snapshot { /* head.ino: the directory to copy, but for @parent below */
	struct wire_fs_head head;
	uint64_t parent; /* of the copy */
	uint32_t patience_ms; /* at most FS_SNAPSHOT_MS_MAX: how long changes may wait */
	uint32_t zero;
};

#define FS_BATCH_MAX 128 /* changes */

struct wire_fs_batch {
	struct wire_fs_head head;
	uint64_t number; /* 1 for the first of a client */
	uint32_t changes;
	uint32_t bytes; /* of all changes, which follow */
};

/* Followed by the message, padded to 8 bytes. */
struct wire_fs_change {
	struct wire_fs_time time; /* of the change */
	uint32_t length; /* of the message */
	uint32_t zero;
};
static_assert(sizeof(struct wire_fs_change) == 24, "wire_fs_change");

/* -EALREADY: this batch has taken effect before; results are not kept. -ESTALE: a part has. */
struct wire_fs_batched {
	struct wire_fs_reply reply;
	uint32_t changes;
	uint32_t has_room; /* 1: there is memory for the names of several more batches */
};
static_assert(sizeof(struct wire_fs_batched) == 16, "wire_fs_batched");

struct wire_fs_result { /* followed by a wire_fs_attr, or by nothing */
	int32_t status; /* -ECANCELED: skipped */
	uint32_t length;
};

/* Precedes the message of a mount of a pool's volume. */
struct wire_fs_call {
	uint64_t mount; /* random, not 0: the mount's identity at each server */
	uint64_t number; /* of the call; 1 for the first */
	uint64_t answered; /* all calls below this number have replies, but for FS_LOCK_WAIT */
	uint64_t late; /* a call with FS_LOCK_WAIT that has its reply, too; 0: none */
};
static_assert(sizeof(struct wire_fs_call) == 32, "wire_fs_call");

#define FS_TRANSFER_MAX (1u << 20)
#define FS_SLOT_BYTES (FS_TRANSFER_MAX + 2 * FS_BLOCK) /* with what a write overwrites beside */

struct wire_fs_transfer { /* head.ino: an open file */
	struct wire_fs_head head;
	uint64_t offset; /* in the file */
	/*
	 * Of the first byte, in the staging area; equal to @offset modulo FS_BLOCK. FS_WRITE may
	 * overwrite the rest of the first and the last block there.
	 */
	uint64_t place;
	uint32_t length; /* at most FS_TRANSFER_MAX */
	uint32_t zero;
};
static_assert(sizeof(struct wire_fs_transfer) == 48, "wire_fs_transfer");

struct wire_fs_transferred {
	struct wire_fs_reply reply;
	uint64_t length; /* FS_READ: less at the end of the file */
	struct wire_fs_attr attr;
};
static_assert(sizeof(struct wire_fs_transferred) == 120, "wire_fs_transferred");

/* The fixed part of a request; strings follow. */
union wire_fs_fixed {
	struct wire_fs_head head;
	struct wire_fs_mount mount;
	struct wire_fs_volume volume;
	struct wire_fs_setattr setattr;
	struct wire_fs_make make;
	struct wire_fs_link link;
	struct wire_fs_rename rename;
	struct wire_fs_open open;
	struct wire_fs_readdir readdir;
	struct wire_fs_range range;
	struct wire_fs_fallocate fallocate;
	struct wire_fs_xattr xattr;
	struct wire_fs_lock lock;
	struct wire_fs_recall recall;
	struct wire_fs_transfer transfer;
	struct wire_fs_check check;
	struct wire_fs_reserve reserve;
	struct wire_fs_name name;
	struct wire_fs_batch batch;
	struct wire_fs_snapshot snapshot;
};

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian");

#endif
