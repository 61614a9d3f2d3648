/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Between weir mount and libweir-files, which is preloaded into programs: reads and writes of open
 * files that cross memory and not the kernel. docs/explanation/files.md tells the whole.
 *
 * A process attaches to the mount and gets a *lane*: memory shared by the two. A *grant* lets the
 * lane's requests name a file; the process asks for it by an ioctl() on an open descriptor, so the
 * kernel has checked permissions. A *slot* carries one request at a time, with its bytes.
 *
 *	slot		by the process			by the mount
 *	FREE		-> FILLING
 *	FILLING		-> POSTED, its bit in @posted
 *	POSTED		-> FILLING, to take it back	-> TAKEN
 *	TAKEN		-> AWAITED, then sleeps		-> DONE
 *	AWAITED						-> DONE, and wakes the process
 *	DONE		-> FREE
 *
 * Both sides are of one host, and of one version. The mount trusts nothing that a process can
 * write: it copies, checks, then uses.
 */
#ifndef WEIR_WIRE_FILES_H
#define WEIR_WIRE_FILES_H

#include <fcntl.h>
#include <sys/ioctl.h>

#include "wire/platform.h"

/* Of the command to the library, in the environment; set or not. */
#define FILES_COUNT_VARIABLE "WEIR_FILES_COUNT" /* print counts at the end of the process */
#define FILES_ALWAYS_VARIABLE "WEIR_FILES_ALWAYS" /* use the kernel only if there is no other way */

#define FILES_VERSION 2
#define FILES_SLOTS 16u
#define FILES_SLOT_BYTES (128u << 10)
#define FILES_GRANTS 64u /* of a lane */
#define FILES_DATA 4096u /* where the slots' bytes begin in a lane */
#define FILES_LANE_BYTES (FILES_DATA + FILES_SLOTS * FILES_SLOT_BYTES)
#define FILES_NAME 32u /* bytes of a socket's abstract name */

enum files_slot_state {
	FILES_FREE,
	FILES_FILLING,
	FILES_POSTED,
	FILES_TAKEN,
	FILES_AWAITED,
	FILES_DONE,
};

enum files_op { FILES_READ, FILES_WRITE };

/* As O_RDONLY, O_WRONLY and O_RDWR, but each a bit. */
#define FILES_MAY_READ 1u
#define FILES_MAY_WRITE 2u

/* Return: FILES_MAY_* of a descriptor. @mode: its O_ACCMODE bits */
static inline unsigned int files_access(int mode)
{
	switch (mode) {
	case O_RDONLY:
		return FILES_MAY_READ;
	case O_WRONLY:
		return FILES_MAY_WRITE;
	case O_RDWR:
		return FILES_MAY_READ | FILES_MAY_WRITE;
	default:
		return 0;
	}
}

/* Between two looks at a word that the other side writes. */
static inline void files_spin(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/*
 * @closes: of the grant, as the process knows it
 * @cpu: that the process runs on, or UINT32_MAX
 * @result: bytes moved, fewer at the end of the file; -EAGAIN: this request is the kernel's;
 *	-ESTALE: the grant has changed; -EIO
 */
struct wire_files_slot {
	uint32_t state; /* enum files_slot_state; a futex */
	uint32_t op; /* enum files_op */
	uint32_t grant;
	uint32_t closes;
	uint64_t offset;
	uint32_t length; /* at most FILES_SLOT_BYTES */
	int32_t result;
	uint32_t cpu;
	uint8_t unused[28];
};
static_assert(sizeof(struct wire_files_slot) == 64, "one cache line");

/*
 * @closes: grows whenever a descriptor of the file is closed, by whatever call, before that call
 *	returns; and when the grant goes to another file. Then the process asks anew
 */
struct wire_files_grant {
	uint32_t closes;
	uint32_t zero;
	uint64_t ino;
};

/* Whether the mount looks at @posted. */
enum files_watch { FILES_WATCHED, FILES_ASLEEP, FILES_ENDED };

struct wire_files_lane {
	uint32_t watch; /* enum files_watch, by the mount */
	uint32_t cpu; /* that the mount's thread was on, when it last looked; by the mount */
	uint8_t unused[56];
	uint32_t posted; /* a bit for each slot */
	uint8_t unused2[60];
	struct wire_files_slot slot[FILES_SLOTS];
	struct wire_files_grant grant[FILES_GRANTS]; /* by the mount */
};
static_assert(sizeof(struct wire_files_lane) <= FILES_DATA, "the bytes begin after it");

/* To be sent to the socket @name, in the abstract namespace; the answer brings the lane. */
struct wire_files_hello {
	uint32_t version;
	uint32_t pid; /* of the mount, which the socket must belong to */
	uint64_t secret; /* proves that the process has opened a file of the mount */
	char name[FILES_NAME]; /* NUL-terminated */
};

/* The answer: with a descriptor of the lane's memory, unless @version differs. */
struct wire_files_attached {
	uint32_t version;
	uint32_t lane;
	uint64_t secret; /* of the lane */
};

/* @lane, @secret: in; the rest: out */
struct wire_files_ask {
	uint32_t lane;
	uint32_t grant;
	uint64_t secret;
	uint64_t ino;
	uint32_t closes;
	uint32_t access; /* FILES_MAY_* */
};

/* A part of a check of the donor's state: see wire_fs_checked. Before: its @cursor alone. */
struct wire_files_check {
	uint64_t cursor, changes;
	uint64_t total, unused;
	uint64_t fault_ino;
	uint32_t fault, faults;
	uint64_t inodes, names;
	uint64_t file_names, file_links;
	uint64_t mapped;
};

/* A copy of the directory of the descriptor. */
struct wire_files_snapshot {
	uint64_t parent; /* inode of the directory that gets the copy */
	char name[256]; /* NUL-terminated */
};

#define FILES_TOP_MAX 24u

/* Traffic of a file since the last answer. By [0] reads and [1] writes */
struct wire_files_traffic {
	uint64_t ino;
	uint32_t calls[2], past[2]; /* @past: of @calls, past the kernel */
	uint64_t bytes[2];
};

struct wire_files_top {
	uint32_t nr; /* in @file, those with most bytes first */
	uint32_t files; /* all with traffic */
	struct wire_files_traffic file[FILES_TOP_MAX];
};

/* ioctl()s on a descriptor of the mount. */
#define FILES_HELLO _IOR('w', 0x70, struct wire_files_hello)
#define FILES_ASK _IOWR('w', 0x71, struct wire_files_ask)
/* The process maps the file: its pages may change without a call. All requests are the kernel's. */
#define FILES_MAPPED _IO('w', 0x72)
/* A request is posted, and must not be taken back: look at it. */
#define FILES_WAKE _IO('w', 0x73)
/* On a directory, too; for root and the mount's user. -EOPNOTSUPP: the donor is too old. */
#define FILES_CHECK _IOWR('w', 0x74, struct wire_files_check)
/* The same. Traffic is counted for 10 s after each. */
#define FILES_TOP _IOR('w', 0x75, struct wire_files_top)
/* For the same, on a directory. -EBUSY: other clients mount the donor. -EFBIG: too large. */
#define FILES_SNAPSHOT _IOW('w', 0x76, struct wire_files_snapshot)

#endif
