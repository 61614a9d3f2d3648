/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A file server on a disk that crashes, a mount that repeats its calls, and a naive account of the
 * files: an array for each. The server runs batches of random requests. At a given write to the
 * disk the server dies, and the write is torn. Another goes on, or the mount dies too. Then the
 * files must be those of the account before the batch or after it, and after it if the mount had
 * a reply. Now and then only the connection dies. The next has another staging area, and some
 * bytes move no earlier than they must.
 */
#ifndef WEIR_TESTS_FSD_JOURNAL_WORLD_H
#define WEIR_TESTS_FSD_JOURNAL_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "fsd/journal/service.h"

#define WORLD_BYTES (16u << 20)
#define WORLD_FILES 4u
#define WORLD_FILE_MAX 20000u
#define WORLD_BATCH_MAX 4u
#define WORLD_MOVES_MAX 256u

/* @exists: it has a name; @torn: bytes that an unfinished write may have changed */
struct account_file {
	bool exists;
	uint32_t size;
	uint8_t bytes[WORLD_FILE_MAX];
	bool torn[WORLD_FILE_MAX];
};

struct account {
	struct account_file file[WORLD_FILES];
};

struct crash_call;

/* A call on its way by connection number @conn, until the server has given it a reply. */
struct crash_request {
	struct crash_call *call;
	unsigned int conn;
	bool has_ended;
};

/* Bytes that the server has begun to move. */
struct crash_move {
	struct fsd_data piece;
	const struct crash_request *request;
	int *status;
};

/* @status: expected; @replies: how many came; @got: the last one's status; @place: in the slot */
struct crash_call {
	uint8_t message[20000];
	size_t length;
	int status, got;
	unsigned int replies;
	bool reads, is_given_up;
	struct crash_request request[2]; /* by the last two connections */
	uint64_t place, expected_length;
	uint8_t *expected;
};

struct crash_world {
	uint64_t random;
	uint8_t *disk;
	uint64_t writes, crash_at; /* writes to the disk so far; the one that fails; 0: none */
	bool is_down;
	struct fsd_service *service;
	unsigned int conn; /* number of the mount's connection */
	uint8_t *area[2]; /* the staging areas of the last two */
	struct crash_move move[WORLD_MOVES_MAX];
	unsigned int nr_moves;
	uint64_t mount, number, now;
	struct account before, after; /* of the calls that have no reply */
	uint64_t ino[WORLD_FILES];
	struct crash_call call[WORLD_BATCH_MAX];
	unsigned int nr_calls, done; /* the first @done have their replies */
	unsigned int checkpoints;
};

/* Runs @batches batches of @seed. @crash_at: see struct crash_world. Aborts on a mistake. */
void world_run(struct crash_world *world, uint64_t seed, uint64_t crash_at, unsigned int batches);

#endif
