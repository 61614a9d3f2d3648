/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Numbers and durations of operations, from the receipt of a request to the reply. To read the
 * clock twice costs over 1 % of the fastest operations. So a mount without --metrics times one in
 * 64, chosen at random.
 */
#ifndef WEIR_APPS_MOUNT_OPERATION_TIME_H
#define WEIR_APPS_MOUNT_OPERATION_TIME_H

#include "apps/mount/mount_page.h"
#include "lib/base/clock.h"
#include "lib/base/counter.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * struct operation_time - counts into @page
 * @times_all: no operation is left out
 * @lock: guards the page's histograms
 */
struct operation_time {
	bool times_all;
	pthread_mutex_t lock;
	struct mount_page *page;
};

static inline void operation_time_init(struct operation_time *time, struct mount_page *page,
				       bool times_all)
{
	pthread_mutex_init(&time->lock, NULL);
	time->page = page;
	time->times_all = times_all;
}

/* Whether this thread times its next operation. */
bool operation_time_is_due(void);

/* Return: the time, or 0: this operation is not timed. */
static inline uint64_t operation_time_begin(const struct operation_time *time)
{
	return time->times_all || operation_time_is_due() ? weir_now_ns() : 0;
}

void operation_time_add(struct operation_time *time, enum operation_kind kind, uint64_t begun_ns);

static inline void operation_time_end(struct operation_time *time, enum operation_kind kind,
				      uint64_t begun_ns)
{
	weir_counter_add(&time->page->operations[kind], 1);
	if (begun_ns)
		operation_time_add(time, kind, begun_ns);
}

#endif
