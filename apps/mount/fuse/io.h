/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A transfer of file data: io.c moves the bytes, map_rpc.c finds out where. */
#ifndef WEIR_APPS_MOUNT_FUSE_IO_H
#define WEIR_APPS_MOUNT_FUSE_IO_H

#include <semaphore.h>

#include "apps/mount/donor/call.h"

struct io {
	struct rw_gate_pass pass; /* first member: the gate passes it to granted() */
	struct mount *mount;
	struct inode *inode;
	fuse_req_t req;
	struct buffer *buffer; /* NULL: of one of the next two */
	struct io_at_once *at_once;
	/* of a program that posted the request: called at the end, outside the gate */
	void (*ended)(struct io *io, int rc);
	struct weir_memory *memory; /* contains @data */
	char *data;
	bool write;
	bool direct; /* O_DIRECT: the kernel has not checked the end of the file */
	bool append; /* through the kernel's pages, whose size may be too large */
	bool begun;
	bool moved; /* an append, to the donor's end of the file */
	bool sequential; /* a write that continues the previous one */
	uint64_t begun_ns; /* for metrics */
	struct weir_span *span, *part; /* @part: of the step that is under way */
	uint64_t offset; /* in the file */
	uint64_t length;
	uint64_t done; /* bytes completed or in flight */
	atomic_uint pending; /* pieces in flight, plus one while pieces are being started */
	atomic_int status;

	/* Map request state. */
	struct io *next_waiter;
	unsigned int rpcs;
	bool leads_rpc; /* this transfer's map request is recorded in the inode */
	bool no_ahead; /* no space to allocate ahead */
	uint64_t ask, ask_end;
	uint32_t first_chunk;
	uint64_t hole, hole_end; /* gaps in this range are holes, by the donor's last reply */
};

_Static_assert(sizeof(struct io) <= BUFFER_PAGE / 2, "a transfer lives in its buffer's head");

/**
 * struct io_at_once - a transfer for this mount itself
 * @inode: the caller has entered its gate
 * @memory: contains @data
 * @below_end: of a read, which ends at the end of the file; receives its bytes
 * @only_places: of a write: finds or makes the place of each byte, and moves none
 */
struct io_at_once {
	struct inode *inode;
	struct weir_memory *memory;
	char *data;
	uint64_t offset, length;
	bool write, only_places;
	uint64_t *below_end;
	sem_t done;
	int rc;
};

/*
 * Moves bytes, and waits. A write changes neither size nor times of the file. Context: outside
 * callbacks, sleeps. Return: 0, or an errno for the program.
 */
int io_at_once(struct io_at_once *at_once);

/*
 * Runs the next step of a transfer with no piece in flight. The transfer may have ended on return.
 */
void io_run(struct io *io);

/* Whether the calling thread has just received @io and is in no callback, so that it may block. */
bool io_may_wait(const struct io *io);

/*
 * Ask the donor for the map from io->done on, or for more chunks of the volume. The reply's handler
 * continues with io_run(), possibly before these calls return.
 */
void map_rpc_fetch(struct io *io);
void map_rpc_fetch_volume(struct io *io);

#endif
