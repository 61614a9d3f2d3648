/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where a process rings our completion queues. Each that talks to us has a doorbell_page of its own,
 * which no other maps; so it can hold back, or make up, only what it has to say itself. Our
 * own completions ring nic.doorbell_page.
 */
#ifndef WEIR_SOFTNIC_CQ_DOORBELL_H
#define WEIR_SOFTNIC_CQ_DOORBELL_H

#include <stdbool.h>

#include "softnic/shm/shared.h"

struct cq;

/* Of a client. */
struct shm_doorbell_page {
	struct shared_doorbells *shared;
	uint32_t users; /* the client, and doorbells */
	struct cq_doorbell *doorbells; /* nic.lock */
	struct wakeup *wakeups; /* nic.lock */
};

/* One doorbell_page at one completion queue. */
struct cq_doorbell {
	struct shared_cq *at;
	struct shm_doorbell_page *doorbell_page; /* NULL: it is nic.doorbell_page */
	struct cq *cq;
	/* Written under cq->lock. */
	uint32_t heard, solicited_heard; /* arrivals when they were last looked at */
	uint32_t seen, solicited_seen; /* arrivals when there was nothing left */
	uint32_t answered; /* what we told the ringer was consumed */
	bool has_ended; /* cq->doorbells_lock */
	struct cq_doorbell *next; /* of the queue's: the first is for ever its own */
	struct cq_doorbell *next_of_page; /* nic.lock */
};

/**
 * doorbell_page_create() - a client has come
 * @fd: to hand to it, and then to close
 *
 * Return: NULL if memory or descriptors are short.
 */
struct shm_doorbell_page *doorbell_page_create(int *fd);

/**
 * doorbell_attach() - the client may ring that queue from now on
 *
 * Context: nic.lock held; any lock but the queue's doorbells_lock may be.
 * Return: 0 or -ENOMEM.
 */
int doorbell_attach(struct shm_doorbell_page *doorbell_page, struct cq *cq);

/**
 * doorbell_detach_all() - the client has left: what it rang counts, but it rings no more
 *
 * It may have been killed about to wake us, or we have not heard it yet: that is an event.
 *
 * Context: nic.lock held, on the engine's thread.
 */
void doorbell_detach_all(struct shm_doorbell_page *doorbell_page);

/* A queue's side; the first doorbell is part of it. */

/** doorbell_init() - with no doorbell but its own, as large as it is */
void doorbell_init(struct cq *cq);

/** doorbell_fini() - the queue is to be destroyed. No locks held, nobody uses it. */
void doorbell_fini(struct cq *cq);

/** doorbell_next() - a poller's walk from doorbell to doorbell. cq->lock held. */
static inline struct cq_doorbell *doorbell_next(const struct cq_doorbell *l)
{
	return load_acquire(&l->next);
}

/** doorbell_collect() - count what was rung so far. cq->lock held. */
void doorbell_collect(struct cq *cq);

/**
 * doorbell_ack() - tell the ringers how much is left
 * @waiting: completions that were rung and are not taken
 * @all: nothing was left
 *
 * Context: cq->lock held, after doorbell_collect().
 */
void doorbell_ack(struct cq *cq, uint32_t waiting, bool all);

/**
 * doorbell_arm() - have the next ringer wake us
 * @how: ARMED_ANY or ARMED_SOLICITED
 *
 * Each doorbell has an arm, which its ringer takes. But what makes an event is the arm in struct cq,
 * which no peer can reach: so there is one event for one arm, however many ring.
 *
 * Return: true if it has rung already, untold, so that this is an event, and the arm has ended.
 */
bool doorbell_arm(struct cq *cq, uint32_t how);

/** doorbell_disarm() - end the arm; false: there is none, so this is no event */
bool doorbell_disarm(struct cq *cq);

/** doorbell_was_rung() - has a ringer taken its arm? Then end them all. */
bool doorbell_was_rung(struct cq *cq);

/** doorbell_resize() - the queue holds as many from now on */
void doorbell_resize(struct cq *cq);

#endif
