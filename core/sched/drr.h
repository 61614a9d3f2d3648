/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rounds, of whoever takes turns: deficit round robin (Shreedhar and Varghese, 1996) in the form
 * that lets a member overdraw on its last turn instead of asking for the length beforehand, so
 * that whoever has the turn can still decide how much goes along; and with a member's quantum
 * spent between the others' turns and not in one go.
 *
 * A member is given its quantum for a round, weight times a unit. Who has spent it waits for the
 * next round, which begins when all who still want turns have spent theirs: also one that may
 * not have a turn now. Were it passed over instead, everyone would get as much as what holds him
 * back gives him, and not what his weight does. Who has just come joins the round under way, with
 * what is left to him of it.
 *
 * Context of all: any; constant time; externally serialised.
 */
#ifndef WEIR_CORE_SCHED_DRR_H
#define WEIR_CORE_SCHED_DRR_H

#include "core/base/list.h"

/**
 * struct weir_drr - whose members take turns
 * @current: may have one, and have something of their quantum left; whose is next, first
 * @next: may have one, in the next round
 * @round: counted from 1
 * @open: members that want turns and have something left in this round, listed or not
 * @waiting: those that want turns and have spent it, listed or not
 */
struct weir_drr {
	struct weir_list current, next;
	uint64_t round;
	uint32_t open, waiting;
};

/**
 * struct weir_drr_member - a member
 * @link: in a list of its turns, or in none
 * @weight: at least 1; another one counts from the member's next round on
 * @is_ready: it wants turns
 * @round: the one that @left is for
 * @left: what it may still spend in that round. At least 1; the last turn of a round may take
 *	more, which is then missing in the next
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

/* It wants turns from now on, and did not; it is in no list yet. @unit: of a quantum. */
void weir_drr_join(struct weir_drr *t, struct weir_drr_member *m, uint32_t unit);

/*
 * It takes turns in @to from now on, and did in @from, which it does not want any more. What it has spent
 * of a round there is spent here.
 */
void weir_drr_transfer(const struct weir_drr *from, const struct weir_drr *to,
		       struct weir_drr_member *m);

/* It does not want turns any more, and did. */
void weir_drr_leave(struct weir_drr *t, struct weir_drr_member *m);

/* It may have a turn, behind those that may already. Nothing changes if it is in a list. */
void weir_drr_enqueue(struct weir_drr *t, struct weir_drr_member *m);

/* It may have no turn. */
void weir_drr_dequeue(struct weir_drr_member *m);

/**
 * weir_drr_charge() - a member has had a turn
 * @t: the turns
 * @m: wants turns, and is in no list
 * @cost: at most @unit
 * @unit: of a quantum: no less than the dearest turn, or who has overdrawn would have nothing
 *	in the next round
 */
void weir_drr_charge(struct weir_drr *t, struct weir_drr_member *m, uint32_t cost, uint32_t unit);

/* Whose turn it is; all having spent theirs, the next round begins. */
struct weir_drr_member *weir_drr_first(struct weir_drr *t);

/* Whether anybody wants turns. */
static inline bool weir_drr_is_wanted(const struct weir_drr *t)
{
	return t->open || t->waiting;
}

#endif
