/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asynchronous events, and the context they are read from.
 */
#ifndef WEIR_SOFTNIC_VERBS_ASYNC_H
#define WEIR_SOFTNIC_VERBS_ASYNC_H

#include <pthread.h>

#include "verbs.h"

/* What an event is about, when it must be acknowledged before that is destroyed. */
struct async_subject {
	void *element; /* as struct ibv_async_event has it */
	pthread_mutex_t *mutex; /* these three are the object's own, as verbs.h has them */
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
	struct context *next; /* of all that are open */
};

static inline struct context *to_context(struct ibv_context *c)
{
	return (struct context *)((char *)c - offsetof(struct context, verbs.context));
}

/** async_init() - 0 or a negative errno */
int async_init(struct context *c);
void async_fini(struct context *c);

/**
 * async_raise() - something happened to an object
 * @context: where it was made
 * @subject: kept until async_forget()
 * @type: what
 *
 * Context: Any thread; takes no other lock.
 */
void async_raise(struct ibv_context *context, struct async_subject *subject,
		 enum ibv_event_type type);

/** async_raise_ports() - something happened to all ports: each open context learns of each */
void async_raise_ports(enum ibv_event_type type);

/** async_raise_device() - something happened to the devices: each open context learns of it */
void async_raise_device(enum ibv_event_type type);

/**
 * async_on_device() - have async_raise_device() call a function too, after the contexts
 * @fn: called in the context of async_raise_device(); the only one, whoever asks
 *
 * Context: Any thread.
 */
void async_on_device(void (*fn)(enum ibv_event_type type));

/** async_forget() - the object goes: drop its events, wait until the rest are acked */
void async_forget(struct ibv_context *context, struct async_subject *subject);

#endif
