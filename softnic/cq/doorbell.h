/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where a process rings our completion queues. Each that talks to us has a bell of its own,
 * which no other maps; so it can hold back, or make up, only what it has to say itself. Our
 * own completions ring nic.bell.
 */
#ifndef WEIR_SOFTNIC_CQ_DOORBELL_H
#define WEIR_SOFTNIC_CQ_DOORBELL_H

#include <stdbool.h>

#include "softnic/shm/shared.h"

struct cq;

/* Of a guest. */
struct bell {
	struct shared_bell *shared;
	uint32_t users;			/* the guest, and lines */
	struct line *lines;	/* nic.lock */
	struct cord *cords;	/* nic.lock */
};

/* One bell at one completion queue. */
struct line {
	struct shared_cq *at;
	struct bell *bell;		/* NULL: it is nic.bell */
	struct cq *cq;
	/* Written under cq->lock. */
	uint32_t heard, solicited_heard;	/* arrivals when they were last looked at */
	uint32_t seen, solicited_seen;		/* arrivals when there was nothing left */
	uint32_t answered;			/* what we told the ringer was consumed */
	bool has_ended;			/* cq->lines_lock */
	struct line *next;		/* of the queue's: the first is for ever its own */
	struct line *next_of_bell;	/* nic.lock */
};

/**
 * line_create_bell() - a guest has come
 * @fd: to hand to it, and then to close
 *
 * Return: NULL if memory or descriptors are short.
 */
struct bell *line_create_bell(int *fd);

/**
 * line_join() - the guest may ring that queue from now on
 *
 * Context: nic.lock held; any lock but the queue's lines_lock may be.
 * Return: 0 or -ENOMEM.
 */
int line_join(struct bell *bell, struct cq *cq);

/**
 * line_end_all() - the guest has left: what it rang counts, but it rings no more
 *
 * It may have been killed about to wake us, or we have not heard it yet: that is an event.
 *
 * Context: nic.lock held, on the engine's thread.
 */
void line_end_all(struct bell *bell);

/* A queue's side; the first line is part of it. */

/** line_begin() - with no line but its own, as large as it is */
void line_begin(struct cq *cq);

/** line_leave() - the queue is to be destroyed. No locks held, nobody uses it. */
void line_leave(struct cq *cq);

/** line_next() - a poller's walk from line to line. cq->lock held. */
static inline struct line *line_next(const struct line *l)
{
	return load_acquire(&l->next);
}

/** line_hear() - count what was rung so far. cq->lock held. */
void line_hear(struct cq *cq);

/**
 * line_answer() - tell the ringers how much is left
 * @waiting: completions that were rung and are not taken
 * @all: nothing was left
 *
 * Context: cq->lock held, after line_hear().
 */
void line_answer(struct cq *cq, uint32_t waiting, bool all);

/**
 * line_arm() - have the next ringer wake us
 * @how: ARMED_ANY or ARMED_SOLICITED
 *
 * Each line has an arm, which its ringer takes. But what makes an event is the arm in struct cq,
 * which no peer can reach: so there is one event for one arm, however many ring.
 *
 * Return: true if it has rung already, untold, so that this is an event, and the arm has ended.
 */
bool line_arm(struct cq *cq, uint32_t how);

/** line_fire() - end the arm; false: there is none, so this is no event */
bool line_fire(struct cq *cq);

/** line_was_rung() - has a ringer taken its arm? Then end them all. */
bool line_was_rung(struct cq *cq);

/** line_resize() - the queue holds as many from now on */
void line_resize(struct cq *cq);

#endif
