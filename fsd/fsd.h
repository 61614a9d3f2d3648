/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file system at the donor: names, attributes and maps of one tenant's files.
 *
 * It answers the messages of wire/fs.h and does nothing else: no I/O, no clock, no thread. Its
 * host gives it memory, time and a way to answer, so that a test can be the host.
 *
 * All calls on one struct fsd are serialised by the host (the donor's thread). The host's
 * functions are called during them, and must not call back.
 */
#ifndef WEIR_FSD_FSD_H
#define WEIR_FSD_FSD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/fs.h"

#define FSD_MESSAGE_MAX 16000 /* bytes of an answer */
#define FSD_NEVER UINT64_MAX

struct fsd;
struct fsd_client;

/**
 * struct fsd_host - what the file system wants from whoever runs it
 * @take_chunk: memory for the volume, zeroed and open to the clients; @chunk says how they reach
 *	it, @memory where it lies here. It is kept until fsd_close(). 0 or -ENOSPC
 * @room: bytes that @take_chunk could still give
 * @tell: send a one-way message to a client
 * @answer: answer a request, now or long after; each @call exactly once
 * @wall: the time of day
 * @clock_ns: monotonic
 */
struct fsd_host {
	int (*take_chunk)(void *arg, uint64_t length, struct wire_fs_chunk *chunk, void **memory);
	uint64_t (*room)(void *arg);
	void (*tell)(void *arg, void *peer, const void *message, size_t length);
	void (*answer)(void *arg, void *call, const void *reply, size_t length);
	void (*wall)(void *arg, struct wire_fs_time *now);
	uint64_t (*clock_ns)(void *arg);
	void *arg;
};

/**
 * struct fsd_options - fixed for the life of a file system
 * @bytes_max: of file data
 * @chunk_bytes: the volume grows by this much; a multiple of FS_BLOCK
 * @hash_key: random, so that nobody can choose names that collide
 * @uid, @gid: who owns the root directory
 */
struct fsd_options {
	uint64_t bytes_max;
	uint64_t chunk_bytes;
	uint8_t hash_key[16];
	uint32_t uid, gid;
};

/**
 * fsd_open() - an empty file system
 * @host: copied
 *
 * Return: 0; -ENOMEM.
 */
int fsd_open(const struct fsd_host *host, const struct fsd_options *options, struct fsd **fsd);

/* Frees all but the chunks, which are the host's. All clients have left. */
void fsd_close(struct fsd *fsd);

/**
 * fsd_join() - a client has come
 * @peer: handed to the host's tell()
 *
 * Return: 0; -ENOMEM.
 */
int fsd_join(struct fsd *fsd, void *peer, struct fsd_client **client);

/**
 * fsd_leave() - a client's QPs are gone
 *
 * Releases what it had open, its locks and its maps; frees @client. Its calls that wait are
 * answered, too: each call exactly once.
 */
void fsd_leave(struct fsd_client *client);

/**
 * fsd_request() - a message of a client has arrived
 * @call: handed to the host's answer(), during this call or later; NULL if no answer is wanted
 * @message: any bytes at all, any alignment; borrowed for the call
 */
void fsd_request(struct fsd_client *client, void *call, const void *message, size_t length);

/**
 * fsd_work() - do a little of what is to be done
 *
 * Zeroes memory that was freed, takes a chunk before it is needed, and goes on with requests that
 * want so much memory that it could not all be had at once. To be called again, soon but not at
 * once, while fsd_has_work(): a call takes about a millisecond.
 */
void fsd_work(struct fsd *fsd);
bool fsd_has_work(const struct fsd *fsd);

/* When fsd_expired() wants to be called, on the host's clock; FSD_NEVER if nothing waits. */
uint64_t fsd_deadline_ns(const struct fsd *fsd);
void fsd_expired(struct fsd *fsd); /* too early: nothing happens */

struct fsd_info {
	uint64_t files; /* inodes */
	uint64_t bytes_taken; /* chunks */
	uint64_t bytes_used; /* extents of files, and in limbo */
	uint64_t bytes_limbo; /* freed, but someone may still write there */
	uint64_t bytes_dirty; /* freed, to be zeroed */
	unsigned int mounted;
};

void fsd_info(const struct fsd *fsd, struct fsd_info *info);

#endif
