/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The messages of mounts on their way from the listener's thread to the server's, which takes all
 * that have come at once.
 */
#ifndef WEIR_APPS_SERVE_FILES_REQUESTS_H
#define WEIR_APPS_SERVE_FILES_REQUESTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "apps/serve/files/staging.h"

/* A message of a mount. @call: NULL: it has its reply, and only says that the mount is there. */
struct file_request {
	TAILQ_ENTRY(file_request) entry;
	struct staging_conn *conn;
	struct weir_call *call;
	size_t length;
	uint8_t message[];
};

TAILQ_HEAD(file_request_list, file_request);

/**
 * struct file_requests - the queue
 * @lock: guards what follows
 * @arrived: a request, or the end
 * @list: in order
 * @stops: the server shall end; opening a volume reads it without the lock
 * @is_closed: nobody serves requests any more
 */
struct file_requests {
	pthread_mutex_t lock;
	pthread_cond_t arrived;
	struct file_request_list list;
	bool stops, is_closed;
};

void file_requests_init(struct file_requests *requests);
void file_requests_fini(struct file_requests *requests);

/**
 * file_requests_add() - queue a copy of a message
 * @call: see struct file_request
 *
 * A closed queue drops the message: its mount finds the next server.
 *
 * Return: 0; -ENOMEM: @call has no reply.
 */
int file_requests_add(struct file_requests *requests, struct staging_conn *conn,
		      struct weir_call *call, const void *message, size_t length);

/*
 * Waits for requests until @until_ns, and appends them to @list. Return: whether the server goes
 * on.
 */
bool file_requests_await(struct file_requests *requests, struct file_request_list *list,
			 uint64_t until_ns);

/* Asks the server to end. */
void file_requests_stop(struct file_requests *requests);

/* Drops the requests of @list and of the queue, and all that come. */
void file_requests_close(struct file_requests *requests, struct file_request_list *list);

/* Replies to a request, and frees it. @length: 0: the server ends, or the mount awaits no reply. */
void file_request_end(struct file_request *request, const void *bytes, size_t length);

/* The operation that a message asks for; 0: the message is too short to say. */
enum wire_fs_op file_message_op(const void *message, size_t length);

#endif
