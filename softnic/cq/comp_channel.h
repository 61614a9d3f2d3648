/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion channels. The descriptor is an epoll, so that it can be polled, and set to not
 * block, as any other channel's. It is readable while events wait, by an eventfd; or if
 * somebody pulled a wakeup while a queue was armed, whose event is then made by whoever looks.
 * That ends in an event, whatever the arms say: who found it readable may wait for one.
 */
#ifndef WEIR_SOFTNIC_CQ_COMP_CHANNEL_H
#define WEIR_SOFTNIC_CQ_COMP_CHANNEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "softnic/verbs/verbs.h"

struct wakeup;
struct cq;

struct comp_channel {
	struct ibv_comp_channel ibv;
	uint64_t number; /* no other of this process had it */
	pthread_mutex_t lock; /* a leaf but for the queues' doorbells_lock and ibv.mutex */
	struct cq *cqs;
	struct cq *first_fired, **last_fired;
	int ready_fd; /* readable while there are some */
	struct wakeup *only; /* as long as there was no other */
	int wakeups_fd; /* else an epoll of all that there are, or -1 */
	bool is_ready; /* ready_fd is */
	bool listens; /* to wakeups: they make the channel readable */
	uint32_t began; /* to listen: how often */
	struct wakeup *wakeups; /* nic.lock */
};

static inline struct comp_channel *to_comp_channel(struct ibv_comp_channel *channel)
{
	return (struct comp_channel *)channel;
}

/* What the epoll says is readable. */
enum { CHANNEL_READY, CHANNEL_WAKEUPS, CHANNEL_SOURCES };

/** comp_channel_init() - with its descriptors. 0 or a negative errno. */
int comp_channel_init(struct comp_channel *c);
/** comp_channel_fini() - no queue and no wakeup is there any more */
void comp_channel_fini(struct comp_channel *c);

/** comp_channel_add(), comp_channel_del() - a completion queue reports there; takes back its events */
void comp_channel_add(struct comp_channel *c, struct cq *cq);
void comp_channel_del(struct comp_channel *c, struct cq *cq);

/** comp_channel_arm() - the next completion is an event. @how: ARMED_ANY or ARMED_SOLICITED. */
void comp_channel_arm(struct comp_channel *c, struct cq *cq, uint32_t how);

/** comp_channel_fire() - one event more, of a queue whose arm the caller ended. Any thread. */
void comp_channel_fire(struct comp_channel *c, struct cq *cq);

/* Zeroed at first. */
struct comp_channel_news {
	bool pulled; /* the epoll said CHANNEL_WAKEUPS */
	uint32_t began; /* the channel's, before it did */
};

/**
 * comp_channel_take() - take the oldest event
 * @news: since the last call; cleared
 *
 * Return: whose it is, and who is to acknowledge it; NULL: there is none.
 */
struct cq *comp_channel_take(struct comp_channel *c, struct comp_channel_news *news);

/** comp_channel_watch(), comp_channel_unwatch() - whoever pulls that wakeup wakes who waits for events */
int comp_channel_watch(struct comp_channel *c, struct wakeup *wakeup);
void comp_channel_unwatch(struct comp_channel *c, struct wakeup *wakeup);

#endif
