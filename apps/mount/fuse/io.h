/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One transfer of file data: data.c moves the bytes, ask.c finds out where they go. */
#ifndef WEIR_APPS_MOUNT_FUSE_IO_H
#define WEIR_APPS_MOUNT_FUSE_IO_H

#include "apps/mount/donor/call.h"

struct io {
	struct rw_gate_pass pass; /* first: the gate hands it back */
	struct mount *mount;
	struct inode *inode;
	fuse_req_t req;
	struct buffer *buffer;
	bool write;
	bool direct; /* O_DIRECT: the kernel has not looked for the end of the file */
	bool begun;
	bool sequential; /* a write that goes on where the last one ended */
	uint64_t offset; /* in the file */
	uint64_t length;
	uint64_t done; /* bytes settled or under way */
	atomic_uint pending; /* pieces under way, and one for whoever starts them */
	atomic_int status;

	/* Asking where the bytes lie. */
	struct io *next_waiter;
	unsigned int rpcs;
	bool leads_rpc; /* its question is the inode's */
	bool no_ahead; /* there was no room to allocate ahead */
	uint64_t ask, ask_end;
	uint32_t first_chunk;
	uint64_t hole, hole_end; /* gaps here are holes: the donor has just said so */
};

_Static_assert(sizeof(struct io) <= BUFFER_PAGE / 2, "a transfer lives in its buffer's head");

/* The next step of a transfer of which no piece is under way. It may be over when this returns. */
void io_run(struct io *io);

/* Is @io what the calling thread received just now? Then it may block: it is in no callback. */
bool io_may_wait(const struct io *io);

/*
 * Ask the donor where the file's bytes lie from io->done on, or for more of the volume. Whoever has
 * the answer goes on with io_run(), perhaps before these return.
 */
void map_rpc_fetch(struct io *io);
void map_rpc_fetch_volume(struct io *io);

#endif
