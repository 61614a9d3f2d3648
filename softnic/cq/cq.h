/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues.
 *
 * A CQ is a list of sources to poll. Completions stay in the send and receive queues where they
 * arise, and a poll takes them from there in order. So a peer that completes a work request
 * takes no lock shared between processes, and no completion is lost. Processes share only the
 * doorbells, struct shared_cq: see doorbell.h.
 *
 * A CQ still has a capacity, because a program that asks for too few entries would fail on
 * hardware. The completing side sees in the doorbell that the CQ may have overrun. Peers can
 * write the doorbell, so the owner counts before it moves the CQ's queue pairs to the error
 * state.
 */
#ifndef WEIR_SOFTNIC_CQ_CQ_H
#define WEIR_SOFTNIC_CQ_CQ_H

#include "softnic/verbs/async.h"
#include "doorbell.h"
#include "softnic/loop/loop.h"
#include "softnic/shm/shared.h"
#include "softnic/verbs/listing.h"
#include "ready_list.h"

/* The wc_flags of an extended CQ, and those that need a time stamp. */
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
		struct ibv_cq ibv; /* handle is the index of its doorbells */
		struct ibv_cq_ex ex;
	};
	int (*take)(struct cq *cq, int room, struct ibv_wc *wc); /* cq_take(), or one with checks */
	struct pd *domain; /* the parent domain, or NULL */
	pthread_mutex_t lock; /* polling, and the ready_list */
	struct ready_list ready_list;
	struct cq_doorbell doorbell; /* the CQ's own; linked behind are those of clients */
	pthread_mutex_t doorbells_lock; /* the list of doorbells, and arming; a leaf */
	uint32_t capacity;
	uint32_t promised; /* completions that pollers must wait for */
	uint32_t arrived; /* at all doorbells; lock */
	uint32_t consumed; /* completions polled of @arrived; lock */
	uint32_t armed; /* ARMED_*; written under doorbells_lock */
	bool has_left_some; /* the last poll filled its array; written under lock */
	uint64_t done_ns; /* time stamp of the last completion polled; lock */
	struct ibv_wc wc; /* between ibv_start_poll() and ibv_end_poll(); lock */
	bool has_overrun; /* lock */
	struct softnic_timer overrun; /* counts when the CQ may have overrun */
	struct listing_place listing;
	struct async_subject events;
	uint32_t events_delivered; /* ibv.mutex */
	struct cq *next_in_channel; /* channel->lock, also for the next two */
	struct cq *next_fired;
	uint32_t fired; /* events not yet taken */
};

_Static_assert(offsetof(struct ibv_cq, async_events_completed) ==
		       offsetof(struct ibv_cq_ex, async_events_completed),
	       "ibv_cq_ex_to_cq() is a cast");

static inline struct cq *to_cq(struct ibv_cq *cq)
{
	return (struct cq *)cq;
}

/** cq_at() - the CQ of that index, or NULL */
struct cq *cq_at(uint32_t index);

/** cq_add() - poll @source, too, when the queue pair @qpn is marked */
void cq_add(struct cq *cq, struct cq_source *source, uint32_t qpn);
/** cq_del() - stop polling @source; unpolled completions are lost */
void cq_del(struct cq *cq, struct cq_source *source);

/**
 * cq_ring() - announce one completion in a peer's CQ, and wake its sleeper if armed
 * @doorbell: of the peer's CQ
 * @qpn: the peer's queue pair
 * @waker: of the peer's completion channel, or NULL
 * @solicited: the completion is solicited or an error
 *
 * Return: false if the caller should tell the owner that the CQ may have overrun.
 */
bool cq_ring(struct shared_cq *doorbell, uint32_t qpn, const struct waker *waker, bool solicited);

/** cq_mark() - make the next poll visit a queue pair, without waking anybody */
void cq_mark(struct shared_cq *doorbell, uint32_t qpn);

/** cq_stamp() - the time in ns if that CQ stamps its completions, else 0 */
static inline uint64_t cq_stamp(const struct shared_cq *doorbell)
{
	return load_relaxed(&doorbell->is_stamped) ? softnic_loop_now_ns() : 0;
}

/** cq_ring_own() - announce @n completions of a queue pair in this process's CQ */
void cq_ring_own(struct cq *cq, uint32_t qpn, uint32_t n, bool solicited);

/**
 * cq_promise() - make pollers wait for a completion that is about to be stored
 *
 * The answer to a message may arrive before the delivering thread has completed the message. A
 * NIC never shows this order, because its acknowledgement travels ahead of the answer. So the
 * promise precedes delivery, and cq_fulfil() follows the completion. The caller must not block
 * in between.
 *
 * Context: Any thread. The caller owes one cq_fulfil(), whatever the outcome.
 */
void cq_promise(struct cq *cq);

/**
 * cq_wait_for_promised() - wait until all promises are fulfilled
 *
 * Context: cq->lock held.
 */
void cq_wait_for_promised(const struct cq *cq);
void cq_fulfil(struct cq *cq);

/**
 * cq_may_have_overrun() - let the engine count the CQ's completions
 *
 * Context: Any thread.
 */
void cq_may_have_overrun(struct cq *cq);

/** cq_ring_for_dead_peer() - ring for a peer that may have died between completion and doorbell */
void cq_ring_for_dead_peer(struct cq *cq, uint32_t qpn);

/**
 * cq_take() - poll up to @room completions, as ibv_poll_cq() does
 *
 * Context: cq->lock held.
 */
int cq_take(struct cq *cq, int room, struct ibv_wc *wc);

/** cq_ex_init() - fill in the functions that verbs.h calls through struct ibv_cq_ex */
void cq_ex_init(struct cq *cq, uint64_t wc_flags);

/* Verbs called through the context. */
int cq_poll(struct ibv_cq *cq, int room, struct ibv_wc *wc);
int cq_arm(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init);

#endif
