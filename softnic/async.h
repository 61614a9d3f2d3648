/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asynchronous events, and the context they are read from.
 */
#ifndef SOFTNIC_ASYNC_H
#define SOFTNIC_ASYNC_H

#include <pthread.h>

#include "verbs.h"

struct qp;

struct async_event {
	struct ibv_async_event event;
	struct async_event *next;
};

struct context {
	struct verbs_context verbs;	/* verbs.context is what the program holds */
	pthread_mutex_t lock;
	struct async_event *first, **last;
};

static inline struct context *to_context(struct ibv_context *c)
{
	return (struct context *)((char *)c - offsetof(struct context, verbs.context));
}

/** async_init() - 0 or a negative errno */
int async_init(struct context *c);
void async_fini(struct context *c);

/** async_raise() - something happened to a queue pair. Any thread; takes no other lock. */
void async_raise(struct qp *qp, enum ibv_event_type type);

/** async_forget() - the queue pair goes: drop its events, wait until the rest are acked */
void async_forget(struct qp *qp);

#endif
