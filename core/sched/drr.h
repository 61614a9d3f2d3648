/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Deficit round robin (Shreedhar and Varghese, 1996), with two changes. A member may overdraw on
 * its last turn, so that the turn's size can be decided late. And members alternate, instead of
 * spending a quantum in one go.
 *
 * In each round a member gets a quantum: its weight times a unit. The round ends when all members
 * that want turns have spent their quanta, including members that cannot take a turn now. Passing
 * over blocked members would make shares follow from blocking, not from weights. A joining member
 * takes part in the current round with its remaining quantum.
 *
 * Context of all: Any; constant time; externally serialised.
 */
#ifndef WEIR_CORE_SCHED_DRR_H
#define WEIR_CORE_SCHED_DRR_H

#include "core/base/list.h"

/**
 * struct weir_drr - the rounds of a set of members
 * @present: members that can take a turn in this round, the next turn first
 * @next: members that can take a turn in the next round
 * @round: number of the round, from 1
 * @open: members that want turns and have quantum left, listed or not
 * @waiting: members that want turns and have spent their quantum, listed or not
 */
struct weir_drr {
	struct weir_list present, next;
	uint64_t round;
	uint32_t open, waiting;
};

/**
 * struct weir_drr_member - a member
 * @link: in @present or @next, or in no list
 * @weight: at least 1; a change takes effect in the member's next round
 * @is_ready: the member wants turns
 * @round: the round that @left belongs to
 * @left: quantum left in that round, at least 1. The last turn may take more; the excess is
 *	subtracted in the next round
 */
struct weir_drr_member {
	struct weir_list link;
	uint16_t weight;
	bool is_ready;
	uint64_t round;
	int64_t left;
};

void weir_drr_init(struct weir_drr *t);
void weir_drr_member_init(struct weir_drr_member *m, uint16_t weight);

/*
 * A member wants turns from now on. It must not have wanted turns before. @unit: as for
 * weir_drr_charge().
 */
void weir_drr_join(struct weir_drr *t, struct weir_drr_member *m, uint32_t unit);

/*
 * Moves a member that wants no turns from @from to @to. Quantum spent in the current round of @from
 * stays spent in @to.
 */
void weir_drr_transfer(const struct weir_drr *from, const struct weir_drr *to,
		       struct weir_drr_member *m);

/* A member that wanted turns does not want turns any more. */
void weir_drr_leave(struct weir_drr *t, struct weir_drr_member *m);

/* A member can take a turn, after the members already listed. No effect if listed. */
void weir_drr_enqueue(struct weir_drr *t, struct weir_drr_member *m);

/* A member can take no turn now. */
void weir_drr_dequeue(struct weir_drr_member *m);

/**
 * weir_drr_charge() - charge a member for a turn
 * @t: the rounds
 * @m: wants turns, and is in no list
 * @cost: at most @unit
 * @unit: quantum of weight 1; at least the cost of the largest turn, so that a member that has
 *	overdrawn still has quantum in the next round
 */
void weir_drr_charge(struct weir_drr *t, struct weir_drr_member *m, uint32_t cost, uint32_t unit);

/* The member whose turn is next, or NULL. Begins the next round if all quanta are spent. */
struct weir_drr_member *weir_drr_first(struct weir_drr *t);

/* Whether any member wants turns. */
static inline bool weir_drr_is_wanted(const struct weir_drr *t)
{
	return t->open || t->waiting;
}

#endif
