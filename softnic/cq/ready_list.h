/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sources of a completion queue: the send and receive queues that complete there, and which
 * of them may have completions.
 *
 * The queue pair number picks a source's seat, and each doorbell has one bit per seat. The
 * completing side stores the completion, sets the bit, then adds to the arrivals. The poller
 * reads the arrivals, takes the bits, then polls those seats. So the poller finds every
 * completion whose arrival it read, and a completion missed now is announced later. A poll
 * costs as much as there are completions, not queues. Up to 256 queue pairs have a seat each;
 * 1,000 queue pairs share a seat between four.
 *
 * Bits are hints. A bit that a peer sets for nothing costs one poll; a bit not set delays only
 * that peer's own completions.
 *
 * Externally serialised, except for the marks.
 */
#ifndef WEIR_SOFTNIC_CQ_READY_LIST_H
#define WEIR_SOFTNIC_CQ_READY_LIST_H

#include <sys/queue.h>

#include "softnic/shm/shared.h"

struct qp;

/* A send or receive queue, as its CQ sees it. */
struct cq_source {
	/* Takes up to @room completions, returns how many. */
	int (*poll)(struct qp *qp, struct ibv_wc *wc, int room);
	/* How many completions poll() would take with enough room. */
	uint32_t (*waiting)(struct qp *qp);
	struct qp *qp;
	LIST_ENTRY(cq_source) at_seat;
	TAILQ_ENTRY(cq_source) among_ready;
	bool is_ready;
};

struct ready_list {
	LIST_HEAD(, cq_source) seats[SHARED_SEATS];
	TAILQ_HEAD(, cq_source) ready; /* may have completions; polled in turn */
	uint32_t num;
};

/**
 * ready_list_mark() - mark a queue pair that may have completions
 *
 * Context: Any thread of any process.
 */
void ready_list_mark(struct shared_cq *doorbell, uint32_t qpn);

/** ready_list_mark_all() - mark all queue pairs, because the ringer of @doorbell may have died */
void ready_list_mark_all(struct shared_cq *doorbell);

void ready_list_init(struct ready_list *s);

void ready_list_add(struct ready_list *s, struct cq_source *source, uint32_t qpn);
/** ready_list_del() - remove a source; unpolled completions are lost */
void ready_list_del(struct ready_list *s, struct cq_source *source);

/** ready_list_collect() - take the marks of a doorbell, after reading its arrivals */
void ready_list_collect(struct ready_list *s, struct shared_cq *doorbell);

/** ready_list_poll() - poll up to @room completions of the marked sources; returns how many */
int ready_list_poll(struct ready_list *s, struct ibv_wc *wc, int room);

/** ready_list_waiting() - count the completions of all sources, marked or not */
uint32_t ready_list_waiting(const struct ready_list *s);

/** ready_list_for_each() - call @fn for the queue pair of each source */
void ready_list_for_each(const struct ready_list *s, void (*fn)(struct qp *qp));

#endif
