/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file system's messages, between weir mount and weir serve.
 *
 * Names and attributes live with the donor; each operation on them is one call
 * (weir_call) with a request and a reply from here. File data never travels in
 * messages: FS_MAP and FS_ALLOC tell where in the volume a file's bytes lie, and
 * the client reads and writes there one-sidedly.
 *
 * The volume is a linear space of chunks, each a region of the donor's (FS_VOLUME).
 *
 * Who may touch an extent: a client that got it by FS_MAP or FS_ALLOC *holds* the file's
 * map until it answers a FS_RECALL with FS_RETURN, returns it unasked, or loses its QPs.
 * An extent that is freed while others hold the map stays in limbo until each of
 * them has given the map back; it is zeroed before it is used again. Two more ways to give a
 * map back, which spare a message: a client's last FS_RELEASE of the file, and asking for
 * what cuts extents off (FS_SETATTR with a size, FS_FALLOCATE that punches a hole, FS_OPEN
 * with O_TRUNC): whoever asks that has nothing in flight to the file and has forgotten its map, so
 * it is not recalled. Maps are held of open files only.
 *
 * Extents beyond the end of a file are left by FS_ALLOC ahead of a writer. They are freed when
 * the file's last opener releases it, unless FS_FALLOCATE put them there.
 *
 * Caching: while one client alone has mounted, it may cache names and attributes
 * for FS_ALONE_MS. Before a second one's FS_MOUNT is answered, the first gets FS_SHARE and
 * answers FS_SHARED once whatever it let the kernel cache has expired; from then on
 * nobody caches them: close-to-open.
 *
 * Little-endian, packed by hand, sizes asserted. Strings carry their length and no NUL.
 */
#ifndef WEIR_WIRE_FS_H
#define WEIR_WIRE_FS_H

#include "wire/platform.h"

#define FS_VERSION 1
#define FS_MAGIC 0x31536677 /* "wfS1" */
#define FS_ROOT 1
#define FS_BLOCK 4096 /* bytes; extents begin and end on it */
#define FS_NAME_MAX 255
#define FS_TARGET_MAX 4095 /* of a symbolic link */
#define FS_XATTR_MAX 8192 /* value, and list of names */
#define FS_EXTENTS_MAX 256 /* in one reply */
#define FS_CHUNKS_MAX 128 /* in one reply */
#define FS_ALONE_MS 1000

enum wire_fs_op {
	FS_MOUNT = 1, /* wire_fs_mount -> wire_fs_mounted */
	FS_VOLUME, /* wire_fs_volume -> wire_fs_chunk[] */
	FS_LOOKUP, /* name -> wire_fs_attr */
	FS_GETATTR, /* -> wire_fs_attr */
	FS_SETATTR, /* wire_fs_setattr -> wire_fs_attr */
	FS_MAKE, /* wire_fs_make, name, target -> wire_fs_attr; any type; with FS_MAKE_OPEN also opens */
	FS_LINK, /* wire_fs_link, name -> wire_fs_attr */
	FS_UNLINK, /* name -> nothing */
	FS_RMDIR, /* name -> nothing */
	FS_RENAME, /* wire_fs_rename, name, new name -> nothing */
	FS_READLINK, /* -> target */
	FS_OPEN, /* wire_fs_open -> wire_fs_attr; keeps an unlinked file alive until FS_RELEASE */
	FS_RELEASE, /* -> nothing; once per open */
	FS_READDIR, /* wire_fs_readdir -> wire_fs_dirent[] */
	FS_MAP, /* wire_fs_range -> wire_fs_map, wire_fs_extent[] */
	FS_ALLOC, /* wire_fs_range -> wire_fs_map, wire_fs_extent[]; fills the holes with zeroed extents, all or
		   * nothing (ENOSPC) */
	FS_COMMIT, /* wire_fs_setattr without FS_SET_SIZE -> wire_fs_attr; data was written */
	FS_FALLOCATE, /* wire_fs_fallocate -> wire_fs_attr */
	FS_STATFS, /* -> wire_fs_statfs */
	FS_SETXATTR, /* wire_fs_xattr, name, value -> nothing */
	FS_GETXATTR, /* name -> value */
	FS_LISTXATTR, /* -> names, each followed by a NUL */
	FS_REMOVEXATTR, /* name -> nothing */
	FS_GETLK, /* wire_fs_lock -> wire_fs_lock */
	FS_SETLK, /* wire_fs_lock -> nothing; with FS_LOCK_WAIT answered when granted */
	FS_CANCELLK, /* wire_fs_lock: a waiting FS_SETLK with this @cancel ends with -EINTR -> nothing */
	FS_RETURN, /* wire_fs_recall: the client holds no map of this file with an epoch up to
		    * that -> nothing */
	FS_SHARED, /* the client caches names and attributes no more -> nothing */

	/* From the donor, unasked, one-way. */
	FS_RECALL = 64, /* wire_fs_recall: give the map of this file back */
	FS_SHARE, /* wire_fs_head alone: another client mounts */
};

/* Begins each message that a client sends, and each that the donor sends unasked. */
struct wire_fs_head {
	uint16_t op;
	uint16_t flags; /* 0 */
	uint32_t uid, gid; /* who asks: owner of what is made */
	uint32_t name_length; /* of the first string, which follows the fixed part */
	uint64_t ino;
};
static_assert(sizeof(struct wire_fs_head) == 24, "wire_fs_head");

/* Begins each reply; the rest only if @status is 0. */
struct wire_fs_reply {
	int32_t status; /* 0 or a negative errno of Linux */
	uint32_t shared; /* 1: others have mounted too, cache nothing */
};
static_assert(sizeof(struct wire_fs_reply) == 8, "wire_fs_reply");

struct wire_fs_time {
	int64_t sec;
	uint32_t nsec;
	uint32_t zero;
};

struct wire_fs_attr {
	uint64_t ino; /* never used again */
	uint64_t size;
	uint64_t blocks; /* of 512 bytes, really allocated */
	uint64_t change; /* grows with each change of data or size, by 1 for a FS_COMMIT */
	struct wire_fs_time atime, mtime, ctime;
	uint32_t mode;
	uint32_t nlink;
	uint32_t uid, gid;
	uint32_t rdev;
	uint32_t flags; /* FS_ATTR_* */
};
static_assert(sizeof(struct wire_fs_attr) == 104, "wire_fs_attr");

#define FS_ATTR_PLAIN 1u /* it has no extended attributes: no need to ask */

struct wire_fs_mount {
	struct wire_fs_head head;
	uint32_t magic, version;
};

struct wire_fs_mounted {
	struct wire_fs_reply reply;
	struct wire_fs_attr root;
	uint64_t chunk_bytes; /* of each chunk but perhaps the last */
	uint64_t client; /* a number for this client */
};

struct wire_fs_volume {
	struct wire_fs_head head;
	uint32_t first; /* chunk wanted first */
	uint32_t zero;
};

struct wire_fs_chunk { /* its volume offset: sum of the lengths before */
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
#define FS_SET_CTIME 256u /* taken if it is later than the one before, else the donor's time */

struct wire_fs_setattr {
	struct wire_fs_head head;
	uint32_t mask;
	uint32_t mode, uid, gid;
	uint64_t size; /* of FS_COMMIT: at least that */
	struct wire_fs_time atime, mtime, ctime;
};

#define FS_MAKE_OPEN 1u
#define FS_MAKE_EXCLUSIVE \
	2u /* an existing name is -EEXIST; else, with MAKE_OPEN, -ESTALE: the
			      * kernel looks it up, checks who may open it, and opens it */

struct wire_fs_make { /* head.ino: the directory */
	struct wire_fs_head head;
	uint32_t mode; /* type and permissions, umask applied */
	uint32_t rdev;
	uint32_t make; /* FS_MAKE_* */
	uint32_t target_length; /* symbolic link: follows the name */
};

struct wire_fs_link { /* head.ino: the file */
	struct wire_fs_head head;
	uint64_t parent;
};

struct wire_fs_rename { /* head.ino: the old directory */
	struct wire_fs_head head;
	uint64_t parent;
	uint32_t flags; /* RENAME_NOREPLACE, RENAME_EXCHANGE */
	uint32_t new_length; /* of the new name, which follows the old one */
};

struct wire_fs_open {
	struct wire_fs_head head;
	uint32_t flags; /* O_TRUNC counts */
	uint32_t zero;
};

struct wire_fs_readdir {
	struct wire_fs_head head;
	uint64_t cookie; /* 0: from the start; else that of the last entry seen */
};

/* Followed by the name, padded to 8 bytes. "." and ".." are among them. */
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

/* Followed by the extents that touch the range, in order of offset; what lies between is a hole. */
struct wire_fs_map {
	struct wire_fs_reply reply;
	uint64_t epoch; /* of the map; a recall names one */
	uint64_t size; /* of the file */
	uint64_t end; /* the answer is complete up to here (it may be shorter than asked) */
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
	uint32_t value_length; /* follows the name */
};

#define FS_LOCK_FLOCK 1u /* flock(2); else a POSIX record lock */
#define FS_LOCK_WAIT 2u

struct wire_fs_lock { /* as a request head.op is set; in the reply of FS_GETLK head is zero */
	struct wire_fs_head head;
	uint64_t owner; /* within the client */
	uint64_t start, end; /* inclusive; UINT64_MAX: to the end of the file */
	uint64_t cancel; /* names a waiting request of this client */
	uint32_t type; /* F_RDLCK, F_WRLCK, F_UNLCK */
	uint32_t pid;
	uint32_t flags; /* FS_LOCK_* */
	int32_t status; /* FS_GETLK's reply: 0 */
};

struct wire_fs_recall {
	struct wire_fs_head head;
	uint64_t epoch;
};

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian");

#endif
