/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The doorbells of our completion queues.
 *
 * Each client gets a doorbell page of its own, which no other process maps. So a client can
 * suppress or forge only its own arrivals. Our own completions ring nic.doorbell_page.
 */
#ifndef WEIR_SOFTNIC_CQ_DOORBELL_H
#define WEIR_SOFTNIC_CQ_DOORBELL_H

#include <stdbool.h>

#include "softnic/shm/shared.h"

struct cq;

/* The doorbell page of a client. */
struct shm_doorbell_page {
	struct shared_doorbells *shared;
	uint32_t users; /* references: the client, and each doorbell */
	struct cq_doorbell *doorbells; /* nic.lock */
	struct wakeup *wakeups; /* nic.lock */
};

/* The doorbell of one CQ in one page. */
struct cq_doorbell {
	struct shared_cq *at;
	struct shm_doorbell_page *doorbell_page; /* NULL: it is nic.doorbell_page */
	struct cq *cq;
	/* Written under cq->lock. */
	uint32_t heard, solicited_heard; /* arrivals at the last collect */
	uint32_t seen, solicited_seen; /* arrivals when the CQ was last empty */
	uint32_t answered; /* the count of consumed arrivals last published */
	bool has_ended; /* cq->doorbells_lock */
	struct cq_doorbell *next; /* in the CQ's list, whose first is always its own */
	struct cq_doorbell *next_of_page; /* nic.lock */
};

/**
 * doorbell_page_create() - create the page of a new client
 * @fd: to pass to the client; the caller closes it
 *
 * Return: the page, or NULL if memory or descriptors run out.
 */
struct shm_doorbell_page *doorbell_page_create(int *fd);

/**
 * doorbell_attach() - let the page's client ring @cq
 *
 * Context: nic.lock held; also any other lock but doorbells_lock of the CQ.
 * Return: 0 or -ENOMEM.
 */
int doorbell_attach(struct shm_doorbell_page *doorbell_page, struct cq *cq);

/**
 * doorbell_detach_all() - detach a client that left, and keep what it rang
 *
 * The client may have died just before it woke us, so each CQ it rang gets an event.
 *
 * Context: Engine thread, with nic.lock held.
 */
void doorbell_detach_all(struct shm_doorbell_page *doorbell_page);

/* The CQ's side. */

/** doorbell_init() - set up the CQ's own doorbell, with the CQ's capacity */
void doorbell_init(struct cq *cq);

/**
 * doorbell_fini() - free the doorbells of a CQ that is being destroyed
 *
 * Context: No locks held; no thread uses the CQ.
 */
void doorbell_fini(struct cq *cq);

/**
 * doorbell_next() - step a poller's walk over the doorbells
 *
 * Context: cq->lock held.
 */
static inline struct cq_doorbell *doorbell_next(const struct cq_doorbell *l)
{
	return load_acquire(&l->next);
}

/**
 * doorbell_collect() - count the arrivals at all doorbells, and take their marks
 *
 * Context: cq->lock held.
 */
void doorbell_collect(struct cq *cq);

/**
 * doorbell_ack() - publish to the ringers how many completions are consumed
 * @waiting: completions announced but not yet polled
 * @all: the poll left none
 *
 * Context: cq->lock held, after doorbell_collect().
 */
void doorbell_ack(struct cq *cq, uint32_t waiting, bool all);

/**
 * doorbell_arm() - ask the next ringer to wake us
 * @how: ARMED_ANY or ARMED_SOLICITED
 *
 * Each doorbell has an armed flag, which its ringer clears. Only the flag in struct cq, out of
 * the peers' reach, makes an event. So arming once gives one event, however many processes
 * ring.
 *
 * Return: true if unreported completions are already there: the caller owes the event, and the
 *	CQ is disarmed.
 */
bool doorbell_arm(struct cq *cq, uint32_t how);

/** doorbell_disarm() - disarm the CQ; false if it was not armed, so that no event is due */
bool doorbell_disarm(struct cq *cq);

/** doorbell_was_rung() - disarm the CQ if a ringer has cleared its flag; true if so */
bool doorbell_was_rung(struct cq *cq);

/** doorbell_resize() - publish the CQ's new capacity */
void doorbell_resize(struct cq *cq);

#endif
