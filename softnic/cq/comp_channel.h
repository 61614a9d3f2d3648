/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion channels.
 *
 * The channel's descriptor is an epoll descriptor, so programs can poll it and make it
 * non-blocking as on any device. Two sources make the descriptor readable: an eventfd while
 * events are queued, and a wakeup socket that a peer wrote while a CQ was armed. The reader
 * then turns the wakeup into an event. A wakeup always ends in an event, even for a CQ no
 * longer armed, because a program that saw the descriptor readable may block in
 * ibv_get_cq_event().
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
	uint64_t number; /* unique in this process, never reused */
	pthread_mutex_t lock; /* a leaf, except for doorbells_lock and ibv.mutex of its CQs */
	struct cq *cqs;
	struct cq *first_fired, **last_fired;
	int ready_fd; /* eventfd, readable while events are queued */
	struct wakeup *only; /* the first wakeup, until a second is added */
	int wakeups_fd; /* then an epoll of all wakeups; -1 before */
	bool is_ready; /* ready_fd is readable */
	bool listens; /* wakeups make the channel readable */
	uint32_t began; /* how often the channel began to listen */
	struct wakeup *wakeups; /* nic.lock */
};

static inline struct comp_channel *to_comp_channel(struct ibv_comp_channel *channel)
{
	return (struct comp_channel *)channel;
}

/* The source of a readable channel, in epoll_event.data. */
enum { CHANNEL_READY, CHANNEL_WAKEUPS, CHANNEL_SOURCES };

/**
 * comp_channel_init() - create the channel's descriptors
 *
 * Return: 0 or a negative errno.
 */
int comp_channel_init(struct comp_channel *c);
/** comp_channel_fini() - close the descriptors; all CQs and wakeups are gone */
void comp_channel_fini(struct comp_channel *c);

/** comp_channel_add(), comp_channel_del() - attach a CQ; detach a CQ and drop its events */
void comp_channel_add(struct comp_channel *c, struct cq *cq);
void comp_channel_del(struct comp_channel *c, struct cq *cq);

/**
 * comp_channel_arm() - make the next completion an event
 * @how: ARMED_ANY or ARMED_SOLICITED
 */
void comp_channel_arm(struct comp_channel *c, struct cq *cq, uint32_t how);

/**
 * comp_channel_fire() - queue one event of a CQ that the caller disarmed
 *
 * Context: Any thread.
 */
void comp_channel_fire(struct comp_channel *c, struct cq *cq);

/* What one reader saw of the channel since its last take; zeroed at first. */
struct comp_channel_news {
	bool pulled; /* the epoll reported CHANNEL_WAKEUPS */
	uint32_t began; /* the channel's @began before that report */
};

/**
 * comp_channel_take() - take the oldest event
 * @news: what the caller saw since its last call; cleared
 *
 * Return: the CQ of the event, which the caller must acknowledge; NULL if no event is queued.
 */
struct cq *comp_channel_take(struct comp_channel *c, struct comp_channel_news *news);

/**
 * comp_channel_watch(), comp_channel_unwatch() - let a wakeup socket wake the channel's
 * readers; stop
 */
int comp_channel_watch(struct comp_channel *c, struct wakeup *wakeup);
void comp_channel_unwatch(struct comp_channel *c, struct wakeup *wakeup);

#endif
