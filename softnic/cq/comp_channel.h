/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion channels. The descriptor is an epoll, so that it can be polled, and set to not
 * block, as any other channel's. It is readable while events wait, by an eventfd; or if
 * somebody pulled a cord while a queue was armed, whose event is then made by whoever looks.
 * That ends in an event, whatever the arms say: who found it readable may wait for one.
 */
#ifndef WEIR_SOFTNIC_CQ_COMP_CHANNEL_H
#define WEIR_SOFTNIC_CQ_COMP_CHANNEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "softnic/verbs/verbs.h"

struct cord;
struct cq;

struct channel {
	struct ibv_comp_channel ibv;
	uint64_t number;		/* no other of this process had it */
	pthread_mutex_t lock;		/* a leaf but for the queues' lines_lock and ibv.mutex */
	struct cq *cqs;
	struct cq *first_fired, **last_fired;
	int ready_fd;			/* readable while there are some */
	struct cord *only;		/* as long as there was no other */
	int cords_fd;			/* else an epoll of all that there are, or -1 */
	bool is_ready;			/* ready_fd is */
	bool listens;			/* to cords: they make the channel readable */
	uint32_t began;			/* to listen: how often */
	struct cord *cords;		/* nic.lock */
};

static inline struct channel *to_channel(struct ibv_comp_channel *channel)
{
	return (struct channel *)channel;
}

/* What the epoll says is readable. */
enum { CHANNEL_READY, CHANNEL_CORDS, CHANNEL_SOURCES };

/** channel_init() - with its descriptors. 0 or a negative errno. */
int channel_init(struct channel *c);
/** channel_fini() - no queue and no cord is there any more */
void channel_fini(struct channel *c);

/** channel_add(), channel_del() - a completion queue reports there; takes back its events */
void channel_add(struct channel *c, struct cq *cq);
void channel_del(struct channel *c, struct cq *cq);

/** channel_arm() - the next completion is an event. @how: ARMED_ANY or ARMED_SOLICITED. */
void channel_arm(struct channel *c, struct cq *cq, uint32_t how);

/** channel_fire() - one event more, of a queue whose arm the caller ended. Any thread. */
void channel_fire(struct channel *c, struct cq *cq);

/* Zeroed at first. */
struct channel_news {
	bool pulled;		/* the epoll said CHANNEL_CORDS */
	uint32_t began;		/* the channel's, before it did */
};

/**
 * channel_take() - take the oldest event
 * @news: since the last call; cleared
 *
 * Return: whose it is, and who is to acknowledge it; NULL: there is none.
 */
struct cq *channel_take(struct channel *c, struct channel_news *news);

/** channel_watch(), channel_unwatch() - whoever pulls that cord wakes who waits for events */
int channel_watch(struct channel *c, struct cord *cord);
void channel_unwatch(struct channel *c, struct cord *cord);

#endif
