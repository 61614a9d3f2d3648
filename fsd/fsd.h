/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file server at the donor: names, attributes and maps of a tenant's files.
 *
 * It answers the messages of wire/fs.h and has no I/O, clock or thread. Its host supplies memory,
 * time and a way to reply, so a test can be the host.
 *
 * The host (the donor's thread) serialises all calls on a struct fsd. The host's functions run
 * during these calls and must not call back.
 */
#ifndef WEIR_FSD_FSD_H
#define WEIR_FSD_FSD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/fs.h"

#define FSD_MESSAGE_MAX 16000 /* bytes of a reply */
#define FSD_NEVER UINT64_MAX

struct fsd;
struct fsd_client;

enum fsd_data_kind {
	FSD_DATA_READ, /* from the volume to the client's staging area */
	FSD_DATA_HOLE, /* zeroes to the staging area */
	FSD_DATA_WRITE, /* from the staging area to the volume */
	FSD_DATA_ZERO, /* zeroes to the volume */
};

/**
 * struct fsd_data - bytes for the host to move
 * @kind: how
 * @call: the request; the host moves the bytes before the answer
 * @volume: place in the volume
 * @place: place in the staging area
 * @length: bytes
 * @before, @after: FSD_DATA_WRITE: bytes of @length, at the start and at the end, that are zeroes
 *	instead of the staging area's
 */
struct fsd_data {
	enum fsd_data_kind kind;
	void *call;
	uint64_t volume, place, length;
	uint32_t before, after;
};

/**
 * struct fsd_host - services that the file server needs from its host
 * @take_chunk: allocate zeroed memory for the volume, accessible to the clients and kept until
 *	fsd_close(). @chunk receives the clients' address of the memory, @memory the local
 *	address. Return: 0 or -ENOSPC
 * @room: bytes that @take_chunk could still allocate
 * @tell: send a one-way message to a client. Return: 0; -EAGAIN not now
 * @answer: reply to a request, now or later; each @call exactly once
 * @wall: the time of day
 * @clock_ns: monotonic time
 * @arg: passed to all functions
 * @data: moves bytes: clients cannot access the volume, and have a staging area. NULL: clients
 *	access the volume. Pieces with a common byte take effect in the order of the calls
 *
 * With @data the volume's memory is not zeroed, and @take_chunk's *memory is not used. Freed
 * blocks are free for the next request. So the host must not begin the next pieces before the
 * first request has taken effect for good. Nobody caches names or holds maps, and no request is
 * deferred: fsd_work() and fsd_expired() have nothing to do. The state depends on the requests
 * and the time of day only, so a server with the same requests has the same state.
 */
struct fsd_host {
	int (*take_chunk)(void *arg, uint64_t length, struct wire_fs_chunk *chunk, void **memory);
	uint64_t (*room)(void *arg);
	int (*tell)(void *arg, void *peer, const void *message, size_t length);
	void (*answer)(void *arg, void *call, const void *reply, size_t length);
	void (*wall)(void *arg, struct wire_fs_time *now);
	uint64_t (*clock_ns)(void *arg);
	void *arg;
	void (*data)(void *arg, const struct fsd_data *piece);
};

/**
 * struct fsd_options - fixed for the life of a file server
 * @bytes_max: most bytes of file data
 * @chunk_bytes: growth of the volume per chunk; a multiple of FS_BLOCK
 * @hash_key: random, so that clients cannot choose names that collide
 * @uid: owner of the root directory
 * @gid: group of the root directory
 * @meta_max: most bytes of names and other metadata; 0: a part of @bytes_max
 */
struct fsd_options {
	uint64_t bytes_max;
	uint64_t chunk_bytes;
	uint8_t hash_key[16];
	uint32_t uid, gid;
	uint64_t meta_max;
};

/**
 * fsd_open() - create an empty file system
 * @host: copied
 *
 * The caller owes an fsd_close().
 *
 * Return: 0; -ENOMEM.
 */
int fsd_open(const struct fsd_host *host, const struct fsd_options *options, struct fsd **fsd);

/*
 * Frees everything except the chunks, which belong to the host. Frees the remaining clients, too,
 * and answers no waiting call.
 */
void fsd_close(struct fsd *fsd);

/**
 * fsd_join() - add a client
 * @peer: passed to the host's tell()
 *
 * The caller owes an fsd_leave().
 *
 * Return: 0; -ENOMEM.
 */
int fsd_join(struct fsd *fsd, void *peer, struct fsd_client **client);

/**
 * fsd_leave() - remove a client, after its QPs are gone
 *
 * Releases the client's opens, locks and maps, and frees @client. Also answers its waiting calls,
 * so that each call is answered exactly once.
 */
void fsd_leave(struct fsd_client *client);

/**
 * fsd_request() - handle a client's message
 * @call: passed to the host's answer(), during this call or later; NULL if no reply is wanted
 * @message: any bytes, any alignment; borrowed for the call
 */
void fsd_request(struct fsd_client *client, void *call, const void *message, size_t length);

/* Whether a client's message may change the state, by its operation. */
bool fsd_may_change(const void *message, size_t length);

/* Whether requests so far have freed blocks for the next. For hosts with data(). */
bool fsd_has_freed(const struct fsd *fsd);

/**
 * fsd_work() - do a slice of background work
 *
 * Zeroes freed memory, takes a chunk ahead of need, goes on with a copy of a directory, and retries
 * deferred requests. A call takes about a millisecond. While fsd_has_work(), the host calls again
 * soon, but not immediately.
 */
void fsd_work(struct fsd *fsd);
bool fsd_has_work(const struct fsd *fsd);

/* The host's clock at which to call fsd_expired(); FSD_NEVER if nothing waits. */
uint64_t fsd_deadline_ns(const struct fsd *fsd);
void fsd_expired(struct fsd *fsd); /* no-op if called too early */

struct fsd_info {
	uint64_t files; /* inodes */
	uint64_t bytes_taken; /* in chunks */
	uint64_t bytes_used; /* in extents of files and in limbo */
	uint64_t bytes_limbo; /* freed, but clients may still write there */
	uint64_t bytes_dirty; /* freed, not zeroed yet */
	unsigned int mounted;
};

void fsd_info(const struct fsd *fsd, struct fsd_info *info);

#endif
