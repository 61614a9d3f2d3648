/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A test host for the file server: memory from malloc, a clock set by the test, and replies and
 * messages kept for inspection. Also clients that send requests as weir mount does.
 */
#ifndef WEIR_TESTS_FSD_HOST_H
#define WEIR_TESTS_FSD_HOST_H

#include <stdbool.h>

#include "fsd/fsd.h"

#define HOST_CHUNKS_MAX 64
#define TOLD_MAX 256

/* A call and its reply. */
struct fsd_answer {
	unsigned int times; /* number of replies */
	int status;
	bool shared;
	enum wire_fs_sharing sharing;
	size_t length; /* of the whole reply */
	uint8_t bytes[FSD_MESSAGE_MAX];
};

struct fsd_peer {
	struct host *host;
	struct fsd_client *client;
	uint32_t uid, gid;
	struct fsd_answer answer; /* to the latest ask() */
	union {
		struct wire_fs_head head;
		struct wire_fs_recall recall;
	} told[TOLD_MAX]; /* oldest first */
	unsigned int nr_told;
	bool deaf; /* reads no messages */
};

struct host {
	struct fsd *fsd;
	uint64_t room;
	uint64_t now_ns;
	uint64_t chunk_bytes;
	void *chunk[HOST_CHUNKS_MAX];
	unsigned int nr_chunks;
};

void host_init(struct host *host, uint64_t bytes, uint64_t chunk_bytes);
void host_fini(struct host *host);
void *host_memory(struct host *host, uint64_t volume);

void peer_join(struct fsd_peer *peer, struct host *host); /* and mounts */
void peer_join_for_leases(struct fsd_peer *peer, struct host *host); /* and may have leases */
void peer_join_only(struct fsd_peer *peer, struct host *host);
void peer_leave(struct fsd_peer *peer);

#define PENDING 1 /* no reply yet */

/**
 * ask() - send a request
 * @fixed: the fixed part, with op and ino set; the rest of the head is filled in
 * @name: NULL or a C string
 * @second: the second string
 */
int ask(struct fsd_peer *peer, void *fixed, size_t size, const char *name, const void *second,
	size_t second_length);
/* The same, with the reply in @answer, which must live until the reply. */
int ask_for(struct fsd_peer *peer, struct fsd_answer *answer, void *fixed, size_t size,
	    const char *name, const void *second, size_t second_length);

const void *body(const struct fsd_peer *peer); /* the latest reply after the wire_fs_reply */
struct wire_fs_attr attr(const struct fsd_peer *peer);
/* Those of several inodes, by their order in the reply. */
struct wire_fs_attr attr_at(const struct fsd_peer *peer, unsigned int index);
/* The map after @attrs attributes of the latest reply; it must be there. */
struct wire_fs_map map_after(const struct fsd_peer *peer, unsigned int attrs);

/* Operations, by inode number. Those that reply a wire_fs_attr leave it for attr(). */
int do_lookup(struct fsd_peer *p, uint64_t dir, const char *name);
int do_getattr(struct fsd_peer *p, uint64_t ino);
int do_make(struct fsd_peer *p, uint64_t dir, const char *name, uint32_t mode, uint32_t make,
	    const char *target);
int do_link(struct fsd_peer *p, uint64_t ino, uint64_t dir, const char *name);
int do_unlink(struct fsd_peer *p, uint64_t dir, const char *name);
int do_rmdir(struct fsd_peer *p, uint64_t dir, const char *name);
int do_rename(struct fsd_peer *p, uint64_t from, const char *old, uint64_t to, const char *new,
	      uint32_t flags);
int do_open(struct fsd_peer *p, uint64_t ino, uint32_t flags);
int do_release(struct fsd_peer *p, uint64_t ino);
int do_close(struct fsd_peer *p, uint64_t ino, uint64_t size);
int do_truncate(struct fsd_peer *p, uint64_t ino, uint64_t size);
int do_fallocate(struct fsd_peer *p, uint64_t ino, uint32_t mode, uint64_t offset, uint64_t length);
int do_map(struct fsd_peer *p, uint64_t ino, uint64_t offset, uint64_t length);
int do_alloc(struct fsd_peer *p, uint64_t ino, uint64_t offset, uint64_t length);
int do_commit(struct fsd_peer *p, uint64_t ino, uint64_t size);
int do_return(struct fsd_peer *p, uint64_t ino, uint64_t epoch);

/* A client's use of a map. Return: 0, or the status of FS_ALLOC, FS_MAP or FS_COMMIT. */
int do_write(struct fsd_peer *p, uint64_t ino, uint64_t offset, const void *data, size_t length);
int do_read(struct fsd_peer *p, uint64_t ino, uint64_t offset, void *data, size_t length);

/* The inode at a path such as "a/b" ("" is the root), or 0. */
uint64_t walk(struct fsd_peer *p, const char *path);

/**
 * script() - run operations, separated by "; "
 *
 * file P | mkdir P | symlink T P | link P Q | unlink P | rmdir P | rename P Q | noreplace P Q |
 * exchange P Q | chmod MODE P | open P | release P; and checks, which are -EBADMSG if untrue: is P
 * | no P | same P Q | nlink P N | list P N.
 *
 * Return: the status of the first operation that failed, or 0.
 */
int script(struct fsd_peer *p, const char *text);

#endif
