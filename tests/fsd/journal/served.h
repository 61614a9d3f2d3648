/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A file server in memory, for tests of single calls: its connections have a staging area each, and
 * bytes move no earlier than they must.
 */
#ifndef WEIR_TESTS_FSD_JOURNAL_SERVED_H
#define WEIR_TESTS_FSD_JOURNAL_SERVED_H

#include <stdbool.h>

#include "fsd/journal/service.h"

#define SERVED_MOVES_MAX 64u

struct served_conn {
	uint8_t area[8 * FS_BLOCK];
};

/*
 * A call by a connection. @replies: that came; @status and @length: of the last; @length 0: nobody
 * knows the reply
 */
struct served_call {
	struct served_conn *conn;
	struct wire_fs_call head;
	unsigned int replies;
	int status;
	size_t length;
	uint8_t reply[512];
};

struct served_move {
	struct fsd_data piece;
	struct served_call *call;
	int *status;
};

/* @disk_error, @move_error: fails writes of the server, and of files' bytes; 0: none fails */
struct served {
	uint8_t *disk;
	uint64_t bytes, now, random, writes;
	int disk_error, move_error;
	struct fsd_service *service;
	struct served_move move[SERVED_MOVES_MAX];
	unsigned int nr_moves;
};

/* A server of a new volume. */
void served_init(struct served *s, uint64_t bytes);
void served_fini(struct served *s);

/* Another server goes on. Return: as fsd_service_open(). */
int served_reopen(struct served *s);

/**
 * served_send() - pass a call to the server
 * @call: with its connection and head
 * @fixed, @size: the message's fixed part
 * @name: NULL, or a string behind it
 *
 * Return: as fsd_service_request().
 */
int served_send(struct served *s, struct served_call *call, const union wire_fs_fixed *fixed,
		size_t size, const char *name);

/* The same, and a commit. Return: the reply's status. */
int served_ask(struct served *s, struct served_call *call, const union wire_fs_fixed *fixed,
	       size_t size, const char *name);

#endif
