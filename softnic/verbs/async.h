/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asynchronous events, and the context from which a program reads events.
 */
#ifndef WEIR_SOFTNIC_VERBS_ASYNC_H
#define WEIR_SOFTNIC_VERBS_ASYNC_H

#include <pthread.h>

#include "verbs.h"

/* The object of an event, which cannot be destroyed before the event is acknowledged. */
struct async_subject {
	void *element; /* as in struct ibv_async_event */
	pthread_mutex_t *mutex; /* these three point to the object's fields of verbs.h */
	pthread_cond_t *cond;
	uint32_t *completed;
	uint32_t delivered; /* the context's lock */
};

struct async_event {
	struct ibv_async_event event;
	struct async_subject *subject; /* NULL: the port or the device */
	struct async_event *next;
};

struct context {
	struct verbs_context verbs; /* verbs.context is what the program holds */
	pthread_mutex_t lock;
	struct async_event *first, **last;
	struct context *next; /* in the list of open contexts */
};

static inline struct context *to_context(struct ibv_context *c)
{
	return (struct context *)((char *)c - offsetof(struct context, verbs.context));
}

/** async_init() - 0 or a negative errno */
int async_init(struct context *c);
void async_fini(struct context *c);

/**
 * async_raise() - queue an event about an object
 * @context: the object's context
 * @subject: kept until async_forget()
 * @type: the event
 *
 * Context: Any thread; takes no other lock.
 */
void async_raise(struct ibv_context *context, struct async_subject *subject,
		 enum ibv_event_type type);

/** async_raise_ports() - queue an event about each port, to every open context */
void async_raise_ports(enum ibv_event_type type);

/** async_raise_device() - queue an event about the device, to every open context */
void async_raise_device(enum ibv_event_type type);

/**
 * async_on_device() - make async_raise_device() also call a function, last
 * @fn: called by the thread that raises; replaces an earlier function
 *
 * Context: Any thread.
 */
void async_on_device(void (*fn)(enum ibv_event_type type));

/** async_forget() - before destroying an object, drop its events and wait for acknowledgements */
void async_forget(struct ibv_context *context, struct async_subject *subject);

#endif
