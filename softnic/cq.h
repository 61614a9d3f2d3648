/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues.
 *
 * A queue here is a list of places to look at: completions stay where they came about, in
 * the send and receive queues, and are taken out in order when they are polled. So a
 * completion queue never overflows, and one that a peer completes needs no lock shared
 * between processes. What is shared is the bell, struct shared_cq.
 */
#ifndef SOFTNIC_CQ_H
#define SOFTNIC_CQ_H

#include "shared.h"

struct qp;
struct cq;

/* A send or receive queue as its completion queue sees it. */
struct cq_source {
	/* Takes up to @room completions, returns how many. Under cq->lock. */
	int (*poll)(struct qp *qp, struct ibv_wc *wc, int room);
	struct qp *qp;
	struct cq_source *next;
};

struct cq {
	struct ibv_cq ibv;		/* handle is its index into the bell */
	pthread_mutex_t lock;		/* polling, and the list */
	struct cq_source *sources;
	struct cq_source *turn;		/* where to begin next */
	struct shared_cq *bell;
	uint32_t seen;			/* arrivals when there was nothing left */
	uint32_t events_delivered;	/* ibv.mutex */
	struct cq *next_in_channel;	/* channel->lock */
};

struct channel {
	struct ibv_comp_channel ibv;
	pthread_mutex_t lock;
	struct cq *cqs;
	struct cq *turn;
};

static inline struct cq *to_cq(struct ibv_cq *cq)
{
	return (struct cq *)cq;
}

static inline struct channel *to_channel(struct ibv_comp_channel *channel)
{
	return (struct channel *)channel;
}

/** channel_add(), channel_del() - a completion queue reports there; takes back its events */
void channel_add(struct channel *channel, struct cq *cq);
void channel_del(struct channel *channel, struct cq *cq);

/** cq_add() - look there, too */
void cq_add(struct cq *cq, struct cq_source *source);
/** cq_del() - what was not polled from there is forgotten */
void cq_del(struct cq *cq, struct cq_source *source);

/**
 * cq_ring() - there is something to poll: have a sleeper woken if it asked for that
 * @bell: of the completion queue, ours or a peer's
 * @channel_fd: its channel's, -1 if it has none
 * @solicited: the sender asked to wake the receiver, or it is an error
 */
void cq_ring(struct shared_cq *bell, int channel_fd, bool solicited);

/** cq_notice() - cq_ring() for one of our own */
void cq_notice(struct cq *cq, bool solicited);

/** cq_ring_anyway() - a peer may have died between taking the arm and ringing */
void cq_ring_anyway(struct cq *cq);

/* verbs that are reached through ibv_context.ops */
int cq_poll(struct ibv_cq *cq, int room, struct ibv_wc *wc);
int cq_arm(struct ibv_cq *cq, int solicited_only);

#endif
