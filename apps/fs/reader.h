/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Threads that read parts of files. */
#ifndef WEIR_APPS_FS_READER_H
#define WEIR_APPS_FS_READER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "apps/fs/progress.h"

#define READER_THREADS_MAX 64u
#define READER_QUEUE 64u

struct reader_part {
	char *path;
	uint64_t offset, length;
};

/**
 * struct reader - threads with a queue
 * @flags: of open(2)
 * @lock: guards what follows
 * @changed: the queue has changed
 * @queue: @nr parts from @first on
 * @ends: no part follows
 * @progress: its @done and @failures, of parts that could not be read, after a message each
 */
struct reader {
	const char *cmd;
	int flags;
	unsigned int threads;
	pthread_t thread[READER_THREADS_MAX];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct reader_part queue[READER_QUEUE];
	unsigned int first, nr;
	bool ends;
	struct fs_progress progress;
	uint64_t failures;
};

/**
 * reader_start() - start the threads
 * @threads: at most READER_THREADS_MAX
 *
 * The caller owes a reader_finish().
 *
 * Return: 0, or a negative errno.
 */
int reader_start(struct reader *reader, const char *cmd, int flags, unsigned int threads);

/* Has a file read, in parts. Waits while the queue is full. Return: 0 or -ENOMEM. */
int reader_add(struct reader *reader, const char *path, uint64_t size);

/* Prints a failure, and counts it. */
void reader_fail(struct reader *reader, const char *path, int error);

/* Returns when all parts have been read, or soon after a stop_requested(). */
void reader_finish(struct reader *reader);

#endif
