/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How long operations take, from the request's receipt to its reply. For metrics. */
#ifndef WEIR_APPS_MOUNT_FUSE_OPERATION_TIME_H
#define WEIR_APPS_MOUNT_FUSE_OPERATION_TIME_H

#include "core/base/histogram.h"
#include "lib/base/clock.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum operation_kind { OPERATION_READ, OPERATION_WRITE, OPERATION_METADATA, OPERATION_KINDS };

/**
 * struct operation_time - starts as zeroes, and counts nothing then
 * @is_counted: set before the first operation; otherwise no clock is read
 * @lock: guards @duration_ns; operation_time_init() makes it
 */
struct operation_time {
	bool is_counted;
	pthread_mutex_t lock;
	struct weir_histogram duration_ns[OPERATION_KINDS];
};

static inline void operation_time_init(struct operation_time *time)
{
	pthread_mutex_init(&time->lock, NULL);
	time->is_counted = true;
}

/* Return: the time, or 0 if nothing is counted. */
static inline uint64_t operation_time_begin(const struct operation_time *time)
{
	return time->is_counted ? weir_now_ns() : 0;
}

static inline void operation_time_end(struct operation_time *time, enum operation_kind kind,
				      uint64_t begun_ns)
{
	uint64_t taken_ns;

	if (!time->is_counted)
		return;
	taken_ns = weir_now_ns() - begun_ns;
	pthread_mutex_lock(&time->lock);
	weir_histogram_add(&time->duration_ns[kind], taken_ns);
	pthread_mutex_unlock(&time->lock);
}

#endif
