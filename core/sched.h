/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The scheduler: whose turn it is, and for how much (Avatar, section 3.2).
 *
 * What wants to send is a flow, and each flow is of a class. Classes stand on levels: a lower
 * number goes before a higher one; classes of one level share by weight. Within a class its
 * flows share: by bytes (deficit round robin with weights), or turn by turn (round robin).
 *
 * A turn is one work request, of one segment at most: what is larger is cut, what is smaller and
 * of one flow may go together. So who comes to send waits for no more than one segment of each
 * flow that competes, however much that flow has to send. What has been posted nobody can
 * overtake; so a flow has few work requests posted at a time, and all that stands below the first
 * level has no more than @low_bytes_max in flight, or one segment a flow where that is more.
 *
 * How the rounds go. A flow is given its quantum for a round, and spends it turn by turn,
 * alternating with the others. Who has spent it waits for the next round, which begins when all
 * who still want to send have spent theirs: also one that may not post now, since too much of it
 * is in flight. Were it passed over instead, everyone would get as much as his limit in
 * flight gives him, and not what his weight does. Who has just come joins the round under way,
 * with what is left to him of it.
 *
 * A low level does not starve: a class that has something to post is passed by at most
 * @pass_bytes_max of higher levels' before it gets a turn.
 *
 * A host does:
 *
 *	weir_sched_ready(s, flow)		the flow has something to send
 *	while (there is room && (flow = weir_sched_next(s, classes))) {
 *		post one WR of at most the segment of its class
 *		weir_sched_posted(s, flow, bytes);
 *		if (it has nothing more)
 *			weir_sched_idle(s, flow);
 *	}
 *	weir_sched_completed(s, flow, bytes)	for each, whatever became of it
 *
 * All but weir_sched_next() takes constant time; that does so too when spread over the work
 * requests posted. Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_SCHED_H
#define WEIR_CORE_SCHED_H

#include "core/list.h"

#define WEIR_SCHED_CLASSES_MAX 8
#define WEIR_SCHED_CLASSES_ALL ((1u << WEIR_SCHED_CLASSES_MAX) - 1)
#define WEIR_SCHED_SEGMENT_BYTES (64u << 10) /* where nobody says otherwise */
#define WEIR_SCHED_SEGMENT_MAX (1u << 30)
#define WEIR_SCHED_WEIGHT_MAX 1024
#define WEIR_SCHED_COST_MIN 64 /* bytes: what an almost empty WR takes of a NIC, at least */

enum weir_sched_policy {
	WEIR_SCHED_FAIR, /* by bytes and weight */
	WEIR_SCHED_ROUND_ROBIN, /* by work requests; a flow of weight w has w turns a round */
};

/**
 * struct weir_sched_config - one class
 * @level: lower goes first
 * @weight: of the class among those of its level, 1 to WEIR_SCHED_WEIGHT_MAX
 * @policy: how its flows share
 * @segment_bytes: a WR is at most this long, 1 to WEIR_SCHED_SEGMENT_MAX
 * @wrs_max: work requests of one flow in flight, at least 1
 * @pass_bytes_max: what higher levels send while it waits, at most; 0: any amount
 */
struct weir_sched_config {
	uint8_t level;
	uint16_t weight;
	enum weir_sched_policy policy;
	uint32_t segment_bytes;
	uint32_t wrs_max;
	uint64_t pass_bytes_max;
};

/**
 * struct weir_sched_class - a class, and where its flows stand
 * @config: copied
 * @current: may post, and have something of their quantum left; whose turn comes next, first
 * @next: may post, in the next round
 * @held: as @current, but came to their turn when too much of the low levels was in flight
 * @round: counted from 1
 * @open: flows that want to send and have something left in this round, listed or not
 * @waiting: flows that want to send and have spent it, listed or not
 * @share: bytes sent, divided by weight: who has the least is next in its level
 * @passed_bytes: what higher levels have sent since it was served, or began to wait
 */
struct weir_sched_class {
	struct weir_sched_config config;
	struct weir_list current;
	struct weir_list next;
	struct weir_list held;
	uint64_t round;
	uint32_t open;
	uint32_t waiting;
	uint64_t share;
	uint64_t passed_bytes;
};

/**
 * struct weir_sched - whose turn it is, on one NIC or towards one peer
 * @classes: @nr_classes of them, in the order of their levels
 * @low_bytes_max: what all below the first level have in flight, but for one WR of each flow
 * @low_bytes: what they have
 *
 * Serialised by its host.
 */
struct weir_sched {
	struct weir_sched_class classes[WEIR_SCHED_CLASSES_MAX];
	uint8_t nr_classes;
	uint64_t low_bytes_max;
	uint64_t low_bytes;
};

/**
 * struct weir_flow - what the scheduler is fair between
 * @link: in a list of its class, or in none
 * @class: number of its class
 * @weight: 1 to WEIR_SCHED_WEIGHT_MAX
 * @is_ready: it has something to send, posted work requests apart
 * @is_held: it is in the class's list of that name
 * @wrs: in flight
 * @round: the one that @left is for
 * @left: what it may still send in that round: bytes or turns. At least 1; the last turn of a
 *	round may take more, which is then missing in the next
 */
struct weir_flow {
	struct weir_list link;
	uint8_t class;
	uint16_t weight;
	bool is_ready;
	bool is_held;
	uint32_t wrs;
	uint64_t round;
	int64_t left;
};

/**
 * weir_sched_init() - a scheduler without flows
 * @s: to be initialised
 * @configs: @nr_classes of them, levels not falling
 * @nr_classes: 1 to WEIR_SCHED_CLASSES_MAX
 * @low_bytes_max: as above: the product of bandwidth and delay, so that they still fill the
 *	wire when nobody else sends; UINT64_MAX: any amount
 *
 * Return: 0, or -EINVAL when a number is out of its range.
 */
int weir_sched_init(struct weir_sched *s, const struct weir_sched_config *configs,
		    uint8_t nr_classes, uint64_t low_bytes_max);

/**
 * weir_flow_init() - a flow with nothing to send
 * @flow: to be initialised. It may go when it is idle and nothing of it is in flight
 * @class: one of the scheduler's
 * @weight: 1 to WEIR_SCHED_WEIGHT_MAX
 */
void weir_flow_init(struct weir_flow *flow, uint8_t class, uint16_t weight);

/* The flow has something to send, and may send it. Nothing changes if it was ready before. */
void weir_sched_ready(struct weir_sched *s, struct weir_flow *flow);

/* The flow has nothing to send, or may not. Nothing changes if it was idle before. */
void weir_sched_idle(struct weir_sched *s, struct weir_flow *flow);

/**
 * weir_sched_next() - whose turn it is
 * @s: the scheduler
 * @classes: bit c is set when there is room for a WR of class c
 *
 * Return: the flow; weir_sched_posted() or weir_sched_idle() comes next. NULL when no flow has
 *	anything to send, or each of them waits for a completion.
 */
struct weir_flow *weir_sched_next(struct weir_sched *s, uint32_t classes);

/**
 * weir_sched_posted() - it took its turn
 * @s: the scheduler
 * @flow: what weir_sched_next() returned
 * @bytes: of the WR, at most the segment of its class; may be 0
 */
void weir_sched_posted(struct weir_sched *s, struct weir_flow *flow, uint32_t bytes);

/**
 * weir_sched_completed() - a WR is in flight no longer
 * @s: the scheduler
 * @flow: whose
 * @bytes: as posted
 */
void weir_sched_completed(struct weir_sched *s, struct weir_flow *flow, uint32_t bytes);

#endif
