/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where a completion queue looks for completions: the send and receive queues that complete there,
 * and which of them may have some.
 *
 * Each sits at one of its queue's seats, as the number of its queue pair says, and each bell has a
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

struct sources {
	LIST_HEAD(, cq_source) seats[SHARED_SEATS];
	TAILQ_HEAD(, cq_source) ready;	/* may have completions; each polled in turn */
	uint32_t num;
};

/** source_mark() - there may be completions of a queue pair. Any thread of any process. */
void source_mark(struct shared_cq *bell, uint32_t qpn);

/** source_mark_all() - there may be some of any: whoever rings that bell may have died */
void source_mark_all(struct shared_cq *bell);

void sources_init(struct sources *s);

void sources_add(struct sources *s, struct cq_source *source, uint32_t qpn);
/** sources_del() - what was not polled from there is forgotten */
void sources_del(struct sources *s, struct cq_source *source);

/** sources_hear() - take the marks of a bell whose arrivals were read */
void sources_hear(struct sources *s, struct shared_cq *bell);

/** sources_poll() - up to @room completions of those that were heard of; less if there are no more */
int sources_poll(struct sources *s, struct ibv_wc *wc, int room);

/** sources_waiting() - how many completions there are, heard of or not */
uint32_t sources_waiting(const struct sources *s);

/** sources_visit() - call @fn for the queue pair of each */
void sources_visit(const struct sources *s, void (*fn)(struct qp *qp));

#endif
