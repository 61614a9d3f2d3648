/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The scheduler: which flow sends next, and how much (Avatar, section 3.2).
 *
 * A flow is one sender. Each flow belongs to a bundle: the traffic of one tenant in a class. Each
 * class has a level: lower numbers go first, and classes of one level share by weight. Bundles
 * share the class, and flows share the bundle, so a tenant gains nothing by having many flows.
 * Sharing is by bytes (deficit round robin with weights) or by turns (round robin); see
 * core/sched/drr.h.
 *
 * A turn is one work request of at most a segment. Longer data is cut; shorter data of one flow may
 * be merged. A new flow therefore waits for at most one segment of each competing bundle and of
 * each flow in its own bundle. Posted work cannot be overtaken. So each flow has few work requests
 * posted, and levels below the first share @low_bytes_max bytes in flight, or one segment for each
 * competing flow if more.
 *
 * Low levels do not starve: higher levels send at most @pass_bytes_max before a waiting class gets
 * a turn.
 *
 * The host does:
 *
 *	weir_sched_ready(s, flow)		the flow has something to send
 *	while (there is room && (flow = weir_sched_next(s, classes))) {
 *		post one WR of at most the segment of its class
 *		weir_sched_posted(s, flow, bytes);
 *		if (the flow has nothing more)
 *			weir_sched_idle(s, flow);
 *	}
 *	weir_sched_completed(s, flow, bytes)	for each WR, successful or not
 *
 * Every function takes constant time; weir_sched_next() amortised over the posted work requests.
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_SCHED_SCHED_H
#define WEIR_CORE_SCHED_SCHED_H

#include "core/sched/drr.h"

#define WEIR_SCHED_CLASSES_MAX 8
#define WEIR_SCHED_CLASSES_ALL ((1u << WEIR_SCHED_CLASSES_MAX) - 1)
#define WEIR_SCHED_SEGMENT_BYTES (64u << 10) /* the default segment */
#define WEIR_SCHED_SEGMENT_MAX (1u << 30)
#define WEIR_SCHED_WEIGHT_MAX 1024
#define WEIR_SCHED_COST_MIN 64 /* bytes: the least that a WR costs the NIC */

enum weir_sched_policy {
	WEIR_SCHED_FAIR, /* by bytes and weight */
	WEIR_SCHED_ROUND_ROBIN, /* by work requests; a flow of weight w has w turns a round */
};

/**
 * struct weir_sched_config - one class
 * @level: lower goes first
 * @weight: weight among the classes of its level, 1 to WEIR_SCHED_WEIGHT_MAX
 * @policy: how bundles share the class, and flows share a bundle
 * @segment_bytes: maximum length of a WR, 1 to WEIR_SCHED_SEGMENT_MAX
 * @wrs_max: work requests of one flow in flight, at least 1
 * @pass_bytes_max: bytes that higher levels may send while the class waits; 0: no limit
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
 * @bundles: rounds of its bundles
 * @share: bytes sent, divided by weight; the least in a level goes next
 * @passed_bytes: sent by higher levels since the class last sent, or began to wait
 */
struct weir_sched_class {
	struct weir_sched_config config;
	struct weir_drr bundles;
	uint64_t share;
	uint64_t passed_bytes;
};

/**
 * struct weir_sched - the scheduler of one NIC, or of one peer
 * @classes: sorted by level
 * @low_bytes_max: most bytes in flight below the first level, unless @low_floor is more
 * @low_bytes: bytes in flight below the first level
 * @low_floor: one segment for each competing flow below the first level in unpaused bundles
 * @low_segment: the longest segment below the first level. No class has room unless this segment
 *	fits, so that short segments cannot keep out long segments
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
 * struct weir_bundle - flows that share one share of a class
 * @turn: membership in the class's rounds
 * @class: number of the class
 * @flows: rounds of its flows
 * @is_paused: the bundle takes no turns; its flows keep their state
 * @competing: flows that want to send or have WRs in flight
 */
struct weir_bundle {
	struct weir_drr_member turn;
	uint8_t class;
	bool is_paused;
	uint32_t competing;
	struct weir_drr flows;
};

/**
 * struct weir_flow - one sender, the unit of fairness
 * @turn: membership in the bundle's rounds; ready while the flow has unposted data
 * @bundle: its bundle
 * @wrs: WRs in flight
 */
struct weir_flow {
	struct weir_drr_member turn;
	struct weir_bundle *bundle;
	uint32_t wrs;
};

/**
 * weir_sched_init() - initialise a scheduler without flows
 * @s: to be initialised
 * @configs: @nr_classes entries, sorted by level
 * @nr_classes: 1 to WEIR_SCHED_CLASSES_MAX
 * @low_bytes_max: as above: the bandwidth-delay product, so that low levels can still fill the wire
 *	when higher levels are idle; UINT64_MAX: no limit
 *
 * Return: 0, or -EINVAL if a number is out of its range.
 */
int weir_sched_init(struct weir_sched *s, const struct weir_sched_config *configs,
		    uint8_t nr_classes, uint64_t low_bytes_max);

/**
 * weir_sched_bundle_init() - initialise a bundle without flows
 * @bundle: to be initialised; may be freed when all its flows may
 * @class: a class of the scheduler
 * @weight: weight in its class, 1 to WEIR_SCHED_WEIGHT_MAX
 */
void weir_sched_bundle_init(struct weir_bundle *bundle, uint8_t class, uint16_t weight);

/* Sets another weight, effective from the bundle's next round. */
void weir_sched_bundle_set_weight(struct weir_bundle *bundle, uint16_t weight);

/* Whether any flow of the bundle has something to send. */
static inline bool weir_sched_bundle_is_wanted(const struct weir_bundle *bundle)
{
	return weir_drr_is_wanted(&bundle->flows);
}

/**
 * weir_sched_flow_init() - initialise a flow with nothing to send
 * @flow: to be initialised; may be freed when idle with no WR in flight
 * @bundle: *kept* until then
 * @weight: weight in its bundle, 1 to WEIR_SCHED_WEIGHT_MAX
 */
void weir_sched_flow_init(struct weir_flow *flow, struct weir_bundle *bundle, uint16_t weight);

/**
 * weir_sched_flow_move() - move a flow to another bundle
 * @s: the scheduler
 * @flow: in any state; the caller must not use a turn received before the move
 * @bundle: of the same class; *kept* until the flow moves again or is freed
 *
 * Quantum spent in the old round stays spent, and WRs in flight count for the new bundle. A bundle
 * without flows may be freed.
 */
void weir_sched_flow_move(struct weir_sched *s, struct weir_flow *flow, struct weir_bundle *bundle);

/* The flow has something to send. No effect if ready already. */
void weir_sched_ready(struct weir_sched *s, struct weir_flow *flow);

/* The flow has nothing to send, or must not send. No effect if idle already. */
void weir_sched_idle(struct weir_sched *s, struct weir_flow *flow);

/*
 * Stops a bundle from sending until weir_sched_resume(), or until no flow of the bundle is ready.
 * Rounds inside the bundle stand still; other bundles continue. No effect if paused already.
 */
void weir_sched_pause(struct weir_sched *s, struct weir_bundle *bundle);
void weir_sched_resume(struct weir_sched *s, struct weir_bundle *bundle);

/*
 * Whether any flow has something to send, in a bundle that is not paused. If not, weir_sched_next()
 * returns NULL.
 */
static inline bool weir_sched_is_wanted(const struct weir_sched *s)
{
	uint8_t i;

	for (i = 0; i < s->nr_classes; i++)
		if (weir_drr_is_wanted(&s->classes[i].bundles))
			return true;
	return false;
}

/**
 * weir_sched_next() - choose the flow that sends next
 * @s: the scheduler
 * @classes: bit c is set if there is room for a WR of class c
 *
 * Return: the flow; the caller then calls weir_sched_posted() or weir_sched_idle(). NULL if no flow
 *	has anything to send, or each such flow waits for a completion.
 */
struct weir_flow *weir_sched_next(struct weir_sched *s, uint32_t classes);

/**
 * weir_sched_posted() - the chosen flow has posted a WR
 * @s: the scheduler
 * @flow: the result of weir_sched_next()
 * @bytes: length of the WR, at most the segment of its class; may be 0
 */
void weir_sched_posted(struct weir_sched *s, struct weir_flow *flow, uint32_t bytes);

/**
 * weir_sched_completed() - a WR is no longer in flight
 * @s: the scheduler
 * @flow: the flow that posted the WR
 * @bytes: as posted
 */
void weir_sched_completed(struct weir_sched *s, struct weir_flow *flow, uint32_t bytes);

#endif
