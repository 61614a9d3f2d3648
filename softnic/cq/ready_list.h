/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where a completion queue looks for completions: the send and receive queues that complete there,
 * and which of them may have some.
 *
 * Each sits at one of its queue's seats, as the number of its queue pair says, and each doorbell has a
 * bit for each seat. Who completes stores the completion, sets the bit, then adds to the arrivals.
 * Who polls reads the arrivals, takes the bits, then looks: so what it heard of it finds, and what
 * it does not find it hears of later. A poll costs what there is, not how many queues there are: up
 * to 256 queue pairs have a seat of their own, and of 1,000 four share one.
 *
 * Bits are a hint. One that a peer sets for nothing costs a look, and one that it does not set
 * keeps back only what it has to say itself.
 *
 * Externally serialised, but for the marks.
 */
#ifndef WEIR_SOFTNIC_CQ_READY_LIST_H
#define WEIR_SOFTNIC_CQ_READY_LIST_H

#include <sys/queue.h>

#include "softnic/shm/shared.h"

struct qp;

/* A send or receive queue as its completion queue sees it. */
struct cq_source {
	/* Takes up to @room completions, returns how many. */
	int (*poll)(struct qp *qp, struct ibv_wc *wc, int room);
	/* How many it would take if there were room for all. */
	uint32_t (*waiting)(struct qp *qp);
	struct qp *qp;
	LIST_ENTRY(cq_source) at_seat;
	TAILQ_ENTRY(cq_source) among_ready;
	bool is_ready;
};

struct ready_list {
	LIST_HEAD(, cq_source) seats[SHARED_SEATS];
	TAILQ_HEAD(, cq_source) ready; /* may have completions; each polled in turn */
	uint32_t num;
};

/** ready_list_mark() - there may be completions of a queue pair. Any thread of any process. */
void ready_list_mark(struct shared_cq *doorbell, uint32_t qpn);

/** ready_list_mark_all() - there may be some of any: whoever rings that doorbell may have died */
void ready_list_mark_all(struct shared_cq *doorbell);

void ready_list_init(struct ready_list *s);

void ready_list_add(struct ready_list *s, struct cq_source *source, uint32_t qpn);
/** ready_list_del() - what was not polled from there is forgotten */
void ready_list_del(struct ready_list *s, struct cq_source *source);

/** ready_list_collect() - take the marks of a doorbell whose arrivals were read */
void ready_list_collect(struct ready_list *s, struct shared_cq *doorbell);

/** ready_list_poll() - up to @room completions of those that were heard of; less if there are no more */
int ready_list_poll(struct ready_list *s, struct ibv_wc *wc, int room);

/** ready_list_waiting() - how many completions there are, heard of or not */
uint32_t ready_list_waiting(const struct ready_list *s);

/** ready_list_for_each() - call @fn for the queue pair of each */
void ready_list_for_each(const struct ready_list *s, void (*fn)(struct qp *qp));

#endif
