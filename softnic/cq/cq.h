/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues.
 *
 * A queue here is a list of places to look at: completions stay where they came about, in
 * the send and receive queues, and are taken out in order when they are polled. So one
 * that a peer completes needs no lock shared between processes, and none is ever lost.
 * What is shared are the doorbells, struct shared_cq: see doorbell.h.
 *
 * Yet it holds only so many, for a program that asks for too few would fail on hardware.
 * Whoever completes notices by the doorbell, which peers can write, that it may have overrun;
 * its owner then counts, and only then ends what uses it.
 */
#ifndef WEIR_SOFTNIC_CQ_CQ_H
#define WEIR_SOFTNIC_CQ_CQ_H

#include "softnic/verbs/async.h"
#include "doorbell.h"
#include "softnic/loop/loop.h"
#include "softnic/shm/shared.h"
#include "ready_list.h"

/* What an extended one can tell of a completion, and what of that takes a look at the clock. */
enum {
	CQ_STAMPS = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
		    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	CQ_WC_FLAGS = IBV_WC_STANDARD_FLAGS | CQ_STAMPS,
};

struct qp;
struct cq;
struct waker;

struct cq {
	union {
		struct ibv_cq ibv; /* handle is its index into the doorbell */
		struct ibv_cq_ex ex;
	};
	struct pd *domain; /* the parent domain it was made in, or NULL */
	pthread_mutex_t lock; /* polling, and the ready_list */
	struct ready_list ready_list;
	struct cq_doorbell doorbell; /* its own, and behind it those of clients */
	pthread_mutex_t doorbells_lock; /* the list; arming; a leaf */
	uint32_t capacity;
	uint32_t promised; /* completions that pollers wait for */
	uint32_t arrived; /* at all doorbells; lock */
	uint32_t consumed; /* of those; lock */
	uint32_t armed; /* ARMED_*; written under doorbells_lock */
	bool has_left_some; /* the last poll had no room for all; written under lock */
	uint64_t done_ns; /* when the last one taken came about; lock */
	struct ibv_wc wc; /* between ibv_start_poll() and ibv_end_poll(); lock */
	bool has_overrun; /* lock */
	struct softnic_timer overrun; /* counts, for it may have */
	struct async_subject events;
	uint32_t events_delivered; /* ibv.mutex */
	struct cq *next_in_channel; /* channel->lock, as what follows */
	struct cq *next_fired;
	uint32_t fired; /* events that nobody took yet */
};

_Static_assert(offsetof(struct ibv_cq, async_events_completed) ==
		       offsetof(struct ibv_cq_ex, async_events_completed),
	       "ibv_cq_ex_to_cq() is a cast");

static inline struct cq *to_cq(struct ibv_cq *cq)
{
	return (struct cq *)cq;
}

/** cq_at() - the queue of that index, or NULL */
struct cq *cq_at(uint32_t index);

/** cq_add() - look there, too, when there may be completions of that queue pair */
void cq_add(struct cq *cq, struct cq_source *source, uint32_t qpn);
/** cq_del() - what was not polled from there is forgotten */
void cq_del(struct cq *cq, struct cq_source *source);

/**
 * cq_ring() - one completion more in a peer's queue: have a sleeper woken if it asked for that
 * @doorbell: of the completion queue
 * @qpn: the peer's queue pair
 * @waker: to its channel, NULL if it has none
 * @solicited: the sender asked to wake the receiver, or it is an error
 *
 * Return: false if its owner should be told to look whether it has overrun.
 */
bool cq_ring(struct shared_cq *doorbell, uint32_t qpn, const struct waker *waker, bool solicited);

/** cq_mark() - a poll is to look at a queue pair, but there is nothing to wake for */
void cq_mark(struct shared_cq *doorbell, uint32_t qpn);

/** cq_stamp() - the time, if that queue's completions are to say it; else 0 */
static inline uint64_t cq_stamp(const struct shared_cq *doorbell)
{
	return load_relaxed(&doorbell->is_stamped) ? softnic_now_ns() : 0;
}

/** cq_ring_own() - @n completions more of a queue pair in one of our own */
void cq_ring_own(struct cq *cq, uint32_t qpn, uint32_t n, bool solicited);

/**
 * cq_promise() - a completion is a moment away: who polls waits for it
 *
 * The answer to a message may come before the thread that delivered the message says that it
 * is done; with a NIC, whose acknowledgement goes ahead of the answer, it never does. So the
 * promise goes ahead of the message, and cq_fulfil() follows the completion. In between nothing
 * may wait.
 *
 * Context: any thread. Each promise is kept, whatever came of it.
 */
void cq_promise(struct cq *cq);

/** cq_wait_for_promised() - what was promised is there. Its lock held. */
void cq_wait_for_promised(const struct cq *cq);
void cq_fulfil(struct cq *cq);

/** cq_may_have_overrun() - have the engine count. Any thread. */
void cq_may_have_overrun(struct cq *cq);

/** cq_ring_for_dead_peer() - a peer may have died between a completion in that queue pair and ringing */
void cq_ring_for_dead_peer(struct cq *cq, uint32_t qpn);

/** cq_take() - up to @room completions, as ibv_poll_cq() gives them. cq->lock held. */
int cq_take(struct cq *cq, int room, struct ibv_wc *wc);

/** cq_ex_init() - what verbs.h calls through struct ibv_cq_ex */
void cq_ex_init(struct cq *cq, uint64_t wc_flags);

/* verbs that are reached through the context */
int cq_poll(struct ibv_cq *cq, int room, struct ibv_wc *wc);
int cq_arm(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init);

#endif
