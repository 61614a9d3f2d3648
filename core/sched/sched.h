/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The scheduler: whose turn it is, and for how much (Avatar, section 3.2).
 *
 * What wants to send is a flow, each flow is of a bundle, and each bundle of a class: the bundle
 * is what one tenant sends there. Classes stand on levels: a lower number goes before a higher
 * one; classes of one level share by weight. Within a class its bundles share, and within a
 * bundle its flows, so that a tenant with many flows has no more than one with few: by bytes
 * (deficit round robin with weights), or turn by turn (round robin). How the rounds go,
 * core/sched/drr.h tells.
 *
 * A turn is one work request, of one segment at most: what is larger is cut, what is smaller and
 * of one flow may go together. So who comes to send while nothing else of its bundle does waits
 * for no more than one segment of each bundle that competes, and then within a bundle for one of each
 * flow, however much that flow has to send. What has been posted nobody can overtake; so a flow
 * has few work requests posted at a time, and all that stands below the first level has no more
 * than @low_bytes_max in flight, or where that is more, one segment for each flow that competes: room
 * of all, which goes to whose turn it is.
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
#ifndef WEIR_CORE_SCHED_SCHED_H
#define WEIR_CORE_SCHED_SCHED_H

#include "core/sched/drr.h"

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
 * @policy: how its bundles share, and the flows of each
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
 * struct weir_sched_class - a class
 * @config: copied
 * @bundles: take turns
 * @share: bytes sent, divided by weight: who has the least is next in its level
 * @passed_bytes: what higher levels have sent since it was served, or began to wait
 */
struct weir_sched_class {
	struct weir_sched_config config;
	struct weir_drr bundles;
	uint64_t share;
	uint64_t passed_bytes;
};

/**
 * struct weir_sched - whose turn it is, on one NIC or towards one peer
 * @classes: @nr_classes of them, in the order of their levels
 * @low_bytes_max: what all below the first level have in flight, unless @low_floor is more
 * @low_bytes: what they have
 * @low_floor: a segment for each of their flows that competes, in bundles that may send
 * @low_segment: the longest of theirs: there is room if it fits, and for all of them or for none, lest
 *	a class with short ones leave no room for another's long ones
 *
 * Serialised by its host.
 */
struct weir_sched {
	struct weir_sched_class classes[WEIR_SCHED_CLASSES_MAX];
	uint8_t nr_classes;
	uint64_t low_bytes_max;
	uint64_t low_bytes, low_floor;
	uint32_t low_segment;
};

/**
 * struct weir_bundle - flows that have one share between them
 * @turn: among the bundles of its class
 * @class: number of its class
 * @flows: take turns in what is the bundle's
 * @is_paused: it takes no turns, and they keep theirs
 * @competing: flows that want to send or have something in flight
 */
struct weir_bundle {
	struct weir_drr_member turn;
	uint8_t class;
	bool is_paused;
	uint32_t competing;
	struct weir_drr flows;
};

/**
 * struct weir_flow - what the scheduler is fair between
 * @turn: among the flows of its bundle; ready: it has something to send, posted work requests apart
 * @bundle: its bundle
 * @wrs: in flight
 */
struct weir_flow {
	struct weir_drr_member turn;
	struct weir_bundle *bundle;
	uint32_t wrs;
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
 * weir_sched_bundle_init() - a bundle without flows
 * @bundle: to be initialised. It may go when its flows may
 * @class: one of the scheduler's
 * @weight: among those of its class, 1 to WEIR_SCHED_WEIGHT_MAX
 */
void weir_sched_bundle_init(struct weir_bundle *bundle, uint8_t class, uint16_t weight);

/* Another weight, from the bundle's next round on. */
void weir_sched_bundle_set_weight(struct weir_bundle *bundle, uint16_t weight);

/* Whether any of its flows has something to send. */
static inline bool weir_sched_bundle_is_wanted(const struct weir_bundle *bundle)
{
	return weir_drr_is_wanted(&bundle->flows);
}

/**
 * weir_sched_flow_init() - a flow with nothing to send
 * @flow: to be initialised. It may go when it is idle and nothing of it is in flight
 * @bundle: kept until then
 * @weight: among those of its bundle, 1 to WEIR_SCHED_WEIGHT_MAX
 */
void weir_sched_flow_init(struct weir_flow *flow, struct weir_bundle *bundle, uint16_t weight);

/**
 * weir_sched_flow_move() - the flow is of another bundle from now on
 * @s: the scheduler
 * @flow: in whatever state; no turn that it had is to be spent any more
 * @bundle: of the same class; kept until the flow is of another one again, or may go
 *
 * What it has spent of its bundle's round is spent in the other's, and what is in flight is counted
 * there. That of which it was may go, if it is no other flow's.
 */
void weir_sched_flow_move(struct weir_sched *s, struct weir_flow *flow, struct weir_bundle *bundle);

/* The flow has something to send, and may send it. Nothing changes if it was ready before. */
void weir_sched_ready(struct weir_sched *s, struct weir_flow *flow);

/* The flow has nothing to send, or may not. Nothing changes if it was idle before. */
void weir_sched_idle(struct weir_sched *s, struct weir_flow *flow);

/*
 * The bundle may not send now, whatever it has; until weir_sched_resume(), or until none of its flows
 * has something to send. Others' rounds go on without it, and its own stands still: its flows share by
 * their weights what it may send after that. Nothing changes if it was so before.
 */
void weir_sched_pause(struct weir_sched *s, struct weir_bundle *bundle);
void weir_sched_resume(struct weir_sched *s, struct weir_bundle *bundle);

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
